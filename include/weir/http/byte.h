/* SPDX-License-Identifier: GPL-2.0 */
/* What kind of byte stands in a head; and literals as words of eight of them. */
#ifndef WEIR_HTTP_BYTE_H
#define WEIR_HTTP_BYTE_H

#include "weir/base/reason.h"
#include "weir/base/types.h"

/* RFC 9110, 5.6.2: one bit for each of the 128 ASCII bytes. */
WEIR_INLINE bool weir_is_tchar(__u8 c)
{
	__u64 set = c & 64 ? 0x57ffffffc7fffffeULL : 0x03ff6cfa00000000ULL;

	return c < 128 && set >> (c & 63) & 1;
}

/* What a header's value may hold. */
WEIR_INLINE bool weir_is_text(__u8 c)
{
	return (c >= ' ' && c != 0x7f) || c == '\t';
}

/* What a word of the start line may hold. */
WEIR_INLINE bool weir_is_visible(__u8 c)
{
	return c > ' ' && c != 0x7f;
}

WEIR_INLINE bool weir_is_blank(__u8 c)
{
	return c == ' ' || c == '\t';
}

WEIR_INLINE bool weir_is_digit(__u8 c)
{
	return c >= '0' && c <= '9';
}

WEIR_INLINE __u8 weir_lower(__u8 c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* -1: not a hexadecimal digit */
WEIR_INLINE int weir_hex_digit(__u8 c)
{
	__u8 lower = weir_lower(c);

	if (weir_is_digit(c))
		return c - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The reason of a byte that may not stand where it does: those that split readers have names of their own. */
WEIR_INLINE int weir_bad_byte(__u8 c, int otherwise)
{
	if (c == '\n')
		return -WEIR_BARE_LF;
	return c ? -otherwise : -WEIR_NUL_BYTE;
}

/* A literal's byte, counted from its last one, and its bytes packed as in a token: constants, made by the compiler. */
#define WEIR_TEXT_BYTE(text, n) \
	((__u64)((n) < sizeof(text) - 1 ? (text)[(n) < sizeof(text) - 1 ? sizeof(text) - 2 - (n) : 0] : 0))
#define WEIR_TEXT_HALF(text, n)                                                                               \
	(WEIR_TEXT_BYTE(text, n) | WEIR_TEXT_BYTE(text, (n) + 1) << 8 | WEIR_TEXT_BYTE(text, (n) + 2) << 16 | \
	 WEIR_TEXT_BYTE(text, (n) + 3) << 24)
#define WEIR_TEXT_WORD(text, n) (WEIR_TEXT_HALF(text, 8 * (n)) | WEIR_TEXT_HALF(text, 8 * (n) + 4) << 32)

#endif
