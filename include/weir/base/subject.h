/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Subjects: names hashed whole, one byte at a time, under a random key, so that a client can not choose names that fall
 * together. The hash is SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012); its
 * message is the name's kind (enum weir_name_kind in abi.h), then the name's bytes, so a user and a namespace of one
 * name are two subjects. 0 is no subject: a hash of 0 becomes 1.
 */
#ifndef WEIR_BASE_SUBJECT_H
#define WEIR_BASE_SUBJECT_H

#include "weir/base/types.h"

#define WEIR_ADDRESS_BYTES 16

struct weir_subject_hash {
	__u64 state[4];
	__u64 first;  /* the first eight bytes, once they are there */
	__u64 tail;   /* bytes not yet taken into the state, the first one lowest */
	__u32 length; /* bytes fed, the kind included */
	__u32 pad;
};
WEIR_ASSERT_SIZE(struct weir_subject_hash, 56);

WEIR_INLINE __u64 weir_rotate_left(__u64 x, __u32 bits)
{
	return x << bits | x >> (64 - bits);
}

WEIR_INLINE void weir_subject_round(__u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = weir_rotate_left(v[1], 13) ^ v[0];
	v[3] = weir_rotate_left(v[3], 16) ^ v[2];
	v[0] = weir_rotate_left(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = weir_rotate_left(v[1], 17) ^ v[2];
	v[3] = weir_rotate_left(v[3], 21) ^ v[0];
	v[2] = weir_rotate_left(v[2], 32);
}

WEIR_INLINE void weir_subject_compress(__u64 v[4], __u64 word)
{
	v[3] ^= word;
	weir_subject_round(v);
	weir_subject_round(v);
	v[0] ^= word;
}

WEIR_INLINE void weir_subject_start(struct weir_subject_hash *h, const __u64 seed[2], __u8 kind)
{
	h->state[0] = seed[0] ^ 0x736f6d6570736575ULL;
	h->state[1] = seed[1] ^ 0x646f72616e646f6dULL;
	h->state[2] = seed[0] ^ 0x6c7967656e657261ULL;
	h->state[3] = seed[1] ^ 0x7465646279746573ULL;
	h->first = 0;
	h->tail = kind;
	h->length = 1;
	h->pad = 0;
}

WEIR_INLINE void weir_subject_byte(struct weir_subject_hash *h, __u8 c)
{
	h->tail |= (__u64)c << (h->length % 8 * 8);
	h->length++;
	if (h->length % 8)
		return;
	if (h->length == 8)
		h->first = h->tail;
	weir_subject_compress(h->state, h->tail);
	h->tail = 0;
}

/* Up to eight bytes at once, the first one lowest. What lies above them is 0. */
WEIR_INLINE void weir_subject_bytes(struct weir_subject_hash *h, __u64 bytes, __u32 n)
{
	__u32 have = h->length % 8;

	h->tail |= bytes << (have * 8);
	h->length += n;
	if (have + n < 8)
		return;
	if (h->length - n < 8)
		h->first = h->tail;
	weir_subject_compress(h->state, h->tail);
	h->tail = have ? bytes >> (64 - have * 8) : 0;
}

/* A character as UTF-8 (RFC 3629) has it. code: at most 0x10ffff */
WEIR_INLINE void weir_subject_character(struct weir_subject_hash *h, __u32 code)
{
	__u32 bytes = 0x80 | (code & 0x3f), n = 1;

	if (code < 0x80) {
		bytes = code;
	} else if (code < 0x800) {
		bytes = bytes << 8 | 0xc0 | code >> 6;
		n = 2;
	} else {
		bytes = bytes << 8 | 0x80 | (code >> 6 & 0x3f);
		n = 3;
		if (code >= 0x10000) {
			bytes = bytes << 8 | 0x80 | (code >> 12 & 0x3f);
			n = 4;
		}
		bytes = bytes << 8 | (n == 3 ? 0xe0 | code >> 12 : 0xf0 | code >> 18);
	}
	weir_subject_bytes(h, bytes, n);
}

/* Leaves `h` as it is: more bytes may follow, for a longer name. */
WEIR_INLINE __u64 weir_subject_end(const struct weir_subject_hash *h)
{
	__u64 v[4] = { h->state[0], h->state[1], h->state[2], h->state[3] };
	__u64 subject;

	weir_subject_compress(v, h->tail | h->length * (1ULL << 56));
	v[2] ^= 0xff;
	weir_subject_round(v);
	weir_subject_round(v);
	weir_subject_round(v);
	weir_subject_round(v);
	subject = v[0] ^ v[1] ^ v[2] ^ v[3];
	return subject ? subject : 1;
}

/* Is it an IPv4 address, as ::ffff:a.b.c.d? */
WEIR_INLINE bool weir_address_is_ipv4(const __u8 address[WEIR_ADDRESS_BYTES])
{
	__u32 high = 0;

	for (int i = 0; i < 10; i++)
		high |= address[i];
	return !high && address[10] == 0xff && address[11] == 0xff;
}

/* The subject of a name of WEIR_ADDRESS_BYTES bytes at once. */
WEIR_INLINE __u64 weir_subject_of_address(const __u64 seed[2], __u8 kind, const __u8 address[WEIR_ADDRESS_BYTES])
{
	struct weir_subject_hash h;
	__u32 i;

	weir_subject_start(&h, seed, kind);
#pragma GCC unroll 16
	for (i = 0; i < WEIR_ADDRESS_BYTES; i++)
		weir_subject_byte(&h, address[i]);
	return weir_subject_end(&h);
}

#endif
