/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which of a server's limits are for a request. Each limit has rules; a rule has conditions in some dimensions (who asks,
 * what for, where, from where) and matches a request that meets all of them. Rules are numbered; for each value that some
 * rule names there is a vector with a bit for each rule whose condition in that dimension is met by it. One look-up in
 * each dimension, and the AND of what is found, is the set of the rules that match: the cost does not grow with their
 * number. (T. V. Lakshman, D. Stiliadis, "High-Speed Policy-Based Packet Forwarding Using Efficient Multi-Dimensional Range
 * Matching", SIGCOMM 1998; the summary is the aggregation of F. Baboescu, G. Varghese, "Scalable Packet Classification",
 * SIGCOMM 2001.)
 *
 * The numbers are the order: rules of one limit stand together, those of all flow schemas too, by their precedence. When a
 * rule has matched, the rules up to its `next` are not looked at.
 */
#ifndef WEIR_LIMIT_MATCH_H
#define WEIR_LIMIT_MATCH_H

#include "weir/base/groups.h"
#include "weir/base/types.h"

#define WEIR_RULES_MAX 1024
#define WEIR_VECTOR_WORDS (WEIR_RULES_MAX / 64)
#define WEIR_MATCHES_MAX 16 /* limits that one request may be charged to, those that every server has among them */
#define WEIR_NAMED_MAX 12   /* of these with rules */

/* The dimensions, and what is looked up in each. */
enum weir_dimension {
	WEIR_DIMENSION_SUBJECT,	    /* a user's subject; one who is also of a group has the groups' vectors, too */
	WEIR_DIMENSION_CALL,	    /* weir_call() */
	WEIR_DIMENSION_API_GROUP,   /* its subject; 0: the core group */
	WEIR_DIMENSION_RESOURCE,    /* weir_pair() of the resource's subject and the subresource's */
	WEIR_DIMENSION_SUBRESOURCE, /* its subject; 0: none */
	WEIR_DIMENSION_NAMESPACE,   /* the one that is charged; 0: none */
	WEIR_DIMENSION_PATH,	    /* weir_path_exact(), joined with weir_path_below() of each of its prefixes */
	WEIR_DIMENSION_SOURCE,	    /* the peer's address, by the longest prefix: in a trie of its own */
	WEIR_DIMENSIONS,
	WEIR_DIMENSION_GROUP = WEIR_DIMENSIONS, /* for look-ups only: a known group's bit; joins the user's vector */
};

/* A value's own vector is complete: it has those of `any` that the value meets, too. */
struct weir_vector {
	__u64 words[WEIR_VECTOR_WORDS];
	__u32 summary; /* bit n: words[n] is not 0; may have bits too many, never too few */
	__u32 pad;
};
WEIR_ASSERT_SIZE(struct weir_vector, 136);

/* Keys of the map `vectors`, and of its trie `sources`. Generations let a server's rules change at once. */
struct weir_vector_key {
	__u32 generation;
	__u16 server;
	__u16 dimension; /* enum weir_dimension */
	__u64 value;
};
WEIR_ASSERT_SIZE(struct weir_vector_key, 16);

struct weir_source_key {
	__u32 prefixlen; /* 64 + bits of the address */
	__u32 generation;
	__u32 server;
	__u8 address[16]; /* network order; IPv4 as ::ffff:a.b.c.d */
};
WEIR_ASSERT_SIZE(struct weir_source_key, 28);

#define WEIR_RULE_EXEMPT 0xffff	 /* no limit is for the request */
#define WEIR_RULE_NOTHING 0xfffe /* none of those up to `next` is */

struct weir_rule {
	__u16 limit; /* its slot, or one of the above */
	__u16 next;  /* the rule to go on with when this one has matched; above its own number */
};
WEIR_ASSERT_SIZE(struct weir_rule, 4);

struct weir_rules_key {
	__u32 server;
	__u32 generation;
};
WEIR_ASSERT_SIZE(struct weir_rules_key, 8);

struct weir_rules {
	__u32 dimensions;	       /* bit n: some rule has a condition in dimension n */
	__u32 prefixes;		       /* bit n: some rule has a path's prefix of n segments */
	__u64 groups[WEIR_GROUPS_MAX]; /* by bit: the group's subject, as a limit's key has it; 0: not known */
	struct weir_vector all;	       /* a bit for each rule there is */
	struct weir_vector odd; /* those for a path that servers may read in more than one way: it exempts nobody */
	struct weir_vector any[WEIR_DIMENSIONS]; /* rules that are met by a value without a vector of its own */
	struct weir_rule rules[WEIR_RULES_MAX];
};
WEIR_ASSERT_SIZE(struct weir_rules, 6488);

/* --- what is looked up */

#define WEIR_CALL_LONG_RUNNING (1 << 4)
#define WEIR_CALL_RESOURCE (1 << 5)
#define WEIR_CALLS 64
#define WEIR_CALL_CONNECT 64 /* no request: a new connection (admission.h) */

/* verb: enum weir_verb */
WEIR_INLINE __u64 weir_call(__u32 verb, bool long_running, bool resource)
{
	return verb | (long_running ? WEIR_CALL_LONG_RUNNING : 0) | (resource ? WEIR_CALL_RESOURCE : 0);
}

/* Of two subjects, in this order: they are secret hashes, so no client can choose what falls together. */
WEIR_INLINE __u64 weir_pair(__u64 a, __u64 b)
{
	__u64 x = a * 0x9e3779b97f4a7c15ULL + b + 1;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	return x ? x : 1;
}

/* Of a path's segments: 0 is that of none, and each goes on from the one before. */
WEIR_INLINE __u64 weir_path_further(__u64 path, __u64 segment)
{
	return weir_pair(path + 1, segment);
}

/* The whole path; open: it ends with a slash. */
WEIR_INLINE __u64 weir_path_exact(__u64 path, bool open)
{
	return weir_pair(path, open ? 3 : 2);
}

/* What is below it: behind a slash. */
WEIR_INLINE __u64 weir_path_below(__u64 path)
{
	return weir_pair(path, 1);
}

/* --- sets of rules */

WEIR_INLINE void weir_vector_add(struct weir_vector *v, __u32 rule)
{
	if (rule >= WEIR_RULES_MAX)
		return;
	v->words[rule / 64] |= 1ULL << (rule % 64);
	v->summary |= 1U << (rule / 64);
}

WEIR_INLINE bool weir_vector_has(const struct weir_vector *v, __u32 rule)
{
	return rule < WEIR_RULES_MAX && (v->words[rule / 64] >> (rule % 64) & 1);
}

WEIR_INLINE void weir_vector_join(struct weir_vector *v, const struct weir_vector *more)
{
	__u32 i;

	v->summary |= more->summary;
#pragma GCC unroll 16
	for (i = 0; i < WEIR_VECTOR_WORDS; i++)
		v->words[i] |= more->words[i];
}

WEIR_INLINE void weir_vector_meet(struct weir_vector *v, const struct weir_vector *other)
{
	__u32 i;

	v->summary &= other->summary;
#pragma GCC unroll 16
	for (i = 0; i < WEIR_VECTOR_WORDS; i++)
		v->words[i] &= other->words[i];
}

/* The place of the lowest bit; x is not 0. Without branches, of which a verifier would follow each way. */
WEIR_INLINE __u32 weir_lowest_bit(__u64 x)
{
	x = (x & -x) - 1;
	x -= x >> 1 & 0x5555555555555555ULL;
	x = (x & 0x3333333333333333ULL) + (x >> 2 & 0x3333333333333333ULL);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return x * 0x0101010101010101ULL >> 56;
}

/*
 * The first rule of the set from `at` on; WEIR_RULES_MAX: there is none. After a word that turns out to be empty it says the
 * number of the next word's first rule with *found false: it is to be asked again from there. That happens at most
 * WEIR_VECTOR_WORDS times in all.
 */
WEIR_INLINE __u32 weir_vector_next(const struct weir_vector *v, __u32 at, bool *found)
{
	__u32 words, index;
	__u64 word;

	*found = false;
	if (at >= WEIR_RULES_MAX)
		return WEIR_RULES_MAX;
	words = v->summary >> (at / 64) << (at / 64);
	if (!words)
		return WEIR_RULES_MAX;
	index = weir_lowest_bit(words) & (WEIR_VECTOR_WORDS - 1);
	word = v->words[index];
	if (index == at / 64)
		word = word >> (at % 64) << (at % 64);
	if (!word)
		return (index + 1) * 64;
	*found = true;
	return index * 64 + weir_lowest_bit(word);
}

/* --- what follows from a match */

/* Steps that are enough for any set. */
#define WEIR_MATCH_STEPS (WEIR_VECTOR_WORDS + WEIR_NAMED_MAX + 2)

/*
 * One step along the set of the rules that match, from number *at on; over when that is WEIR_RULES_MAX. The slot of a limit
 * that is for the request; WEIR_RULE_EXEMPT: none is, nor were those before; WEIR_RULE_NOTHING: nothing yet.
 */
WEIR_INLINE __u16 weir_match_step(const struct weir_vector *set, const struct weir_rule rules[WEIR_RULES_MAX],
				  __u32 *at)
{
	struct weir_rule rule;
	__u64 number;
	bool found;

	number = weir_vector_next(set, *at, &found);
	WEIR_BARRIER(number);
	if (!found || number >= WEIR_RULES_MAX) {
		*at = number;
		return WEIR_RULE_NOTHING;
	}
	rule = rules[number];
	*at = rule.limit == WEIR_RULE_EXEMPT || rule.next <= number ? WEIR_RULES_MAX : rule.next;
	return rule.limit;
}

#endif
