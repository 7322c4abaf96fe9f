/* SPDX-License-Identifier: GPL-2.0 */
/* What is asked of a server, before any of its packets is looked at. */
#ifndef WEIR_BPF_SETTINGS_H
#define WEIR_BPF_SETTINGS_H

#include "work.h"

static __always_inline void decision_load(struct work *w, const struct weir_server *server)
{
	struct decision *d = &w->decision;

	d->memory = w->hook;
	d->server = w->server;
	d->server_flags = w->server_flags;
	d->traits = server->traits;
	d->generation = server->generation;
	d->weight = 1;
	d->asked = 1;
	d->asked_anew = 1;
	d->look = 0;
	d->unreadable = 0;
	d->connects = 0;
	d->unproven = 0;
	d->event_key = WEIR_REASON_NONE;
	d->now_ns = w->now_ns;
	d->at_ns = w->now_ns;
	d->latest_ns = w->now_ns;
	d->n_limits = 0;
	decision_start(d);
}

/* Is the packet's server limited, or was it until now? Then what is asked of all of its packets is known. */
static __always_inline bool server_is_attached(struct work *w)
{
	const struct weir_server *server = bpf_map_lookup_elem(&servers, &w->server);

	if (!server || !(server->flags & (WEIR_SERVER_ACTIVE | WEIR_SERVER_DRAINING)))
		return false;
	w->server_flags = server->flags;
	if (server->flags & WEIR_SERVER_DRAINING)
		w->server_flags |= WEIR_SERVER_PAUSED;
	/* Nothing is withheld then, for lack of room neither. */
	if (w->server_flags & (WEIR_SERVER_PAUSED | WEIR_SERVER_DRY_RUN))
		w->server_flags &= ~(WEIR_SERVER_FULL_REFUSES | WEIR_SERVER_FULL_KNOWN);
	return true;
}

/* All that a packet needs that is read, or that begins something. Not inlined, to be called where that is known. */
static __noinline bool load_settings(struct work *w, __u32 hook)
{
	__u32 zero = 0;
	struct weir_settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct weir_server *server = bpf_map_lookup_elem(&servers, &w->server);

	if (!set || !server || !server_is_attached(w))
		return false;
	w->hook = hook;
	w->settings.netns_cookie = set->netns_cookie;
	w->settings.seed[0] = set->seed[0];
	w->settings.seed[1] = set->seed[1];
	w->settings.swallow_max = server->swallow_max;
	w->now_ns = bpf_ktime_get_ns();
	w->settings.pace_ifindex = set->pace_ifindex;
	w->settings.tracing = server->trace_until_ns > w->now_ns;
	decision_load(w, server);
	w->whose.believed = 0;
	return true;
}

#endif
