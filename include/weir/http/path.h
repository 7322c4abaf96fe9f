/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path of a request, cut into segments as its server does it (enum weir_paths in reading.h). The names of the first
 * ones are kept as subjects, whose bytes request_line.h feeds to the hash; what they mean is attributes.h's affair.
 */
#ifndef WEIR_HTTP_PATH_H
#define WEIR_HTTP_PATH_H

#include "weir/base/frame.h"
#include "weir/base/reading.h"
#include "weir/base/subject.h"
#include "weir/base/types.h"

#define WEIR_PATH_SEGMENTS 9 /* apis/GROUP/VERSION/watch/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE */
#define WEIR_PATH_SELECTED WEIR_PATH_SEGMENTS /* the place of a name that the query selects */
#define WEIR_SEGMENT_NONE 255

/* Segments that mean something, at most 15 bytes each. */
#define WEIR_WORDS(X)                     \
	X(API, "api")                     \
	X(APIS, "apis")                   \
	X(WATCH, "watch")                 \
	X(PROXY, "proxy")                 \
	X(NAMESPACES, "namespaces")       \
	X(STATUS, "status")               \
	X(FINALIZE, "finalize")           \
	X(LOG, "log")                     \
	X(EXEC, "exec")                   \
	X(ATTACH, "attach")               \
	X(PORTFORWARD, "portforward")     \
	X(EVENTS, "events")               \
	X(EVENTS_K8S_IO, "events.k8s.io") \
	X(DEBUG, "debug")                 \
	X(PPROF, "pprof")                 \
	X(HEALTHZ, "healthz")             \
	X(LIVEZ, "livez")                 \
	X(READYZ, "readyz")

enum weir_word_id {
	WEIR_WORD_OTHER,
#define X(name, text) WEIR_WORD_##name,
	WEIR_WORDS(X)
#undef X
};

/* Offset (from the request's first byte) and length are those of the raw bytes. */
struct weir_path_segment {
	__u64 subject; /* of kind WEIR_NAME_NAMESPACE, decoded; 0: empty */
	__u16 offset;
	__u16 length;
	__u8 word; /* enum weir_word_id */
	__u8 pad[3];
};
WEIR_ASSERT_SIZE(struct weir_path_segment, 16);

struct weir_path {
	struct weir_path_segment segments[WEIR_PATH_SEGMENTS + 1];
	__u16 offset; /* of its first byte; its length without the query */
	__u16 length;
	__u16 start;   /* of the current name */
	__u16 count;   /* segments so far, also those that are not kept */
	__u16 empty;   /* segments that count when a name follows */
	__u8 odd;      /* some server could read it as another path: percent-encoding, dot segments, ... */
	__u8 open;     /* it ends with a slash */
	__u8 hex_high; /* value of a percent-encoding's first digit */
	__u8 pad[3];
};
WEIR_ASSERT_SIZE(struct weir_path, 176);

/* A literal as it stands in a hash: the kind first, eight bytes to a word, the first one lowest. */
#define WEIR_NAME_BYTE(text, n)                                                                           \
	((__u64)((n) < sizeof("n" text) - 1 ? (__u8)("n" text)[(n) < sizeof("n" text) - 1 ? (n) : 0] : 0) \
	 << ((n) % 8 * 8))
#define WEIR_NAME_WORD(text, n)                                                                          \
	(WEIR_NAME_BYTE(text, n) | WEIR_NAME_BYTE(text, (n) + 1) | WEIR_NAME_BYTE(text, (n) + 2) |       \
	 WEIR_NAME_BYTE(text, (n) + 3) | WEIR_NAME_BYTE(text, (n) + 4) | WEIR_NAME_BYTE(text, (n) + 5) | \
	 WEIR_NAME_BYTE(text, (n) + 6) | WEIR_NAME_BYTE(text, (n) + 7))

/* Compared whole, as far as both words of it are there. */
#define WEIR_NAME_IS(h, text)                                                                                        \
	((h)->length == sizeof("n" text) - 1 && (h)->tail == WEIR_NAME_WORD(text, (sizeof("n" text) - 1) / 8 * 8) && \
	 (sizeof("n" text) - 1 < 8 || (h)->first == WEIR_NAME_WORD(text, 0)))

WEIR_INLINE enum weir_word_id weir_word_of(const struct weir_subject_hash *h)
{
#define X(name, text)              \
	if (WEIR_NAME_IS(h, text)) \
		return WEIR_WORD_##name;
	WEIR_WORDS(X)
#undef X
	return WEIR_WORD_OTHER;
}

/* A path of a health check, however the server reads paths. */
WEIR_INLINE bool weir_path_is_health(const struct weir_path *p)
{
	__u8 word = p->segments[0].word;

	return !p->odd && (word == WEIR_WORD_HEALTHZ || word == WEIR_WORD_LIVEZ || word == WEIR_WORD_READYZ);
}

/* Three segments at least: fewer are no resource. */
WEIR_INLINE bool weir_path_is_of_api(const struct weir_path *p)
{
	return p->count >= 3 && (p->segments[0].word == WEIR_WORD_API || p->segments[0].word == WEIR_WORD_APIS);
}

/* A segment of dots, or one whose rest some servers cut off as a parameter: `..;x`. A name may begin with a dot. */
WEIR_INLINE bool weir_path_is_of_dots(const struct weir_subject_hash *h)
{
	__u64 word = h->length < 8 ? h->tail : h->first;
	__u8 second = word >> 16;

	return (__u8)(word >> 8) == '.' && (h->length == 2 || second == '.' || second == ';');
}

/* Bytes of which servers make different things: encoding, another kind of slash, an end, letters beyond ASCII. */
WEIR_INLINE bool weir_path_byte_is_odd(__u8 c)
{
	return c == '%' || c == '\\' || c == '#' || c >= 0x80;
}

/* The path has ended with what is in h: is there nothing behind its last slash, as the server reads it? */
WEIR_INLINE bool weir_path_ends_open(enum weir_paths paths, const struct weir_subject_hash *h)
{
	return h->length == 1 || (paths == WEIR_PATHS_NGINX && (WEIR_NAME_IS(h, ".") || WEIR_NAME_IS(h, "..")));
}

/*
 * A segment has ended that is none of dots. empty: nothing is in it. The place where it is to be kept, or WEIR_SEGMENT_NONE where it is not.
 */
WEIR_INLINE int weir_path_place_plain(struct weir_path *p, enum weir_paths paths, bool empty)
{
	__u32 place;

	if (empty && paths == WEIR_PATHS_NGINX)
		return WEIR_SEGMENT_NONE;
	if (empty && paths == WEIR_PATHS_KUBERNETES) {
		p->empty += p->count > 0;
		return WEIR_SEGMENT_NONE;
	}
	place = p->count + p->empty;
	p->count = place + 1;
	p->empty = 0;
	return empty || place >= WEIR_PATH_SEGMENTS ? WEIR_SEGMENT_NONE : (int)place;
}

/* The same of the segment whose bytes are in h, or the negative of an enum weir_reason. */
WEIR_INLINE int weir_path_place(struct weir_path *p, enum weir_paths paths, const struct weir_subject_hash *h)
{
	p->odd |= weir_path_is_of_dots(h);
	if (paths == WEIR_PATHS_NGINX && WEIR_NAME_IS(h, "."))
		return WEIR_SEGMENT_NONE;
	if (paths == WEIR_PATHS_NGINX && WEIR_NAME_IS(h, "..")) {
		if (!p->count)
			return -WEIR_BAD_PATH;
		p->count--;
		return WEIR_SEGMENT_NONE;
	}
	return weir_path_place_plain(p, paths, h->length == 1);
}

/* end: offset of the first raw byte that does not belong to it */
WEIR_INLINE void weir_path_keep(struct weir_path *p, __u32 place, const struct weir_subject_hash *h, __u32 end)
{
	struct weir_path_segment segment = {
		.subject = weir_subject_end(h),
		.offset = p->start,
		.length = end - p->start,
		.word = weir_word_of(h),
	};
	__u64 at = place;

	WEIR_BARRIER(at);
	if (at <= WEIR_PATH_SELECTED)
		p->segments[at] = segment;
}

#endif
