/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The penalty box: who asks again before its penalty (include/weir/limit/penalty.h) is over is held at XDP until then. XDP knows
 * addresses only. So a box belongs to the address from which a penalised subject asked, and names the limit and the subject:
 * it is shut for as long as that penalty lasts, and no longer.
 *
 * A subject that is an address is the box's own. One that is a user is boxed while nobody else is known to ask from there. Where
 * somebody asks who is exempt, nobody is boxed.
 *
 * Boxes are replaced as a whole, and sealed: what is read of one in the midst of that is none (seal.h).
 */
#ifndef WEIR_ADMISSION_BOX_H
#define WEIR_ADMISSION_BOX_H

#include "weir/admission/admission.h"
#include "weir/base/subject.h"
#include "weir/conn/rest.h"
#include "weir/limit/limit.h"

/* A user who was not seen for so long is taken to have left the address. */
#define WEIR_BOX_OTHERS_NS (600 * WEIR_NS_PER_S)
/* A box is not written more often than this for what happens all the time. */
#define WEIR_BOX_NOTE_NS WEIR_NS_PER_S

struct weir_box_key {
	__u8 address[16]; /* network order, IPv4 as ::ffff:a.b.c.d, IPv6 cut to its /64 */
	__u32 server;
	__u32 pad;
};
WEIR_ASSERT_SIZE(struct weir_box_key, 24);

struct weir_box {
	__u64 user;	 /* subject: who asked last */
	__u64 others_ns; /* when it was somebody else for the last time; 0: never */
	__u64 exempt_ns; /* when somebody asked for whom no limit is; 0: never */
	__u64 subject;	 /* who may be penalised */
	__u64 limit;	 /* weir_limit_index() + 1, by which; 0: none */
	__u64 seal;	 /* of what is before it, and of the key */
};
WEIR_ASSERT_SIZE(struct weir_box, 48);

WEIR_INLINE struct weir_box_key weir_box_key(__u32 server, const __u8 address[16])
{
	struct weir_box_key key = { .server = server };

	__builtin_memcpy(key.address, address, sizeof(key.address));
	if (!weir_address_is_ipv4(address))
		__builtin_memset(key.address + 8, 0, 8);
	return key;
}

WEIR_INLINE __u64 weir_box_seal(const struct weir_box *box, const struct weir_box_key *key)
{
	return weir_seal(box, __builtin_offsetof(struct weir_box, seal), weir_seal(key, sizeof(*key), 0));
}

/* Was it no longer ago than that? Clocks of two CPUs may differ a little. */
WEIR_INLINE bool weir_box_within(__u64 then_ns, __u64 now_ns, __u64 ns)
{
	return then_ns && now_ns <= then_ns + ns;
}

/* The user has asked from the box's address. True: the box has changed. */
WEIR_INLINE bool weir_box_asked(struct weir_box *box, __u64 user, __u64 now_ns)
{
	if (box->user == user || weir_box_within(box->others_ns, now_ns, WEIR_BOX_NOTE_NS))
		return false;
	if (box->user)
		box->others_ns = now_ns;
	box->user = user;
	return true;
}

/* Something that is exempt was asked from there. True: the box has changed. */
WEIR_INLINE bool weir_box_exempt(struct weir_box *box, __u64 now_ns)
{
	if (weir_box_within(box->exempt_ns, now_ns, WEIR_BOX_NOTE_NS))
		return false;
	box->exempt_ns = now_ns;
	return true;
}

/* From now on this limit's subject is who may be penalised; 0, 0: nobody. True: the box has changed. */
WEIR_INLINE bool weir_box_name(struct weir_box *box, __u64 limit, __u64 subject)
{
	bool changed = box->limit != limit || box->subject != subject;

	box->limit = limit;
	box->subject = subject;
	return changed;
}

/* May a subject of a limit with this key be boxed? */
WEIR_INLINE bool weir_box_fits(const struct weir_box *box, __u32 key, __u64 now_ns)
{
	if (weir_box_within(box->exempt_ns, now_ns, WEIR_BOX_OTHERS_NS))
		return false;
	return key == WEIR_KEY_SOURCE ||
	       (key == WEIR_KEY_USER && !weir_box_within(box->others_ns, now_ns, WEIR_BOX_OTHERS_NS));
}

/* Is it a SYN, or data? A connection's end and bare acknowledgements are never held. */
WEIR_INLINE bool weir_segment_asks(const struct weir_segment *g)
{
	return weir_segment_opens(g) || (g->len && !(g->flags & WEIR_TCP_RST));
}

/*
 * Does this segment's data ask for something new? Only that is held. Two kinds of data are not: what was read before, which the client
 * sends again because the answer may be lost; and the rest of a refused request, which has to be swallowed before its client reads the
 * answer. This is asked without the lock. If the connection changes meanwhile, the segment comes again, or is decided behind XDP.
 */
WEIR_INLINE bool weir_box_holds_data(const struct weir_conn *c, const struct weir_segment *g)
{
	return c->phase == WEIR_PHASE_FOLLOWED && weir_conn_at_boundary(c) && !seq_before(g->seq, c->request_next);
}

/* The same on one that rests. */
WEIR_INLINE bool weir_box_holds_resting(const struct weir_resting *r, const struct weir_segment *g)
{
	return !(r->flags & WEIR_RESTING_OPAQUE) && !seq_before(g->seq, r->client_next);
}

#endif
