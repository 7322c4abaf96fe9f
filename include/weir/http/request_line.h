/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request's first line (RFC 9112, 3). request.h is what to include. Its path is decoded here, cut into segments by
 * path.h, and each of these hashed, whatever it may come to mean.
 */
#ifndef WEIR_HTTP_REQUEST_LINE_H
#define WEIR_HTTP_REQUEST_LINE_H

#include "weir/http/query.h"
#include "weir/http/request_state.h"
#include "weir/http/run.h"

#define WEIR_REQUEST_EMPTY_LINES 4 /* allowed before a request line (RFC 9112, 2.2, asks for one) */

WEIR_INLINE int weir_request_start_byte(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (c == '\r') {
		f->state = WEIR_AT_START_LF;
		return f->position <= 2 * WEIR_REQUEST_EMPTY_LINES ? WEIR_FRAME_MORE : -WEIR_BAD_REQUEST_LINE;
	}
	if (c == 0x16) /* a TLS record with a handshake in it (RFC 8446, 5.1) */
		return -WEIR_TLS;
	if (!weir_is_tchar(c))
		return c == '\n' ? -WEIR_BARE_LF : -WEIR_NOT_HTTP;
	f->state = WEIR_AT_METHOD;
	weir_token_start(f);
	weir_token_byte(f, c);
	return WEIR_FRAME_MORE;
}

/* word: a token of at most eight bytes, in capital letters */
WEIR_INLINE enum weir_method weir_method_of_word(__u64 word)
{
	if (word == WEIR_TEXT_WORD("GET", 0))
		return WEIR_METHOD_GET;
	if (word == WEIR_TEXT_WORD("HEAD", 0))
		return WEIR_METHOD_HEAD;
	if (word == WEIR_TEXT_WORD("POST", 0))
		return WEIR_METHOD_POST;
	if (word == WEIR_TEXT_WORD("PUT", 0))
		return WEIR_METHOD_PUT;
	if (word == WEIR_TEXT_WORD("PATCH", 0))
		return WEIR_METHOD_PATCH;
	if (word == WEIR_TEXT_WORD("DELETE", 0))
		return WEIR_METHOD_DELETE;
	if (word == WEIR_TEXT_WORD("OPTIONS", 0))
		return WEIR_METHOD_OPTIONS;
	if (word == WEIR_TEXT_WORD("CONNECT", 0))
		return WEIR_METHOD_CONNECT;
	if (word == WEIR_TEXT_WORD("PRI", 0))
		return WEIR_METHOD_PRI;
	return WEIR_METHOD_OTHER;
}

/* How long a method is that begins the word, the space behind it included; 0: that does not fit. */
WEIR_INLINE __u32 weir_method_length(__u64 word)
{
	__u64 lower;
	__u32 n = weir_run_name(word, &lower);

	return n && n < 8 && weir_run_first(weir_run_behind(word, n)) == ' ' ? n + 1 : 0;
}

/* Methods are what they are only in capital letters; how they are spelt does not matter to some (attributes.h). */
WEIR_INLINE void weir_request_method_end(struct weir_request *r)
{
	const struct weir_framing *f = &r->framing;
	__u64 capitals = f->token[0] & ~0x2020202020202020ULL;

	r->spelling = f->count > 8 ? WEIR_METHOD_OTHER : weir_method_of_word(capitals);
	r->method = f->token[0] == capitals ? r->spelling : WEIR_METHOD_OTHER;
}

WEIR_INLINE int weir_request_method_byte(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (c == ' ') {
		weir_request_method_end(r);
		f->state = WEIR_AT_TARGET;
		weir_token_start(f); /* and it is clean again when the version starts: only a query uses it */
		return WEIR_FRAME_MORE;
	}
	if (!weir_is_tchar(c))
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	weir_token_byte(f, c);
	return f->count == WEIR_TOKEN_NONE ? -WEIR_BAD_REQUEST_LINE : WEIR_FRAME_MORE;
}

/* The first slash. */
WEIR_INLINE void weir_request_path_start(struct weir_request *r, struct weir_name_steps *name)
{
	r->framing.state = WEIR_AT_PATH;
	r->path.offset = r->framing.position - 1;
	name->steps = WEIR_STEP_START;
}

WEIR_INLINE int weir_request_target_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
{
	__u8 lower = weir_lower(c);

	if (c == '/')
		weir_request_path_start(r, name);
	else if (!weir_is_visible(c))
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	else if (r->method == WEIR_METHOD_CONNECT)
		r->framing.state = WEIR_AT_TARGET_REST;
	else if (c == '*')
		r->framing.state = WEIR_AT_ASTERISK;
	else if (lower >= 'a' && lower <= 'z')
		r->framing.state = WEIR_AT_SCHEME;
	else
		return -WEIR_BAD_REQUEST_LINE;
	return WEIR_FRAME_MORE;
}

WEIR_INLINE bool weir_is_scheme(__u8 c)
{
	__u8 lower = weir_lower(c);

	return (lower >= 'a' && lower <= 'z') || weir_is_digit(c) || c == '+' || c == '-' || c == '.';
}

/* The absolute form up to its host: SCHEME://, of which any scheme will do. */
WEIR_INLINE int weir_request_scheme_byte(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (f->state == WEIR_AT_SCHEME && weir_is_scheme(c))
		return WEIR_FRAME_MORE;
	if (c != (f->state == WEIR_AT_SCHEME ? ':' : '/'))
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	f->state++;
	return WEIR_FRAME_MORE;
}

/* A host, or what nothing matters in. */
WEIR_INLINE int weir_request_skimmed_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;

	if (c == ' ')
		f->state = WEIR_AT_VERSION;
	else if (!weir_is_visible(c))
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	else if (f->state == WEIR_AT_HOST && c == '/')
		weir_request_path_start(r, name);
	else if (f->state == WEIR_AT_HOST && c == '?')
		f->state = WEIR_AT_TARGET_REST;
	return WEIR_FRAME_MORE;
}

/* A slash, or the path's end, before the raw byte at `at`. */
WEIR_INLINE int weir_request_segment_end(struct weir_request *r, const struct weir_reading *how, __u32 at,
					 struct weir_name_steps *name)
{
	int place = weir_path_place(&r->path, (enum weir_paths)how->paths, &r->hash);

	if (place < 0)
		return place;
	name->steps = place == WEIR_SEGMENT_NONE ? WEIR_STEP_START : WEIR_STEP_END | WEIR_STEP_START;
	name->segment = place;
	name->end = at;
	return WEIR_FRAME_MORE;
}

/* The path has ended before the raw byte c at `at`, its last segment too. open: nothing is behind its last slash. */
WEIR_INLINE void weir_request_path_ended(struct weir_request *r, __u8 c, __u32 at, bool open)
{
	r->path.length = at - r->path.offset;
	r->path.open = open;
	r->framing.state = c == ' ' ? WEIR_AT_VERSION : WEIR_AT_TARGET_REST;
	if (c == '?' && weir_path_is_of_api(&r->path))
		weir_query_start(r);
}

/* c: the byte after it */
WEIR_INLINE int weir_request_path_end(struct weir_request *r, const struct weir_reading *how, __u8 c, __u32 at,
				      struct weir_name_steps *name)
{
	bool open = weir_path_ends_open((enum weir_paths)how->paths, &r->hash);
	int outcome = weir_request_segment_end(r, how, at, name);

	weir_request_path_ended(r, c, at, open);
	return outcome;
}

/* c: decoded; at: offset of the first raw byte that it was written as */
WEIR_INLINE int weir_request_decoded_byte(struct weir_request *r, const struct weir_reading *how, __u8 c, __u32 at,
					  struct weir_name_steps *name)
{
	if (c == '/') {
		r->path.odd |= r->hash.length == 1; /* between two slashes is nothing */
		return weir_request_segment_end(r, how, at, name);
	}
	name->steps = WEIR_STEP_BYTE;
	name->byte = c;
	return !c && how->paths == WEIR_PATHS_NGINX ? -WEIR_BAD_PATH : WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_request_hex_byte(struct weir_request *r, const struct weir_reading *how, __u8 c,
				      struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;
	int digit = weir_hex_digit(c);

	if (digit < 0)
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	if (f->state == WEIR_AT_PATH_HEX_LOW) {
		f->state = WEIR_AT_PATH;
		return weir_request_decoded_byte(r, how, r->path.hex_high << 4 | digit, f->position - 3, name);
	}
	f->state = WEIR_AT_PATH_HEX_LOW;
	r->path.hex_high = digit;
	return WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_request_path_byte(struct weir_request *r, const struct weir_reading *how, __u8 c,
				       struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;
	__u32 at = f->position - 1;

	if (f->state != WEIR_AT_PATH)
		return weir_request_hex_byte(r, how, c, name);
	r->path.odd |= weir_path_byte_is_odd(c);
	if (c == ' ' || c == '?' || (c == '#' && how->paths == WEIR_PATHS_NGINX))
		return weir_request_path_end(r, how, c, at, name);
	if (!weir_is_visible(c))
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	if (c != '%' || how->paths == WEIR_PATHS_RAW)
		return weir_request_decoded_byte(r, how, c, at, name);
	f->state = WEIR_AT_PATH_HEX_HIGH;
	return WEIR_FRAME_MORE;
}

/* As feeding: a method that stands in the word with the space behind it. */
WEIR_INLINE __u32 weir_request_method_take(struct weir_request *r, __u64 word)
{
	struct weir_framing *f = &r->framing;
	__u32 n = weir_method_length(word);

	if (!n)
		return 0;
	weir_token_start(f);
	weir_token_bytes(f, word, n - 1);
	weir_request_method_end(r);
	weir_token_start(f);
	f->state = WEIR_AT_TARGET;
	return n;
}

/* As feeding: "HTTP/1.1", or its line's end. */
WEIR_INLINE __u32 weir_request_version_take(struct weir_request *r, __u64 word)
{
	struct weir_framing *f = &r->framing;

	if (word == WEIR_RUN_HTTP11 && !f->count && !f->gap) {
		weir_token_bytes(f, word, 8);
		return 8;
	}
	if ((word & 0xffff) != WEIR_RUN_CRLF || !WEIR_TOKEN_IS(f, "HTTP/1.1"))
		return 0;
	r->line_length = f->position;
	weir_line_end(f);
	return 2;
}

/* As feeding, for the common bytes of a path and of what follows it (run.h). */
WEIR_INLINE __u32 weir_request_target_take(struct weir_request *r, __u64 word)
{
	__u64 lower;
	__u32 n = weir_run_name(word, &lower);

	if (!n)
		return 0;
	if (r->framing.state == WEIR_AT_QUERY)
		return weir_query_take(r, word, n);
	if (r->framing.state == WEIR_AT_PATH)
		weir_subject_bytes(&r->hash, weir_run_only(word, n), n);
	return r->framing.state == WEIR_AT_PATH || r->framing.state == WEIR_AT_TARGET_REST ? n : 0;
}

WEIR_INLINE int weir_request_version_byte(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (c == '\r') {
		f->state = WEIR_AT_LINE_LF;
		r->line_length = f->position - 1;
		if (r->method == WEIR_METHOD_PRI && WEIR_TOKEN_IS(f, "HTTP/2.0"))
			return -WEIR_HTTP2;
		return weir_version_end(f);
	}
	if (c == ' ')
		return -WEIR_BAD_REQUEST_LINE;
	if (!weir_is_visible(c))
		return weir_bad_byte(c, WEIR_BAD_VERSION);
	weir_token_byte(f, c);
	return f->count <= 8 ? WEIR_FRAME_MORE : -WEIR_BAD_VERSION;
}

/* One byte of the request line, its CR included. */
WEIR_INLINE int weir_request_line_byte(struct weir_request *r, const struct weir_reading *how, __u8 c,
				       struct weir_name_steps *name)
{
	switch (r->framing.state) {
	case WEIR_AT_START:
		return weir_request_start_byte(r, c);
	case WEIR_AT_START_LF:
		r->framing.state = WEIR_AT_START;
		return c == '\n' ? WEIR_FRAME_MORE : -WEIR_BARE_CR;
	case WEIR_AT_METHOD:
		return weir_request_method_byte(r, c);
	case WEIR_AT_TARGET:
		return weir_request_target_byte(r, c, name);
	case WEIR_AT_ASTERISK:
		r->framing.state = WEIR_AT_VERSION;
		return c == ' ' ? WEIR_FRAME_MORE : weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	case WEIR_AT_SCHEME:
	case WEIR_AT_SCHEME_SLASH:
	case WEIR_AT_SCHEME_SLASHES:
		return weir_request_scheme_byte(r, c);
	case WEIR_AT_HOST:
	case WEIR_AT_TARGET_REST:
		return weir_request_skimmed_byte(r, c, name);
	case WEIR_AT_VERSION:
		return weir_request_version_byte(r, c);
	case WEIR_AT_QUERY:
	case WEIR_AT_QUERY_HEX_HIGH:
	case WEIR_AT_QUERY_HEX_LOW:
		return weir_query_byte(r, c, name);
	default:
		return weir_request_path_byte(r, how, c, name);
	}
}

#endif
