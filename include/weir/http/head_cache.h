/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A cache of heads. Who polls asks the same each time, and the answers of a second are often the same. What the reading of a head has
 * come to is kept under a key, which is a digest (digest.h) of the payload that begins with the head, and of what else the reading hangs
 * on. Where such a payload comes again, its head is not read again.
 *
 * A head is kept when all of it has been read but its last LF: what follows from its end is done each time. No text is kept.
 */
#ifndef WEIR_HTTP_HEAD_CACHE_H
#define WEIR_HTTP_HEAD_CACHE_H

#include "weir/base/seal.h"
#include "weir/http/digest.h"
#include "weir/http/request.h"
#include "weir/http/response.h"

/* Bytes of a payload: how many it must have to have a key, may have, and of how many words are looked at at once. */
#define WEIR_CACHE_MIN 32
#define WEIR_CACHE_MAX 448
#define WEIR_CACHE_STEP 32
#define WEIR_CACHE_OFFSETS 512 /* a power of 2: by it verifiers see how far behind its begin a payload is looked at, */
#define WEIR_CACHE_ROOM \
	(WEIR_CACHE_OFFSETS + WEIR_CACHE_STEP) /* and want so many bytes of memory that is not a packet */
_Static_assert(WEIR_CACHE_MAX <= WEIR_CACHE_OFFSETS, "each place of a payload is one of them");

/* The words of a key: those of the payload, whole steps of it and then the last step, and two that say what is read. */
#define WEIR_CACHE_LAST (WEIR_CACHE_MAX / 8)
#define WEIR_CACHE_LENGTH (WEIR_CACHE_LAST + WEIR_CACHE_STEP / 8)
#define WEIR_CACHE_SEAL (WEIR_CACHE_LENGTH + 1)
_Static_assert(WEIR_CACHE_SEAL < WEIR_DIGEST_WORDS, "a number for each word");

#define WEIR_CACHE_WAIT_MAX 63

struct weir_cached_request {
	__u64 key;    /* 0: nothing is kept */
	__u64 digest; /* of the request, where the payload has one and all of it was read; 0: it is not known */
	struct weir_request request;
};
WEIR_ASSERT_SIZE(struct weir_cached_request, 392);

struct weir_cached_response {
	__u64 key; /* 0: nothing is kept */
	struct weir_response response;
};
WEIR_ASSERT_SIZE(struct weir_cached_response, 72);

/* Where heads differ each time, few of them are looked for: each one in vain doubles the number of those that are not. */
struct weir_cache_wait {
	__u32 left; /* heads that are not looked for yet */
	__u32 next; /* how many, after the next one in vain */
};
WEIR_ASSERT_SIZE(struct weir_cache_wait, 8);

/* Is the next head not looked for? */
WEIR_INLINE bool weir_cache_waits(struct weir_cache_wait *wait)
{
	if (!wait->left)
		return false;
	wait->left--;
	return true;
}

WEIR_INLINE void weir_cache_hit(struct weir_cache_wait *wait)
{
	wait->next = 0;
}

WEIR_INLINE void weir_cache_missed(struct weir_cache_wait *wait)
{
	wait->left = wait->next;
	wait->next = wait->next < WEIR_CACHE_WAIT_MAX ? 2 * wait->next + 1 : WEIR_CACHE_WAIT_MAX;
}

/* The words of a step, of which the first is the digest's word n. */
WEIR_INLINE void weir_cache_step(struct weir_digest *d, const struct weir_digest_keys *keys, __u32 n, const __u8 *bytes)
{
	WEIR_UNROLLED
	for (__u32 i = 0; i < WEIR_CACHE_STEP / 8; i++)
		weir_digest_add(d, keys, n + i, weir_window_word_of(bytes + 8 * i));
}

/* Has a payload of n bytes a key? */
WEIR_INLINE bool weir_cache_fits(__u32 n)
{
	return n >= WEIR_CACHE_MIN && n <= WEIR_CACHE_MAX;
}

/*
 * The key of the n bytes at `data`, of which what lies before `end` can be read. seal: of what else the reading hangs on. 0: there is no key,
 * for the bytes are too few, too many, or not all there.
 */
WEIR_INLINE __u64 weir_cache_key(const struct weir_digest_keys *keys, __u64 seal, const __u8 *data, const __u8 *end,
				 __u32 n)
{
	struct weir_digest d = keys->begin;
	const __u8 *last;

	if (!weir_cache_fits(n))
		return 0;
	last = data + (n - WEIR_CACHE_STEP) % WEIR_CACHE_OFFSETS;
	if (last + WEIR_CACHE_STEP > end)
		return 0;
	weir_digest_add(&d, keys, WEIR_CACHE_SEAL, seal);
	weir_digest_add(&d, keys, WEIR_CACHE_LENGTH, n);
	weir_cache_step(&d, keys, WEIR_CACHE_LAST, last);
	WEIR_ROLLED
	for (__u32 at = 0; at < WEIR_CACHE_MAX; at += WEIR_CACHE_STEP) {
		if (n - at < WEIR_CACHE_STEP || data + at + WEIR_CACHE_STEP > end)
			break;
		weir_cache_step(&d, keys, at / 8, data + at);
	}
	return weir_digest_end(&d);
}

/* Does all that was read from `begin` on to `next` belong to one head? position: struct weir_framing's. */
WEIR_INLINE bool weir_cache_may_keep(__u32 begin, __u32 next, __u32 position)
{
	return next - begin == position;
}

/* The words from offset `from` on, up to `end`. */
WEIR_INLINE void weir_cache_copy(struct weir_request *to, const struct weir_request *r, __u32 from, __u32 end)
{
	WEIR_UNROLLED
	for (__u32 at = from; at < end; at += 8)
		*(weir_sealed_word *)((__u8 *)to + at) = *(const weir_sealed_word *)((const __u8 *)r + at);
}

/* All but the hash, which is for the name that is being read, and segments that the path has not; to: as it is before a head, or kept before. */
WEIR_INLINE void weir_cache_copy_request(struct weir_request *to, const struct weir_request *r)
{
	const __u32 size = sizeof(struct weir_path_segment),
		    first = __builtin_offsetof(struct weir_request, path.segments);

	weir_cache_copy(to, r, 0, __builtin_offsetof(struct weir_request, hash));
	weir_cache_copy(to, r, __builtin_offsetof(struct weir_request, path.segments[WEIR_PATH_SELECTED]), sizeof(*r));
	WEIR_UNROLLED
	for (__u32 i = 0; i < WEIR_PATH_SEGMENTS && WEIR_FRESH(r->path.count) > i; i++)
		weir_cache_copy(to, r, first + size * i, first + size * (i + 1));
}

/*
 * May the head be kept that has been read from `begin` on to `next`, which is its last LF? Groups, also that of a service account, are looked
 * up while it is read, and may not be the same the next time.
 */
WEIR_INLINE bool weir_cache_takes_request(const struct weir_request *r, __u32 begin, __u32 next)
{
	return !r->head_length && !r->group_subject && weir_cache_may_keep(begin, next, r->framing.position);
}

#endif
