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

/* Feeds the machine a byte of the path, which is no longer than what the window has. False: that ended something. */
WEIR_INLINE bool weir_path_fed(struct weir_request *r, const struct weir_reading *how, __u8 c)
{
	struct weir_name_steps name = { .header = WEIR_HEADERS };

	r->framing.position++;
	weir_request_path_byte(r, how, c, &name);
	weir_request_name(r, how->seed, &name);
	return r->framing.state == WEIR_AT_PATH;
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

/* Reads a path of common bytes, and the space behind it: how many bytes of it. */
WEIR_INLINE __u32 weir_path_ahead(struct weir_request *r, const struct weir_reading *how, const struct weir_window *w,
				  __u32 at)
{
	__u32 from = at, n;
	__u64 word, lower;
	__u8 c;

	if (at + 8 >= w->length || weir_run_first(weir_window_word(w, at)) != '/')
		return 0;
	at += weir_path_start_ahead(r, how);
	WEIR_ROLLED
	for (int i = 0; i < WEIR_PATH_STEPS; i++) {
		WEIR_FRESH_ALL();
		word = weir_window_word(w, at);
		n = weir_run_name(word, &lower);
		if (at + 8 >= w->length)
			break;
		if (n) {
			weir_subject_bytes(&r->hash, weir_run_only(word, n), n);
			at += weir_framing_ahead(&r->framing, n);
		} else {
			c = weir_run_first(word);
			if (c != '/' && c != ' ' && c != '?')
				break;
			at++;
			if (!WEIR_PIECE(path_fed)(r, how, c))
				break;
		}
	}
	return at - from;
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

/* Reads a request line from its first byte on, as far as it is plain: how many bytes of it. */
WEIR_INLINE __u32 weir_request_start_ahead(struct weir_request *r, const struct weir_reading *how,
					   const struct weir_window *w, __u32 at)
{
	__u32 from = at;

	if (at + 8 >= w->length)
		return 0;
	at += weir_framing_ahead(&r->framing, weir_request_method_take(r, weir_window_word(w, at)));
	if (at == from || r->method == WEIR_METHOD_CONNECT)
		return at - from;
	at += weir_path_ahead(r, how, w, at);
	if (r->framing.state == WEIR_AT_QUERY)
		at += WEIR_PIECE(query_ahead)(r, how, w, at);
	if (r->framing.state != WEIR_AT_VERSION || weir_window_word(w, at) != WEIR_RUN_HTTP11 ||
	    (weir_window_word(w, at + 8) & 0xffff) != WEIR_RUN_CRLF || at + 10 > w->length)
		return at - from;
	r->line_length = r->framing.position + 8;
	r->framing.state = WEIR_AT_LINE;
	return at - from + weir_framing_ahead(&r->framing, 10);
}

/* How long the name of common bytes is that begins at `at`, to the line's end; 0: it is something else. */
WEIR_INLINE __u32 weir_name_ahead(const struct weir_window *w, __u32 at)
{
	__u32 n = 0, more = 8;
	__u64 lower;

	for (int i = 0; i < WEIR_NAME_WORDS && more == 8; i++) {
		more = weir_run_name(weir_window_word(w, at + n), &lower);
		n += more;
	}
	n = weir_line_any(n, weir_window_word(w, at));
	return (weir_window_word(w, at + n) & 0xffff) == WEIR_RUN_CRLF && at + n + 2 <= w->length ? n : 0;
}

/* Which header has the name of n bytes: enum weir_header. */
WEIR_INLINE __u32 weir_header_ahead(struct weir_framing *f, const struct weir_reading *how,
				    const struct weir_line_name *name, __u32 n)
{
	__u32 header;

	for (__u32 i = 0; i < WEIR_TOKEN_MAX; i += 8)
		if (i < n)
			weir_token_bytes(f, name->lower[i / 8], n - i < 8 ? n - i : 8);
	header = weir_request_header_named(f, how);
	weir_token_start(f);
	return header;
}

/* The user's name is hashed, and kept, as the machine does it. at: its index; offset: in the request */
WEIR_INLINE void weir_user_ahead(struct weir_request *r, const struct weir_reading *how, const struct weir_window *w,
				 __u32 at, __u32 n, __u32 offset)
{
	r->headers_seen |= 1U << WEIR_HEADER_USER;
	r->framing.field = WEIR_HEADER_USER;
	r->user_offset = offset;
	r->user_length = n;
	r->path.start = offset + 1;
	weir_subject_start(&r->hash, how->seed, WEIR_NAME_USER);
	WEIR_ROLLED
	for (int i = 0; i < WEIR_NAME_WORDS && n; i++) {
		__u32 most = n < 8 ? n : 8;

		weir_subject_bytes(&r->hash, weir_run_only(weir_window_word(w, at), most), most);
		at += 8;
		n -= most;
	}
	r->user_subject = weir_subject_end(&r->hash);
}

/*
 * Reads the field line at index `at`, whose name has n bytes, if it says the user in the plainest form: how long it is; 0: it is
 * something else.
 */
WEIR_INLINE __u32 weir_name_line_ahead(struct weir_request *r, const struct weir_reading *how,
				       const struct weir_window *w, __u32 at, const struct weir_line_name *name,
				       __u32 n)
{
	__u32 value, length;

	if (!n || n != how->headers[WEIR_HEADER_USER].length || weir_request_says(r, WEIR_HEADER_USER) ||
	    r->framing.seen & WEIR_SEEN_LAST_CHUNK || weir_header_ahead(&r->framing, how, name, n) != WEIR_HEADER_USER)
		return 0;
	value = weir_line_value(w, at + n);
	length = weir_name_ahead(w, value);
	if (!length)
		return 0;
	weir_user_ahead(r, how, w, value, length, r->framing.position + value - at);
	return value + length + 2 - at;
}

#endif
