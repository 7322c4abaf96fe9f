/* SPDX-License-Identifier: GPL-2.0 */
/* How a server's requests are to be read: part of struct weir_server (abi.h), so that programs find it in `servers`. */
#ifndef WEIR_BASE_READING_H
#define WEIR_BASE_READING_H

#include "weir/base/seal.h"
#include "weir/base/types.h"

#define WEIR_TOKEN_MAX 24 /* bytes of a token that are kept */

/*
 * A short name, lower case, as the framing machines keep what they read (struct weir_framing's token): the last byte
 * lowest. length 0: no name, which nothing equals.
 */
struct weir_word {
	__u64 bytes[3];
	__u8 length;
	__u8 pad[7];
};
WEIR_ASSERT_SIZE(struct weir_word, 32);

/*
 * How the server makes a path's segments of its bytes.
 *   kubernetes  decoded, then cut at slashes, %2F among them; slashes at either end are not there; dots are names
 *   nginx       decoded, several slashes are one, dot segments are resolved, and what comes after # is not there
 *   raw         cut at slashes, whatever lies between them
 */
#define WEIR_PATHS(X)               \
	X(KUBERNETES, "kubernetes") \
	X(NGINX, "nginx")           \
	X(RAW, "raw")

enum weir_paths {
#define X(name, text) WEIR_PATHS_##name,
	WEIR_PATHS(X)
#undef X
	WEIR_PATHS_COUNT
};

/* What names the namespace that a request is charged to. */
enum weir_tenant {
	WEIR_TENANT_PATH,    /* the path, by Kubernetes' rule */
	WEIR_TENANT_SEGMENT, /* segment n of the path, from 1 */
	WEIR_TENANT_PREFIX,  /* the segment after n certain ones */
	WEIR_TENANT_HEADER,  /* WEIR_HEADER_NAMESPACE */
};

#define WEIR_PREFIX_SEGMENTS 8

/* Headers that say whose a request is. */
enum weir_header {
	WEIR_HEADER_USER,
	WEIR_HEADER_GROUP,
	WEIR_HEADER_TOKEN, /* Authorization, whose bearer tokens are read */
	WEIR_HEADER_NAMESPACE,
	WEIR_HEADER_IMPERSONATE, /* noted, its value is not read */
	WEIR_HEADERS,
};

struct weir_reading {
	__u64 seed[2];				/* of the subjects' hash, the same as in struct weir_settings */
	struct weir_word headers[WEIR_HEADERS]; /* enum weir_header: their names */
	__u64 prefix[WEIR_PREFIX_SEGMENTS];	/* subjects of kind WEIR_NAME_NAMESPACE */
	__u32 lengths;				/* bit n: one of the headers' names has n bytes */
	__u8 paths;				/* enum weir_paths */
	__u8 tenant;				/* enum weir_tenant */
	__u8 tenant_segments;			/* n */
	__u8 pad;
	__u64 seal; /* weir_reading_seal(): heads that were read so are known by it (head_cache.h); 0: none is kept */
};
WEIR_ASSERT_SIZE(struct weir_reading, 256);
_Static_assert(__builtin_offsetof(struct weir_reading, seal) / 8 <= 32, "weir_seal() takes no more words");

/* Of all that stands before the seal. */
WEIR_INLINE __u64 weir_reading_seal(const struct weir_reading *how)
{
	return weir_seal(how, __builtin_offsetof(struct weir_reading, seal), 0);
}

/* text: lower case. -1: longer than a word can be; the word is untouched then. */
WEIR_INLINE int weir_word_set(struct weir_word *word, const char *text, __u32 length)
{
	__u32 i;

	if (length > WEIR_TOKEN_MAX)
		return -1;
	*word = (struct weir_word){ .length = length };
	for (i = 0; i < length; i++)
		word->bytes[(length - 1 - i) / 8] |= (__u64)(__u8)text[i] << ((length - 1 - i) % 8 * 8);
	return 0;
}

/* Names a header, as weir_word_set() does; length 0: it is not read. */
WEIR_INLINE int weir_reading_name(struct weir_reading *how, enum weir_header header, const char *text, __u32 length)
{
	__u32 i;

	if (weir_word_set(&how->headers[header], text, length))
		return -1;
	how->lengths = 0;
	for (i = 0; i < WEIR_HEADERS; i++)
		how->lengths |= 1U << how->headers[i].length;
	return 0;
}

/* The defaults. The seed is left to the caller. */
WEIR_INLINE void weir_reading_default(struct weir_reading *how)
{
	weir_reading_name(how, WEIR_HEADER_USER, "x-remote-user", 13);
	weir_reading_name(how, WEIR_HEADER_GROUP, "x-remote-group", 14);
	weir_reading_name(how, WEIR_HEADER_IMPERSONATE, "impersonate-user", 16);
}

#endif
