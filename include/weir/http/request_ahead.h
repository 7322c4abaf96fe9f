/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request's head read where it stands in a window: as feeding the machine of request.h, which goes on with what is left. In BPF a piece
 * is a function of its own, which the verifier reads once: bpf/ahead.h says by what name.
 */
#ifndef WEIR_HTTP_REQUEST_AHEAD_H
#define WEIR_HTTP_REQUEST_AHEAD_H

#include "weir/http/line.h"
#include "weir/http/request.h"

#ifndef WEIR_PIECE
#define WEIR_PIECE(name) weir_##name
#endif

#define WEIR_PATH_STEPS 16  /* words and slashes of a path that are read in one go */
#define WEIR_QUERY_STEPS 32 /* the same of a query */
#define WEIR_NAME_WORDS 4   /* of eight bytes, of a user's name */

/* As feeding the byte behind a segment of common bytes, none of which is a dot: a slash, or what ends the path. False: it has ended. */
WEIR_INLINE bool weir_segment_end_ahead(struct weir_request *r, const struct weir_reading *how, __u8 c)
{
	struct weir_path *p = &r->path;
	bool empty = r->hash.length == 1;
	__u32 end = r->framing.position;
	int place = weir_path_place_plain(p, (enum weir_paths)how->paths, empty);

	weir_framing_ahead(&r->framing, 1);
	if (c == '/')
		p->odd |= empty;
	else
		weir_request_path_ended(r, c, end, empty);
	if (place != WEIR_SEGMENT_NONE)
		weir_path_keep(p, place, &r->hash, end);
	p->start = end + 1;
	weir_subject_start(&r->hash, how->seed, weir_header_kind(WEIR_HEADERS));
	return WEIR_FRESH(r->framing.state) == WEIR_AT_PATH;
}

/* As feeding the first slash. */
WEIR_INLINE __u32 weir_path_start_ahead(struct weir_request *r, const struct weir_reading *how)
{
	struct weir_name_steps name = { .header = WEIR_HEADERS };

	weir_framing_ahead(&r->framing, 1);
	weir_request_path_start(r, &name);
	weir_request_name(r, how->seed, &name);
	return 1;
}

/* Reads a path of common bytes, and the space behind it. */
WEIR_INLINE void weir_path_ahead(struct weir_request *r, const struct weir_reading *how, struct weir_window *w)
{
	__u64 word, lower;
	__u32 n;
	__u8 c;

	if (w->line.at + 8 >= w->length || weir_run_first(weir_window_word(w, w->line.at)) != '/')
		return;
	w->line.at += weir_path_start_ahead(r, how);
	WEIR_ROLLED
	for (__u64 i = WEIR_PATH_STEPS; i; i--) {
		WEIR_FRESH_ALL();
		word = weir_window_word(w, w->line.at);
		n = weir_run_name(word, &lower);
		if (w->line.at + 8 >= w->length)
			break;
		if (n) {
			weir_subject_bytes(&r->hash, weir_run_only(word, n), n);
			w->line.at += weir_framing_ahead(&r->framing, n);
		} else {
			c = weir_run_first(word);
			if (c != '/' && c != ' ' && c != '?')
				break;
			w->line.at++;
			if (!weir_segment_end_ahead(r, how, c))
				break;
		}
	}
}

/* As feeding a byte of a query that matters, which is visible, or the space behind it. */
WEIR_INLINE void weir_query_fed(struct weir_request *r, const struct weir_reading *how, __u8 c)
{
	struct weir_name_steps name = { .header = WEIR_HEADERS };

	r->framing.position++;
	weir_query_byte(r, c, &name);
	weir_request_name(r, how->seed, &name);
}

/* Reads the rest of a target whose path has ended, and the space behind it: how many bytes of it. */
WEIR_INLINE __u32 weir_query_ahead(struct weir_request *r, const struct weir_reading *how, const struct weir_window *w,
				   __u32 at)
{
	__u32 from = at, n;
	__u64 word;
	__u8 c;

	if (!weir_framing_has_room(&r->framing))
		return 0;
	WEIR_ROLLED
	for (int i = 0; i < WEIR_QUERY_STEPS; i++) {
		WEIR_FRESH_ALL();
		word = weir_window_word(w, at);
		if (r->framing.state != WEIR_AT_QUERY || at + 8 >= w->length)
			break;
		n = weir_request_target_take(r, word);
		at += weir_framing_ahead(&r->framing, n);
		if (n)
			continue;
		c = weir_run_first(word);
		if (c < ' ' || c > '~')
			break;
		at++;
		WEIR_PIECE(query_fed)(r, how, c);
	}
	return at - from;
}

/* Reads a method and a path from a request line's first byte on, as far as they are plain. */
WEIR_INLINE void weir_request_start_ahead(struct weir_request *r, const struct weir_reading *how, struct weir_window *w)
{
	__u32 n;

	if (w->line.at + 8 >= w->length)
		return;
	n = weir_framing_ahead(&r->framing, weir_request_method_take(r, weir_window_word(w, w->line.at)));
	w->line.at += n;
	WEIR_FRESH_ALL();
	if (n && r->method != WEIR_METHOD_CONNECT)
		weir_path_ahead(r, how, w);
}

/* Reads the version that ends a request line, if it is the common one. */
WEIR_INLINE void weir_version_ahead(struct weir_request *r, struct weir_window *w)
{
	struct weir_framing *f = &r->framing;
	__u32 at = w->line.at;

	if (f->state != WEIR_AT_VERSION || f->count || f->gap || !weir_framing_has_room(f) ||
	    weir_window_word(w, at) != WEIR_RUN_HTTP11 || !weir_line_ends(w, at + 8))
		return;
	r->line_length = f->position + 8;
	f->state = WEIR_AT_LINE;
	w->line.at += weir_framing_ahead(f, 10);
}

/* Of the n bytes of a name from index `at` on the last eight, as a token has them (framing.h); n: what is left of it, or below 0 */
WEIR_INLINE __u64 weir_name_token(const struct weir_window *w, __u64 at, __s64 n)
{
	if (n >= 8)
		return __builtin_bswap64(weir_line_lower(w, at + n - 8));
	return n > 0 ? __builtin_bswap64(weir_line_lower(w, at)) >> (64 - 8 * n) : 0;
}

/* Is this the line's name? */
WEIR_INLINE bool weir_line_is_named(const struct weir_window *w, const struct weir_word *name)
{
	__s64 n = w->line.colon - w->line.at;

	return n == name->length && weir_name_token(w, w->line.at, n) == name->bytes[0] &&
	       weir_name_token(w, w->line.at, n - 8) == name->bytes[1] &&
	       weir_name_token(w, w->line.at, n - 16) == name->bytes[2];
}

/* Hashes the n bytes from index `at` on, at most so many words. false: they are no name of common bytes. */
WEIR_INLINE bool weir_name_ahead(struct weir_subject_hash *h, const struct weir_window *w, __u64 at, __u64 n)
{
	__u64 word, others = 0;
	__u64 unused;

	h->length += n;
	WEIR_ROLLED
	for (__u64 i = 0; i < 8 * WEIR_NAME_WORDS; i += 8) {
		if (i >= n)
			break;
		unused = n - i < 8 ? 64 - 8 * (n - i) : 0;
		word = weir_window_word(w, at + i) << unused;
		others |= weir_run_not_name(word) >> unused << unused;
		word >>= unused;
		h->tail |= word << 8;
		if (n - i < 7)
			break;
		if (!i)
			h->first = h->tail;
		weir_subject_compress(h->state, h->tail);
		h->tail = word >> 56;
	}
	return !others;
}

/*
 * Reads the line, if it says the user in the plainest form. offset: its own, in the request. Where its value goes on in another form it is
 * hashed anew by the machine, from the first byte on.
 */
WEIR_INLINE bool weir_name_line_ahead(struct weir_request *r, const struct weir_reading *how,
				      const struct weir_window *w, __u64 offset)
{
	__u64 value = weir_line_value(w), n = w->line.end - value;

	if (!weir_line_is_named(w, &how->headers[WEIR_HEADER_USER]) || !n || n > 8 * WEIR_NAME_WORDS ||
	    !weir_run_length(weir_run_not_name(weir_window_word(w, value))) || weir_request_says(r, WEIR_HEADER_USER) ||
	    r->framing.seen & WEIR_SEEN_LAST_CHUNK)
		return false;
	weir_subject_start(&r->hash, how->seed, WEIR_NAME_USER);
	if (!weir_name_ahead(&r->hash, w, value, n))
		return false;
	offset += value - w->line.at;
	r->headers_seen |= 1U << WEIR_HEADER_USER;
	r->framing.field = WEIR_HEADER_USER;
	r->user_offset = offset;
	r->user_length = n;
	r->path.start = offset + 1;
	r->user_subject = weir_subject_end(&r->hash);
	return true;
}

#endif
