/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request as the framing machine knows it, and its first line (RFC 9112, 3). request.h is what to include.
 *
 * The namespace is the one of Kubernetes' RequestInfo: in the path, percent-decoded (%2F separates like a slash) and
 * without the slashes at either end, api/VERSION/namespaces/NAME or apis/GROUP/VERSION/namespaces/NAME, where `watch`
 * or `proxy` may follow VERSION, and anything NAME. Dot segments are names like any other.
 */
#ifndef WEIR_REQUEST_LINE_H
#define WEIR_REQUEST_LINE_H

#include "field.h"
#include "frame.h"
#include "subject.h"
#include "types.h"

#define WEIR_REQUEST_EMPTY_LINES 4 /* allowed before a request line (RFC 9112, 2.2, asks for one) */

enum weir_request_state {
	WEIR_AT_START = WEIR_AT_OWN, /* first byte, or that after an empty line */
	WEIR_AT_START_LF,
	WEIR_AT_METHOD,
	WEIR_AT_TARGET,	  /* its first byte */
	WEIR_AT_ASTERISK, /* behind `*`, which is the whole target */
	WEIR_AT_SCHEME,
	WEIR_AT_SCHEME_SLASH,
	WEIR_AT_SCHEME_SLASHES,
	WEIR_AT_HOST,
	WEIR_AT_PATH,
	WEIR_AT_PATH_HEX_HIGH,
	WEIR_AT_PATH_HEX_LOW,
	WEIR_AT_TARGET_REST, /* nothing in it matters: a query, or CONNECT's authority */
	WEIR_AT_VERSION,
	WEIR_AT_USER, /* value of X-Remote-User */
};

/* What the current segment of the path is. */
enum weir_segment_role {
	WEIR_SEGMENT_SLASHES, /* none yet */
	WEIR_SEGMENT_FIRST,
	WEIR_SEGMENT_GROUP,
	WEIR_SEGMENT_VERSION,
	WEIR_SEGMENT_KIND,	 /* `namespaces`, or a verb before it */
	WEIR_SEGMENT_KIND_AGAIN, /* `namespaces` */
	WEIR_SEGMENT_NAMESPACE,
	WEIR_SEGMENT_HEALTH, /* below a health path */
	WEIR_SEGMENT_REST,
};

/* Final at WEIR_FRAME_HEAD. */
enum weir_request_flags {
	WEIR_REQUEST_HTTP10 = 1 << 0,
	WEIR_REQUEST_CLOSE = 1 << 1,   /* Connection: close, or HTTP/1.0 without keep-alive */
	WEIR_REQUEST_EXPECT = 1 << 2,  /* Expect: 100-continue */
	WEIR_REQUEST_UPGRADE = 1 << 3, /* Connection: upgrade, and Upgrade */
	WEIR_REQUEST_CHUNKED = 1 << 4,
	WEIR_REQUEST_HAS_LENGTH = 1 << 5,
	WEIR_REQUEST_HEALTH =
		1 << 6, /* /healthz, /livez, /readyz or below, in a path that no server reads as another one */
	WEIR_REQUEST_USER = 1 << 7,
	WEIR_REQUEST_USER_REPEATED = 1 << 8,
	WEIR_REQUEST_NAMESPACE_ENCODED = 1 << 9, /* percent-encoding in the name */
};

/*
 * Offsets count from the request's first byte (empty lines before the request line included), name lengths are those of
 * the raw bytes. Offset and length are 0 where there is no name.
 */
struct weir_request {
	struct weir_framing framing;
	struct weir_subject_hash hash; /* of the name that is being read */
	__u64 namespace_subject;       /* 0: none */
	__u64 user_subject;	       /* 0: none */
	__u64 content_length;	       /* 0 without WEIR_REQUEST_HAS_LENGTH */
	__u32 namespace_offset;
	__u32 user_offset;
	__u32 head_length;
	__u16 namespace_length;
	__u16 user_length;
	__u16 line_length; /* of the request line, empty lines before it included, its CRLF not */
	__u16 flags;	   /* enum weir_request_flags */
	__u8 method;	   /* enum weir_method */
	__u8 lost;	   /* enum weir_reason, after WEIR_FRAME_LOST */
	__u8 role;	   /* enum weir_segment_role */
	__u8 hex_high;	   /* value of the first digit, in WEIR_AT_PATH_HEX_LOW */
	__u8 pad[4];
};
WEIR_ASSERT_SIZE(struct weir_request, 152);

/* What one byte does to the hash of a name; done at one place, in this order, to keep the inlined code small. */
enum weir_name_step {
	WEIR_STEP_END = 1 << 0, /* a name, if nothing but white space follows */
	WEIR_STEP_START = 1 << 1,
	WEIR_STEP_BYTE = 1 << 2,
};

struct weir_name_steps {
	__u8 steps; /* enum weir_name_step */
	__u8 kind;  /* enum weir_name_kind */
	__u8 byte;  /* decoded */
};

WEIR_INLINE int weir_request_start_byte(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (c == '\r' && f->position <= 2 * WEIR_REQUEST_EMPTY_LINES) {
		f->state = WEIR_AT_START_LF;
		return WEIR_FRAME_MORE;
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

WEIR_INLINE enum weir_method weir_method_of_token(const struct weir_framing *f)
{
	if (WEIR_TOKEN_IS(f, "GET"))
		return WEIR_METHOD_GET;
	if (WEIR_TOKEN_IS(f, "HEAD"))
		return WEIR_METHOD_HEAD;
	if (WEIR_TOKEN_IS(f, "POST"))
		return WEIR_METHOD_POST;
	if (WEIR_TOKEN_IS(f, "PUT"))
		return WEIR_METHOD_PUT;
	if (WEIR_TOKEN_IS(f, "PATCH"))
		return WEIR_METHOD_PATCH;
	if (WEIR_TOKEN_IS(f, "DELETE"))
		return WEIR_METHOD_DELETE;
	if (WEIR_TOKEN_IS(f, "OPTIONS"))
		return WEIR_METHOD_OPTIONS;
	if (WEIR_TOKEN_IS(f, "CONNECT"))
		return WEIR_METHOD_CONNECT;
	if (WEIR_TOKEN_IS(f, "PRI"))
		return WEIR_METHOD_PRI;
	return WEIR_METHOD_OTHER;
}

WEIR_INLINE int weir_request_method_byte(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (c == ' ') {
		r->method = weir_method_of_token(f);
		f->state = WEIR_AT_TARGET;
		weir_token_start(f); /* and it is clean again when the version starts: only a path's segments use it */
		return WEIR_FRAME_MORE;
	}
	if (!weir_is_tchar(c))
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	weir_token_byte(f, c);
	return f->count == WEIR_TOKEN_NONE ? -WEIR_BAD_REQUEST_LINE : WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_request_target_byte(struct weir_request *r, __u8 c)
{
	__u8 lower = weir_lower(c);

	if (c == '/')
		r->framing.state = WEIR_AT_PATH;
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
WEIR_INLINE int weir_request_skimmed_byte(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (c == ' ')
		f->state = WEIR_AT_VERSION;
	else if (!weir_is_visible(c))
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	else if (f->state == WEIR_AT_HOST && c == '/')
		f->state = WEIR_AT_PATH;
	else if (f->state == WEIR_AT_HOST && c == '?')
		f->state = WEIR_AT_TARGET_REST;
	return WEIR_FRAME_MORE;
}

WEIR_INLINE enum weir_segment_role weir_role_after_first(struct weir_request *r)
{
	struct weir_framing *f = &r->framing;

	if (WEIR_TOKEN_IS(f, "api"))
		return WEIR_SEGMENT_VERSION;
	if (WEIR_TOKEN_IS(f, "apis"))
		return WEIR_SEGMENT_GROUP;
	if (f->seen & WEIR_SEEN_ODD_PATH)
		return WEIR_SEGMENT_REST;
	if (!WEIR_TOKEN_IS(f, "healthz") && !WEIR_TOKEN_IS(f, "livez") && !WEIR_TOKEN_IS(f, "readyz"))
		return WEIR_SEGMENT_REST;
	r->flags |= WEIR_REQUEST_HEALTH;
	return WEIR_SEGMENT_HEALTH;
}

WEIR_INLINE enum weir_segment_role weir_role_after_kind(const struct weir_request *r)
{
	const struct weir_framing *f = &r->framing;

	if (WEIR_TOKEN_IS(f, "namespaces"))
		return WEIR_SEGMENT_NAMESPACE;
	if (r->role == WEIR_SEGMENT_KIND && (WEIR_TOKEN_IS(f, "watch") || WEIR_TOKEN_IS(f, "proxy")))
		return WEIR_SEGMENT_KIND_AGAIN;
	return WEIR_SEGMENT_REST;
}

/* A slash, or the path's end. at: its offset */
WEIR_INLINE void weir_request_segment_end(struct weir_request *r, __u32 at, struct weir_name_steps *name)
{
	switch (r->role) {
	case WEIR_SEGMENT_SLASHES:
		r->framing.seen |= WEIR_SEEN_ODD_PATH;
		break;
	case WEIR_SEGMENT_FIRST:
		r->role = weir_role_after_first(r);
		break;
	case WEIR_SEGMENT_GROUP:
	case WEIR_SEGMENT_VERSION:
		r->role++;
		break;
	case WEIR_SEGMENT_KIND:
	case WEIR_SEGMENT_KIND_AGAIN:
		r->role = weir_role_after_kind(r);
		break;
	case WEIR_SEGMENT_NAMESPACE:
		r->role = WEIR_SEGMENT_REST;
		if (!r->framing.count)
			break;
		name->steps = WEIR_STEP_END;
		r->namespace_length = at - r->namespace_offset;
		break;
	}
	weir_token_start(&r->framing);
}

WEIR_INLINE void weir_request_namespace_byte(struct weir_request *r, __u8 c, __u32 at, struct weir_name_steps *name)
{
	name->steps = WEIR_STEP_BYTE;
	name->byte = c;
	if (r->framing.position - at > 1)
		r->flags |= WEIR_REQUEST_NAMESPACE_ENCODED;
	if (r->framing.count)
		return;
	r->framing.count = 1;
	r->namespace_offset = at;
	name->steps |= WEIR_STEP_START;
}

/* A segment that starts with a dot, or a backslash, may lead some servers to another path. */
WEIR_INLINE void weir_request_health_byte(struct weir_request *r, __u8 c)
{
	if ((c == '.' && !r->framing.count) || c == '\\')
		r->flags &= ~WEIR_REQUEST_HEALTH;
	r->framing.count = 1;
}

/* at: offset of the first raw byte that `c` was written as */
WEIR_INLINE void weir_request_segment_byte(struct weir_request *r, __u8 c, __u32 at, struct weir_name_steps *name)
{
	switch (r->role) {
	case WEIR_SEGMENT_REST:
		return;
	case WEIR_SEGMENT_NAMESPACE:
		weir_request_namespace_byte(r, c, at, name);
		return;
	case WEIR_SEGMENT_HEALTH:
		weir_request_health_byte(r, c);
		return;
	case WEIR_SEGMENT_SLASHES:
		r->role = WEIR_SEGMENT_FIRST;
		break;
	}
	weir_token_byte(&r->framing, c);
}

/* What raw bytes of a path come to, beside a byte. */
enum weir_path_unit {
	WEIR_PATH_PENDING = 256, /* percent-encoding is not complete */
	WEIR_PATH_END,
};

WEIR_INLINE int weir_request_decode_hex(struct weir_request *r, __u8 c)
{
	int digit = weir_hex_digit(c);

	if (digit < 0)
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	if (r->framing.state == WEIR_AT_PATH_HEX_LOW) {
		r->framing.state = WEIR_AT_PATH;
		return r->hex_high << 4 | digit;
	}
	r->framing.state = WEIR_AT_PATH_HEX_LOW;
	r->hex_high = digit;
	return WEIR_PATH_PENDING;
}

/* The decoded byte, an enum weir_path_unit, or the negative of an enum weir_reason */
WEIR_INLINE int weir_request_decode(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (f->state != WEIR_AT_PATH)
		return weir_request_decode_hex(r, c);
	if (c == ' ' || c == '?') {
		f->state = c == ' ' ? WEIR_AT_VERSION : WEIR_AT_TARGET_REST;
		return WEIR_PATH_END;
	}
	if (c == '%') {
		f->state = WEIR_AT_PATH_HEX_HIGH;
		f->seen |= WEIR_SEEN_ODD_PATH;
		r->flags &= ~WEIR_REQUEST_HEALTH;
		return WEIR_PATH_PENDING;
	}
	return weir_is_visible(c) ? c : weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
}

WEIR_INLINE int weir_request_path_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
{
	__u32 at = r->framing.position - (r->framing.state == WEIR_AT_PATH_HEX_LOW ? 3 : 1);
	int unit = weir_request_decode(r, c);

	if (unit < 0)
		return unit;
	if (unit == '/' || unit == WEIR_PATH_END)
		weir_request_segment_end(r, at, name);
	else if (unit != WEIR_PATH_PENDING)
		weir_request_segment_byte(r, unit, at, name);
	return WEIR_FRAME_MORE;
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
WEIR_INLINE int weir_request_line_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
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
		return weir_request_target_byte(r, c);
	case WEIR_AT_ASTERISK:
		r->framing.state = WEIR_AT_VERSION;
		return c == ' ' ? WEIR_FRAME_MORE : weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	case WEIR_AT_SCHEME:
	case WEIR_AT_SCHEME_SLASH:
	case WEIR_AT_SCHEME_SLASHES:
		return weir_request_scheme_byte(r, c);
	case WEIR_AT_HOST:
	case WEIR_AT_TARGET_REST:
		return weir_request_skimmed_byte(r, c);
	case WEIR_AT_VERSION:
		return weir_request_version_byte(r, c);
	default:
		return weir_request_path_byte(r, c, name);
	}
}

#endif
