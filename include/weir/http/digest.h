/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tells two readings apart by 64 bits: a sum of words, each multiplied by a secret number, modulo 2^64 (multilinear hashing: J. L.
 * Carter, M. N. Wegman, "Universal classes of hash functions", 1979; modulo a power of two: M. Dietzfelbinger, "Universal hashing and
 * k-wise independent random variables via integer arithmetic without primes", 1996). A word of 0 adds nothing, and may be left out.
 *
 * Where the lowest different bit of two words is bit t, their products do not differ below bit t, and from there on as the key wants.
 * So there are two sums with a key each, of the words as they are and of their bytes in reverse order, and the digest is the first one
 * XORed with the second one in reverse order. Let a word of two readings differ in byte b at the lowest, there from bit i on, and in
 * byte c at the highest. The first sum then is the key's from bit i of byte b on. The second one, in reverse order, is it in all bytes
 * below c, and in what is above some bit of byte c. As b is not above c, at most seven bits of the digest, all in one byte where b is
 * c, are not the key's: with any two readings, who does not know the key has one chance in 2^57 that their digests are the same. A
 * client never sees a digest. It learns only whether two were the same, and each try is a request that is decided.
 */
#ifndef WEIR_HTTP_DIGEST_H
#define WEIR_HTTP_DIGEST_H

#include "weir/base/subject.h"
#include "weir/base/types.h"

#define WEIR_DIGEST_WORDS 64

/* Also of the two sums themselves. */
struct weir_digest {
	__u64 forward;
	__u64 backward;
};

struct weir_digest_keys {
	struct weir_digest begin;
	struct weir_digest of[WEIR_DIGEST_WORDS];
};

/* n: which of the WEIR_DIGEST_WORDS it is */
WEIR_INLINE void weir_digest_add(struct weir_digest *d, const struct weir_digest_keys *keys, __u32 n, __u64 word)
{
	d->forward += word * keys->of[n].forward;
	d->backward += __builtin_bswap64(word) * keys->of[n].backward;
	/* One word at a time: there are registers for no more. */
	WEIR_BARRIER(d->forward);
	WEIR_BARRIER(d->backward);
}

/* 0 is no digest. */
WEIR_INLINE __u64 weir_digest_end(const struct weir_digest *d)
{
	__u64 digest = d->forward ^ __builtin_bswap64(d->backward);

	return digest ? digest : 1;
}

/* Each key is the subject of its number: of no name, by its kind. */
WEIR_INLINE void weir_digest_keys_make(struct weir_digest_keys *keys, const __u64 seed[2])
{
	__u64 word[sizeof(*keys) / 8];

	for (__u32 i = 0; i < sizeof(*keys) / 8; i++) {
		struct weir_subject_hash h;

		weir_subject_start(&h, seed, 0);
		weir_subject_byte(&h, i);
		word[i] = weir_subject_end(&h);
	}
	__builtin_memcpy(keys, word, sizeof(*keys));
}

#endif
