/* SPDX-License-Identifier: GPL-2.0 */
/* Limits on connections (include/weir/admission/admission.h) on the maps, and the server's sockets: for tc and for XDP. */
#ifndef WEIR_BPF_ADMISSION_H
#define WEIR_BPF_ADMISSION_H

#include "decide.h"
#include "identify.h"
#include "listen_queue.h"
#include "names.h"
#include "socket.h"
#include "tally.h"
#include "top_source.h"

#define STATE_TIME_WAIT 6

/* Are there limits on the server's connections, and may they refuse? */
static __always_inline bool admission_matters(const struct work *w)
{
	return (w->decision.traits & WEIR_SERVER_CONNECTIONS) && !(w->server_flags & WEIR_SERVER_PAUSED);
}

static __always_inline enum weir_admission_socket admission_socket(struct work *w, struct bpf_sock *sk)
{
	switch (sk->state) {
	case STATE_LISTEN:
		listen_queue_read(&w->queue, sk);
		return weir_queue_sends_cookies(&w->queue) ? WEIR_SOCKET_COOKIES : WEIR_SOCKET_LISTENS;
	case STATE_TIME_WAIT:
		return WEIR_SOCKET_ENDED;
	case STATE_NEW_SYN_RECV:
		return WEIR_SOCKET_BEGINS;
	default:
		return WEIR_SOCKET_THERE;
	}
}

/* What the kernel has for a SYN; of a listener its queue is in w->queue. */
__noinline int admission_ask_socket(packet_context *ctx, __u32 hook)
{
	struct work *w = work_of(hook);
	enum weir_admission_socket said;
	struct bpf_sock *sk;

	if (!w)
		return WEIR_SOCKET_NONE;
	sk = socket_of(ctx, &w->packet);
	if (!sk)
		return WEIR_SOCKET_NONE;
	said = admission_socket(w, sk);
	bpf_sk_release(sk);
	return said;
}

/* Does the packet's sender bring the connections of many? */
static __always_inline bool peer_is_of_many(const struct work *w)
{
	return bpf_map_lookup_elem(&proxies, &w->whose.peer) || bpf_map_lookup_elem(&balancers, &w->whose.peer);
}

/* The address of such a sender says neither source nor user, so only limits without a key apply to it. */
static __always_inline void admission_identify(struct work *w)
{
	w->whose.preamble = (struct weir_preamble){};
	identify_client(w);
	w->decision.unreadable = 0;
	w->decision.connects = 1;
	if (peer_is_of_many(w)) {
		w->decision.source = 0;
		w->decision.identity.user = 0;
	}
}

/* Does no limit on connections apply to the sender? After admission_identify(). */
static __always_inline bool sender_is_exempt(struct work *w)
{
	return identity_exempt(w) || match_limits(w->decision.memory, &w->request.request.path);
}

/* Does each of the limits that refuse ask for a RST? */
static __always_inline bool refusal_resets(const struct decision *d)
{
	bool resets = true;

#pragma GCC unroll 16
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (d->refused >> n & 1)
			resets = resets && d->terms[n].flags & WEIR_LIMIT_RESET;
	}
	return resets;
}

/* What becomes of a connection: a reason of the group ADMISSION. Its seats stand in the decision. The hold can send no RST. */
__noinline int admission_decide(__u32 hook)
{
	struct work *w = work_of(hook);
	struct decision *d;

	if (!w)
		return WEIR_ADMITTED;
	d = &w->decision;
	d->n_limits = 0;
	__builtin_memset(d->seats, 0, sizeof(d->seats));
	admission_identify(w);
	if (sender_is_exempt(w))
		return WEIR_ADMISSION_EXEMPT;
	decide(d);
	if (d->nameless && !d->look)
		remember_clients(hook);
	if (!d->refused)
		return d->overlooked ? WEIR_ADMISSION_DRY_RUN : WEIR_ADMITTED;
	if (w->server_flags & WEIR_SERVER_DRY_RUN)
		return WEIR_ADMISSION_DRY_RUN;
	return hook != HOOK_HOLD && refusal_resets(d) ? WEIR_ADMISSION_RESET : WEIR_ADMISSION_DROPPED;
}

static __always_inline bool admission_refuses(int became)
{
	return became == WEIR_ADMISSION_DROPPED || became == WEIR_ADMISSION_RESET;
}

/* What becomes of a SYN. Its source is not proven, so nothing is taken, made, begun or counted. */
static __always_inline int admission_of_syn(struct work *w)
{
	w->decision.look = 1;
	w->decision.unproven = 1;
	w->decision.asked = 0;
	w->decision.asked_anew = 0;
	return admission_decide(w->hook);
}

/* Counts the refusal by limit n with its subject, if that has a bucket already. */
__noinline int refused_syn_count(struct decision *d, __u32 n)
{
	struct weir_kept *kept;

	if (!d || n >= WEIR_MATCHES_MAX || !(((d->refused | d->overlooked) & ~d->denied) >> n & 1) ||
	    weir_limit_has_seats(terms_of(d, n)->kind))
		return 0;
	kept = kept_of(weir_limit_index(d->server, d->limits[n]), d->subjects[n]);
	if (kept)
		bucket_count_refused(d, terms_of(d, n), &kept->bucket, 1);
	return 0;
}

/* The SYN ends here: its refusal counts. became: what admission_of_syn() said. */
static __always_inline void admission_refused_syn(struct work *w, int became)
{
	w->decision.asked_anew = 1;
	tally_decision(&w->decision);
	each_limit(&w->decision, refused_syn_count);
	count(w->server, became);
	top_connection(w->hook, became);
}

/* A SYN that meets this socket: may it begin a connection? Says what becomes of it, and counts that. */
static __always_inline int admission_look(struct work *w, enum weir_admission_socket socket)
{
	int became = admission_of_syn(w);

	if (admission_refuses(became))
		admission_refused_syn(w, became);
	else if (socket == WEIR_SOCKET_COOKIES)
		count(w->server, WEIR_ADMISSION_COOKIE);
	return became;
}

#endif
