/* SPDX-License-Identifier: GPL-2.0 */
/* How a server's requests are to be read: part of struct weir_server (abi.h), so that programs find it in `servers`. */
#ifndef WEIR_READING_H
#define WEIR_READING_H

#include "types.h"

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

struct weir_reading {
	__u64 seed[2];		      /* of the subjects' hash, the same as in struct weir_settings */
	struct weir_word user_header; /* X-Remote-User, unless the server calls it otherwise */
};
WEIR_ASSERT_SIZE(struct weir_reading, 48);

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

/* What holds where nothing else is asked for, but for the seed. */
WEIR_INLINE void weir_reading_default(struct weir_reading *how)
{
	weir_word_set(&how->user_header, "x-remote-user", 13);
}

#endif
