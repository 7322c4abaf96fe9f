/* SPDX-License-Identifier: GPL-2.0 */
/* Reads a Go program's values from the memory of the process that runs. Nothing of it is believed before it is checked. */
#ifndef WEIR_BPF_INSIDE_READ_H
#define WEIR_BPF_INSIDE_READ_H

#include "weir/base/subject.h"
#include "weir/inside/peer.h"
#include "weir/inside/process.h"
#include "weir/inside/text.h"

#include "inside_copy.h"

#ifdef __TARGET_ARCH_x86

/* In assembly: compilers would make one load of all, from a place in the context that verifiers do not know beforehand. */
#define INSIDE_IF_REGISTER(which, number, name)                                                  \
	({                                                                                       \
		if ((which) == (number))                                                         \
			asm volatile("%0 = *(u64 *)(%1 + %2)"                                    \
				     : "=r"(value)                                               \
				     : "r"(ctx), "i"(__builtin_offsetof(struct pt_regs, name))); \
	})

static __always_inline __u64 inside_register(const struct pt_regs *ctx, __u8 which)
{
	__u64 value = 0;

	INSIDE_IF_REGISTER(which, WEIR_INSIDE_CX, cx);
	if (WEIR_LIKELY(which == WEIR_INSIDE_CX)) /* the second argument of a handler */
		return value;
	WEIR_BARRIER(which); /* no compiler makes one switch of it all */
	INSIDE_IF_REGISTER(which, WEIR_INSIDE_AX, ax);
	INSIDE_IF_REGISTER(which, WEIR_INSIDE_BX, bx);
	INSIDE_IF_REGISTER(which, WEIR_INSIDE_DI, di);
	INSIDE_IF_REGISTER(which, WEIR_INSIDE_SI, si);
	INSIDE_IF_REGISTER(which, WEIR_INSIDE_R8, r8);
	INSIDE_IF_REGISTER(which, WEIR_INSIDE_R9, r9);
	INSIDE_IF_REGISTER(which, WEIR_INSIDE_R10, r10);
	INSIDE_IF_REGISTER(which, WEIR_INSIDE_R11, r11);
	return value;
}

static __always_inline __u64 inside_goroutine(const struct pt_regs *ctx)
{
	return ctx->r14;
}

/*
 * Has the call begun? The probe may stand at the jump that ends the check of the stack: where it is taken, the stack grows, and the call
 * comes here again. The probe's cookie has the flags that say so (struct golang_function).
 */
static __always_inline bool inside_has_begun_by(const struct pt_regs *ctx, __u32 again)
{
	return !(ctx->flags & again);
}

#else

/* Other machines' registers are not known yet: the agent looks into no server there. */
static __always_inline __u64 inside_register(const struct pt_regs *ctx, __u8 which)
{
	(void)ctx;
	(void)which;
	return 0;
}

static __always_inline __u64 inside_goroutine(const struct pt_regs *ctx)
{
	(void)ctx;
	return 0;
}

static __always_inline bool inside_has_begun_by(const struct pt_regs *ctx, __u32 again)
{
	(void)ctx;
	(void)again;
	return true;
}

#endif

static __always_inline bool inside_has_begun(struct pt_regs *ctx)
{
	return inside_has_begun_by(ctx, weir_inside_cookie_of(bpf_get_attach_cookie(ctx)).again);
}

#define INSIDE_AT_ONCE \
	WEIR_INSIDE_PEER_MAX /* bytes of a text that are read at once; longer ones are names that few have */

/*
 * The variables of loops. They are in a map's value, whose contents the verifier does not track: so it checks one turn of a loop
 * for all of them.
 */
struct inside_walk {
	struct weir_subject_hash hash;
	__u64 at;
	__u64 word;
	__u32 left;
	__u32 outcome;
	struct weir_utf8 utf8;
	struct weir_peer_reader reader;
	union {
		__u64 words[INSIDE_AT_ONCE / 8];
		char text[INSIDE_AT_ONCE];
	};
};

/* What bpf_loop() hands to its callbacks must be on the stack. */
struct inside_turn {
	struct inside_walk *walk;
};

/* --- texts */

/* As much of a text as there is room for, which verifiers know to be at most `room`. */
static __always_inline __u32 inside_text(const struct weir_inside_string *string, void *text, __u32 room)
{
	__u32 n = WEIR_MOSTLY(string->length, string->length > room, room);

	WEIR_BARRIER(n);
	return n > room ? WEIR_INSIDE_UNREADABLE : inside_copy(text, n, string->at);
}

/* The first two words of a text, zeros behind its end. */
static __always_inline __u32 inside_beginning(const struct weir_inside_string *string, __u64 text[2])
{
	text[0] = text[1] = 0;
	return inside_text(string, text, WEIR_INSIDE_WORD_MAX);
}

/* --- subjects */

static long inside_utf8_step(__u32 i, struct inside_turn *turn)
{
	struct inside_walk *walk = turn->walk;

	(void)i;
	weir_utf8_byte(&walk->utf8, walk->word);
	walk->word >>= 8;
	return 0;
}

/* Only words with a byte beyond ASCII are looked at a byte at a time. */
static __always_inline void inside_utf8(struct inside_walk *walk, __u64 word, __u32 n)
{
	struct inside_turn turn = { walk };

	walk->word = word;
	if ((word & 0x8080808080808080ULL) || walk->utf8.more)
		bpf_loop(n, inside_utf8_step, &turn, 0);
}

static long inside_hash_step(__u32 i, struct inside_turn *turn)
{
	struct inside_walk *walk = turn->walk;
	__u32 n = walk->left < 8 ? walk->left : 8;
	__u64 word = 0;

	(void)i;
	if (!n)
		return 1;
	WEIR_BARRIER(n);
	if (n > 8 || inside_copy(&word, n, walk->at) != INSIDE_READ) {
		walk->outcome = WEIR_INSIDE_UNREADABLE;
		return 1;
	}
	inside_utf8(walk, word, n);
	weir_subject_bytes(&walk->hash, word, n);
	walk->at += n;
	walk->left -= n;
	return 0;
}

/* That of a text that is long, or may be none. */
__noinline __u32 inside_long_subject(struct inside_walk *walk, const struct weir_inside_string *string, __u8 kind,
				     __u64 *subject)
{
	struct inside_turn turn = { walk };
	struct weir_settings *set;
	__u32 zero = 0;

	set = bpf_map_lookup_elem(&settings, &zero);
	if (!walk || !string || !subject || !set)
		return WEIR_INSIDE_UNREADABLE;
	walk->at = string->at;
	walk->left = string->length;
	walk->outcome = INSIDE_READ;
	walk->utf8 = (struct weir_utf8){};
	weir_subject_start(&walk->hash, set->seed, kind);
	bpf_loop((string->length + 7) / 8, inside_hash_step, &turn, 0);
	if (walk->outcome != INSIDE_READ)
		return walk->outcome;
	if (!weir_utf8_ends(&walk->utf8))
		return WEIR_INSIDE_NOT_TEXT;
	*subject = weir_subject_end(&walk->hash);
	return INSIDE_READ;
}

#define INSIDE_SHORT_MAX 64

/* A text of so many bytes at most, behind one byte that is anything, and before whatever is behind it. */
struct inside_short_text {
	__u64 words[INSIDE_SHORT_MAX / 8 + 1];
};

/* Not unrolled: in a server's thread little of this is in the CPU's caches, and fetching instructions takes longer than they do. */
static __always_inline void inside_rounds(__u64 v[4], __u32 n)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < n; i++)
		weir_subject_round(v);
}

/*
 * The subject of a text that has been read, as weir_subject_bytes() makes it: with the kind in the byte before the text, the hash's words
 * lie in a row. 0: the text is not of ASCII alone, and inside_long_subject() knows it. length: from 1 to INSIDE_SHORT_MAX. It is no inline
 * function, so that the verifier reads it once, however many call it.
 */
__noinline __u64 inside_plain_subject(const struct weir_inside_process *process, const struct inside_short_text *text,
				      __u32 length, __u8 kind)
{
	__u32 bytes = length + 1, whole = bytes / 8;
	__u64 first, last, word, all = 0, subject;
	struct weir_subject_hash h;

	if (!process || !text || length > INSIDE_SHORT_MAX)
		return 0;
	weir_subject_start(&h, process->seed, kind);
	first = (text->words[0] ^ kind) & 0xff;
	last = (text->words[whole] & ((1ULL << bytes % 8 * 8) - 1)) | (__u64)bytes << 56;
	WEIR_BARRIER(whole); /* verifiers are to see a loop that ends, whatever it is */
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i <= INSIDE_SHORT_MAX / 8; i++) {
		word = WEIR_MOSTLY(last, i < whole, text->words[i]) ^ first;
		first = 0;
		all |= word;
		weir_subject_compress(h.state, word);
		if (WEIR_LIKELY(i >= whole))
			break;
	}
	h.state[2] ^= 0xff;
	inside_rounds(h.state, 4);
	subject = h.state[0] ^ h.state[1] ^ h.state[2] ^ h.state[3];
	subject = WEIR_MOSTLY(subject, !subject, 1);
	return WEIR_MOSTLY(subject, all & 0x8080808080808080ULL, 0);
}

/*
 * The subject of a string; an empty one has none: 0. Its text goes to the stack: the kernel looks longer at memory that is somewhere
 * else before it copies there. Leaves its first 16 bytes in walk->words.
 */
__noinline __u32 inside_subject(const struct weir_inside_process *process, struct inside_walk *walk,
				const struct weir_inside_string *string, __u8 kind, __u64 *subject)
{
	struct inside_short_text text = {};

	if (!walk || !string || !subject)
		return WEIR_INSIDE_UNREADABLE;
	*subject = 0;
	if (!string->length)
		return INSIDE_READ;
	if (WEIR_UNLIKELY(string->length > WEIR_INSIDE_TEXT_MAX))
		return WEIR_INSIDE_NOT_TEXT;
	if (WEIR_UNLIKELY(inside_text(string, (char *)text.words + 1, INSIDE_SHORT_MAX) != INSIDE_READ))
		return WEIR_INSIDE_UNREADABLE;
	walk->words[0] = text.words[0] >> 8 | text.words[1] << 56;
	walk->words[1] = text.words[1] >> 8 | text.words[2] << 56;
	if (WEIR_LIKELY(string->length <= INSIDE_SHORT_MAX))
		*subject = inside_plain_subject(process, &text, string->length, kind);
	return WEIR_LIKELY(*subject) ? INSIDE_READ : inside_long_subject(walk, string, kind, subject);
}

/* --- words */

WEIR_SELDOM __u32 inside_verb(const struct weir_inside_string *string, __u8 *verb)
{
	__u64 text[2];

	if (inside_beginning(string, text) != INSIDE_READ)
		return WEIR_INSIDE_UNREADABLE;
	*verb = string->length > WEIR_INSIDE_WORD_MAX ? WEIR_VERB_OTHER : weir_verb_of_text(text[0], text[1]);
	return INSIDE_READ;
}

/* --- health checks */

static long inside_plain_step(__u32 i, struct inside_turn *turn)
{
	struct inside_walk *walk = turn->walk;
	__u8 c = walk->text[i & (WEIR_INSIDE_PEER_MAX - 1)];

	if (c == '?')
		walk->left = 0;
	else if (!weir_text_is_plain(c))
		walk->outcome = WEIR_INSIDE_NOT_TEXT;
	return !walk->left || walk->outcome != INSIDE_READ;
}

/* Is it the path of a health check, spelled plainly? A query may follow. */
__noinline bool inside_is_health(struct inside_walk *walk, const struct weir_inside_string *string)
{
	struct inside_turn turn = { walk };
	__u64 text[2];
	__u32 n;

	if (!walk || !string || inside_beginning(string, text) != INSIDE_READ ||
	    !weir_text_is_health(text[0], text[1]) ||
	    inside_text(string, walk->text, sizeof(walk->text)) != INSIDE_READ)
		return false;
	n = string->length < INSIDE_AT_ONCE ? string->length : INSIDE_AT_ONCE;
	walk->outcome = INSIDE_READ;
	walk->left = string->length > INSIDE_AT_ONCE ? 2 : 1; /* 0: its query has begun */
	bpf_loop(n, inside_plain_step, &turn, 0);
	return walk->outcome == INSIDE_READ && walk->left < 2;
}

/* --- peers */

struct inside_peer {
	union {
		__u8 address[16];
		__u32 parts[4];
		__u64 words[2];
	};
	__u16 port; /* host order */
	bool known;
};

static long inside_peer_step(__u32 i, struct inside_turn *turn)
{
	struct inside_walk *walk = turn->walk;

	weir_peer_byte(&walk->reader, walk->text[i & (WEIR_INSIDE_PEER_MAX - 1)]);
	return 0;
}

/* Of any kind, a byte at a time. */
WEIR_SELDOM __u32 inside_peer_slowly(struct inside_walk *walk, const struct weir_inside_string *string,
				     struct inside_peer *peer)
{
	struct inside_turn turn = { walk };

	if (!string->length || string->length > WEIR_INSIDE_PEER_MAX)
		return INSIDE_READ;
	if (inside_text(string, walk->text, sizeof(walk->text)) != INSIDE_READ)
		return WEIR_INSIDE_UNREADABLE;
	weir_peer_start(&walk->reader);
	bpf_loop(string->length, inside_peer_step, &turn, 0);
	peer->known = weir_peer_end(&walk->reader, peer->address, &peer->port);
	return INSIDE_READ;
}

#define INSIDE_PEERS 16 /* a power of two */

/* Its text has less than 24 bytes, and zeros behind them. */
struct inside_peer_text {
	__u64 words[WEIR_PEER_IPV4_MAX / 8 + 1];
};

/* A peer that was read a moment ago. A connection has many requests, and what its text says takes longer to find out than to compare. */
struct inside_known_peer {
	struct inside_peer_text text; /* inside_end_peer_text(); 0: none is known */
	__u64 address[2];
	__u64 port;
};

/* Its length, with one more, is the last byte, which is 0 in none. */
static __always_inline void inside_end_peer_text(struct inside_peer_text *text, __u64 length)
{
	text->words[2] |= (length + 1) << 56;
}

static __always_inline __u32 inside_known_peer_of(const struct inside_peer_text *text)
{
	return ((text->words[0] ^ text->words[1] ^ text->words[2]) * 0x9e3779b97f4a7c15ULL >> 32) & (INSIDE_PEERS - 1);
}

static __always_inline bool inside_is_peer_of(const struct inside_known_peer *known,
					      const struct inside_peer_text *text)
{
	return known->text.words[0] == text->words[0] && known->text.words[1] == text->words[1] &&
	       known->text.words[2] == text->words[2];
}

/* One that is not known yet, of this text. */
__noinline __u32 inside_new_peer(struct inside_walk *walk, const struct weir_inside_string *string,
				 struct inside_known_peer *known, const struct inside_peer_text *text,
				 struct inside_peer *peer)
{
	__u64 address[2];

	if (!walk || !string || !text || !peer)
		return WEIR_INSIDE_UNREADABLE;
	if (WEIR_UNLIKELY(
		    !weir_peer_ipv4_at_once((const char *)text->words, string->length, (__u8 *)address, &peer->port)))
		return inside_peer_slowly(walk, string, peer);
	peer->words[0] = address[0];
	peer->words[1] = address[1];
	peer->known = true;
	if (!known)
		return INSIDE_READ;
	known->text = *text;
	known->address[0] = address[0];
	known->address[1] = address[1];
	known->port = peer->port;
	return INSIDE_READ;
}

/* What is no TCP peer (a Unix socket's) is not known. known: INSIDE_PEERS that belong to the caller; NULL: there are none */
static __always_inline __u32 inside_peer(struct inside_walk *walk, const struct weir_inside_string *string,
					 struct inside_known_peer *known, struct inside_peer *peer)
{
	struct inside_peer_text text = {};

	if (WEIR_UNLIKELY(string->length > WEIR_PEER_IPV4_MAX))
		return inside_peer_slowly(walk, string, peer);
	if (WEIR_UNLIKELY(inside_text(string, text.words, WEIR_PEER_IPV4_MAX) != INSIDE_READ))
		return WEIR_INSIDE_UNREADABLE;
	inside_end_peer_text(&text, string->length);
	if (known)
		known += inside_known_peer_of(&text);
	if (WEIR_UNLIKELY(!known || !inside_is_peer_of(known, &text)))
		return inside_new_peer(walk, string, known, &text, peer);
	peer->words[0] = known->address[0];
	peer->words[1] = known->address[1];
	peer->port = known->port;
	peer->known = true;
	return INSIDE_READ;
}

static __always_inline bool inside_peer_is_ipv4(const struct inside_peer *peer)
{
	return !peer->words[0] && peer->parts[2] == bpf_htonl(0xffff);
}

#endif
