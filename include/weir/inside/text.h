/* SPDX-License-Identifier: GPL-2.0 */
/* Texts as a Go program has them in memory: what they must look like, and the verbs that Kubernetes uses. */
#ifndef WEIR_INSIDE_TEXT_H
#define WEIR_INSIDE_TEXT_H

#include "weir/base/types.h"
#include "weir/http/attributes.h"

#define WEIR_INSIDE_TEXT_MAX 8192 /* bytes; a longer one is no name */
#define WEIR_INSIDE_WORD_MAX 16	  /* "deletecollection" */

/* A Go string's header. */
struct weir_inside_string {
	__u64 at;
	__u64 length;
};

/* UTF-8 (RFC 3629, section 4), a byte at a time: what the next byte must be. */
struct weir_utf8 {
	__u8 more; /* bytes that are missing of the character */
	__u8 low;  /* bounds of the next of them */
	__u8 high;
	__u8 bad;
};

WEIR_INLINE void weir_utf8_begin(struct weir_utf8 *u, __u8 c)
{
	u->low = 0x80;
	u->high = 0xbf;
	if (c < 0x80) {
		u->more = 0;
	} else if (c >= 0xc2 && c <= 0xdf) {
		u->more = 1;
	} else if (c >= 0xe0 && c <= 0xef) {
		u->more = 2;
		u->low = c == 0xe0 ? 0xa0 : 0x80;
		u->high = c == 0xed ? 0x9f : 0xbf;
	} else if (c >= 0xf0 && c <= 0xf4) {
		u->more = 3;
		u->low = c == 0xf0 ? 0x90 : 0x80;
		u->high = c == 0xf4 ? 0x8f : 0xbf;
	} else {
		u->bad = 1;
	}
}

WEIR_INLINE void weir_utf8_byte(struct weir_utf8 *u, __u8 c)
{
	if (!u->more) {
		weir_utf8_begin(u, c);
		return;
	}
	if (c < u->low || c > u->high)
		u->bad = 1;
	u->low = 0x80;
	u->high = 0xbf;
	u->more--;
}

/* Was it text, and has it ended with a character? */
WEIR_INLINE bool weir_utf8_ends(const struct weir_utf8 *u)
{
	return !u->bad && !u->more;
}

#define WEIR_TEXT8(a, b, c, d, e, f, g, h)                                                                          \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | (__u64)(f) << 40 | \
	 (__u64)(g) << 48 | (__u64)(h) << 56)

/* A verb's text: its first and its next eight bytes, the first one lowest, zeros behind the end. */
WEIR_INLINE enum weir_verb weir_verb_of_text(__u64 first, __u64 next)
{
	if (next)
		return first == WEIR_TEXT8('d', 'e', 'l', 'e', 't', 'e', 'c', 'o') &&
				       next == WEIR_TEXT8('l', 'l', 'e', 'c', 't', 'i', 'o', 'n') ?
			       WEIR_VERB_DELETECOLLECTION :
			       WEIR_VERB_OTHER;
	switch (first) {
	case 0:
		return WEIR_VERB_NONE;
	case WEIR_TEXT8('g', 'e', 't', 0, 0, 0, 0, 0):
		return WEIR_VERB_GET;
	case WEIR_TEXT8('l', 'i', 's', 't', 0, 0, 0, 0):
		return WEIR_VERB_LIST;
	case WEIR_TEXT8('w', 'a', 't', 'c', 'h', 0, 0, 0):
		return WEIR_VERB_WATCH;
	case WEIR_TEXT8('c', 'r', 'e', 'a', 't', 'e', 0, 0):
		return WEIR_VERB_CREATE;
	case WEIR_TEXT8('u', 'p', 'd', 'a', 't', 'e', 0, 0):
		return WEIR_VERB_UPDATE;
	case WEIR_TEXT8('p', 'a', 't', 'c', 'h', 0, 0, 0):
		return WEIR_VERB_PATCH;
	case WEIR_TEXT8('d', 'e', 'l', 'e', 't', 'e', 0, 0):
		return WEIR_VERB_DELETE;
	case WEIR_TEXT8('p', 'r', 'o', 'x', 'y', 0, 0, 0):
		return WEIR_VERB_PROXY;
	case WEIR_TEXT8('h', 'e', 'a', 'd', 0, 0, 0, 0):
		return WEIR_VERB_HEAD;
	case WEIR_TEXT8('p', 'o', 's', 't', 0, 0, 0, 0):
		return WEIR_VERB_POST;
	case WEIR_TEXT8('p', 'u', 't', 0, 0, 0, 0, 0):
		return WEIR_VERB_PUT;
	case WEIR_TEXT8('o', 'p', 't', 'i', 'o', 'n', 's', 0):
		return WEIR_VERB_OPTIONS;
	case WEIR_TEXT8('c', 'o', 'n', 'n', 'e', 'c', 't', 0):
		return WEIR_VERB_CONNECT;
	default:
		return WEIR_VERB_OTHER;
	}
}

/* The same of a subresource: those of pods, services and nodes that Kubernetes takes for long-running. */
WEIR_INLINE bool weir_text_is_interactive(__u64 first, __u64 next)
{
	if (next)
		return first == WEIR_TEXT8('p', 'o', 'r', 't', 'f', 'o', 'r', 'w') &&
		       next == WEIR_TEXT8('a', 'r', 'd', 0, 0, 0, 0, 0);
	return first == WEIR_TEXT8('e', 'x', 'e', 'c', 0, 0, 0, 0) ||
	       first == WEIR_TEXT8('a', 't', 't', 'a', 'c', 'h', 0, 0) ||
	       first == WEIR_TEXT8('p', 'r', 'o', 'x', 'y', 0, 0, 0) ||
	       first == WEIR_TEXT8('l', 'o', 'g', 0, 0, 0, 0, 0);
}

/* Do a path's first bytes end here, or one of its segments? */
WEIR_INLINE bool weir_text_segment_ends(__u64 c)
{
	return !c || c == '/' || c == '?';
}

/* The path of a health check, or one below it: "/livez", "/livez/etcd". */
WEIR_INLINE bool weir_text_is_health(__u64 first, __u64 next)
{
	if (first == WEIR_TEXT8('/', 'h', 'e', 'a', 'l', 't', 'h', 'z'))
		return weir_text_segment_ends(next & 0xff);
	if (first << 8 == WEIR_TEXT8(0, '/', 'r', 'e', 'a', 'd', 'y', 'z'))
		return weir_text_segment_ends(first >> 56);
	return first << 16 == WEIR_TEXT8(0, 0, '/', 'l', 'i', 'v', 'e', 'z') &&
	       weir_text_segment_ends(first >> 48 & 0xff);
}

/* Of a path that has other bytes, servers may make different things. */
WEIR_INLINE bool weir_text_is_plain(__u8 c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
	       c == '/';
}

/* A path that begins with "/debug/pprof/". */
WEIR_INLINE bool weir_text_is_profile(__u64 first, __u64 next)
{
	return first == WEIR_TEXT8('/', 'd', 'e', 'b', 'u', 'g', '/', 'p') &&
	       (next & 0xffffffffffULL) == WEIR_TEXT8('p', 'r', 'o', 'f', '/', 0, 0, 0);
}

#endif
