// SPDX-License-Identifier: GPL-2.0
/* Decides in the middle of a test's threads, as programs inside servers do. On the maps of weir.bpf.c. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../../../bpf/own_stack.h"
#include "../../../bpf/tally.h"

#include "../asker.h"

/* One for each thread: none uses another's. */
struct slot {
	struct decision decision;
	struct weir_path path;
	struct asker_said said; /* the last: the test looks there */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ASKERS);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

static __always_inline struct decision *decision_of(__u32 memory)
{
	struct slot *slot = bpf_map_lookup_elem(&slots, &memory);

	return slot ? &slot->decision : NULL;
}

/* A request to server 0 of which only the kind is known. */
static __always_inline void request_begin(struct decision *d, const struct weir_server *server, __u32 memory)
{
	d->memory = memory;
	d->server = 0;
	d->server_flags = server->flags;
	d->traits = server->traits;
	d->generation = server->generation;
	d->weight = 1;
	d->asked = 1;
	d->asked_anew = 1;
	d->event_key = WEIR_REASON_NONE;
	d->now_ns = bpf_ktime_get_ns();
	d->at_ns = d->now_ns;
	d->latest_ns = d->now_ns;
	d->identity.user = 1 + memory;
	d->attributes.verb = WEIR_VERB_GET;
	d->n_limits = 0;
	decision_start(d);
}

/* asker_asks(): a request begins in this thread. */
SEC("uprobe")
int asked(struct pt_regs *ctx)
{
	__u32 memory = PT_REGS_PARM1(ctx);
	struct weir_server *server = server_of(0);
	struct slot *slot = bpf_map_lookup_elem(&slots, &memory);

	own_stack();
	if (!slot || !server)
		return 0;
	request_begin(&slot->decision, server, memory);
	if (limits_find(&slot->decision, &slot->path))
		return 0;
	decide(&slot->decision);
	if (slot->decision.refused)
		slot->said.refused++;
	else
		slot->said.admitted++;
	return 0;
}

/* asker_ends(): it has been answered; or, if it is to be undone, has never been. */
SEC("uprobe")
int answered(struct pt_regs *ctx)
{
	__u32 memory = PT_REGS_PARM1(ctx), undone = PT_REGS_PARM2(ctx);
	struct slot *slot = bpf_map_lookup_elem(&slots, &memory);

	own_stack();
	if (!slot)
		return 0;
	if (undone && slot->decision.charged) {
		undo_decision(&slot->decision);
		slot->said.undone++;
	} else {
		tally_decision(&slot->decision);
		seats_undo(&slot->decision, true);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
