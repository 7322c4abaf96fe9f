/* SPDX-License-Identifier: GPL-2.0 */
/* The table of connections against the kernel's sockets: what nobody owns any more goes. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "weir/admission/admission.h"
#include "weir/conn/conn.h"
#include "weir/conn/rest.h"

#include "base/array.h"
#include "datapath/map_cursor.h"
#include "datapath/private.h"
#include "sys/netns.h"
#include "sys/socket_diag.h"

/* Entries of the table, and whether the kernel has a socket for each. */
struct tracked {
	struct weir_flow flow;
	__u64 id;		 /* of an admitted connection: its word */
	struct socket_id socket; /* with `found` */
	bool found;
};

struct tracked_list {
	struct tracked *entries;
	size_t n;
};

static void tracked_list_free(struct tracked_list *list)
{
	free(list->entries);
}
#define CLEANUP_TRACKED __attribute__((cleanup(tracked_list_free)))

static int tracked_add(struct tracked_list *list, const struct weir_flow *flow, __u64 id)
{
	struct tracked *grown = array_grow(list->entries, list->n, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	list->entries = grown;
	list->entries[list->n++] = (struct tracked){ .flow = *flow, .id = id };
	return 0;
}

struct choice {
	__u64 now_ns, last_before_ns;
	__u32 slot;
	const atomic_bool *stop; /* NULL: it goes on to the end */
};

static bool must_stop(const struct choice *choice)
{
	return choice->stop && atomic_load(choice->stop);
}

static bool choose_idle(const struct weir_conn *c, const struct choice *choice)
{
	return c->last_ns < choice->last_before_ns;
}

/* What has to go, and what is idle: it can do with less, or rests. */
static bool choose_due(const struct weir_conn *c, const struct choice *choice)
{
	return weir_conn_due(c, choice->now_ns) != WEIR_DUE_NOTHING || weir_conn_wastes_busy(c, choice->now_ns) ||
	       weir_conn_may_rest(c, choice->now_ns);
}

static bool choose_slot(const struct weir_conn *c, const struct choice *choice)
{
	return choice->slot == DATAPATH_EVERY_SLOT || c->server == choice->slot;
}

static bool choose_translated(const struct weir_conn *c, const struct choice *choice)
{
	return choose_slot(c, choice) && c->splice.cuts && c->phase != WEIR_PHASE_CLOSED;
}

typedef bool chooser(const struct weir_conn *c, const struct choice *choice);

struct selection {
	chooser *chosen;
	struct tracked_list *list;
};

/* The first selection that chooses it, or NULL. */
static const struct selection *select_for(const struct weir_conn *c, const struct selection *selections, size_t n,
					  const struct choice *choice)
{
	for (size_t i = 0; i < n; i++)
		if (selections[i].chosen(c, choice))
			return &selections[i];
	return NULL;
}

/* Reads all that are awake once. */
static int conns_select(struct datapath *dp, const struct selection *selections, size_t n, const struct choice *choice)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret = map_cursor_open(&cursor, dp->maps.conns, sizeof(struct weir_flow), sizeof(struct weir_conn));

	while (!ret && !must_stop(choice) && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_conn *conns = cursor.values;
		const struct weir_flow *flows = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n && !ret; i++) {
			const struct selection *selection = select_for(&conns[i], selections, n, choice);

			if (selection)
				ret = tracked_add(selection->list, &flows[i], conns[i].id);
		}
	}
	return ret;
}

/* Reads all that rest once. */
static int resting_select(struct datapath *dp, const struct selection *selection, const struct choice *choice)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret = map_cursor_open(&cursor, dp->maps.resting, sizeof(struct weir_flow), sizeof(struct weir_resting));

	while (!ret && !must_stop(choice) && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_resting *resting = cursor.values;
		const struct weir_flow *flows = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n && !ret; i++) {
			struct weir_conn c = {};

			weir_resting_wake(&resting[i], &c);
			if (selection->chosen(&c, choice))
				ret = tracked_add(selection->list, &flows[i], c.id);
		}
	}
	return ret;
}

/* Twice in the list, or in none, is what rests or wakes meanwhile: of a server that is attached no more nothing does. */
static int conns_list(struct datapath *dp, struct tracked_list *list, chooser *chosen, struct choice choice)
{
	const struct selection selection = { chosen, list };

	return conns_select(dp, &selection, 1, &choice) ?: resting_select(dp, &selection, &choice);
}

static int compare_flows(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct weir_flow));
}

static void note_socket(const struct weir_flow *flow, const struct socket_id *socket, void *arg)
{
	struct tracked_list *list = arg;
	struct tracked *entry = bsearch(flow, list->entries, list->n, sizeof(*entry), compare_flows);

	if (!entry)
		return;
	entry->socket = *socket;
	entry->found = true;
}

/* One dump for all: it also shows the sockets that are bound to a device, which cannot be asked for by their flow. */
static int sockets_find(struct mnl_socket *nl, struct tracked_list *list)
{
	qsort(list->entries, list->n, sizeof(*list->entries), compare_flows);
	return socket_diag_each(nl, note_socket, list);
}

/* By a program that forgets only what was listed (its id): another connection may have its flow by now. */
static int forget(int program_fd, const struct tracked *entry, enum weir_reason reason)
{
	struct weir_forget forget = { .flow = entry->flow, .reason = reason, .id = entry->id };

	return datapath_run(program_fd, &forget, sizeof(forget));
}

/*
 * The kernel frees what was deleted from a hash in one go, after a grace period of its sleepable programs (250 ms and more). It takes 0.4 us for
 * each entry, and runs neither threads nor softirqs on that CPU meanwhile. A sweep waits after each part, so that this never takes many
 * milliseconds.
 */
#define SWEEP_PART 100
#define SWEEP_WAIT_NS 2500000

static void sweep_wait(size_t taken)
{
	static const struct timespec wait = { .tv_nsec = SWEEP_WAIT_NS };

	if (taken % SWEEP_PART == 0)
		nanosleep(&wait, NULL);
}

struct conns_call {
	struct datapath *dp;
	struct tracked_list *list;
	int forget_fd; /* the program that forgets what is in the list */
};

static int sweep_inside(void *arg)
{
	struct conns_call *call = arg;
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_SOCK_DIAG);
	int swept = 0, ret = nl ? sockets_find(nl, call->list) : -errno;

	for (size_t i = 0; i < call->list->n && ret >= 0 && !atomic_load(&call->dp->unswept); i++) {
		struct tracked *entry = &call->list->entries[i];

		/* A dump may step over a socket while others come and go: what is alive must not be lost. */
		ret = entry->found ? 1 : socket_diag_find(nl, &entry->flow);
		if (ret == 0) {
			ret = forget(call->forget_fd, entry, WEIR_CONN_SWEPT);
			sweep_wait(++swept);
		}
	}
	return ret < 0 ? ret : swept;
}

/* What has no timer goes here. */
static int let_go(struct datapath *dp, const struct tracked_list *due)
{
	int ret = 0;

	for (size_t i = 0; i < due->n && !ret && !atomic_load(&dp->unswept); i++) {
		ret = forget(dp->forget_fd, &due->entries[i], WEIR_REASON_NONE);
		sweep_wait(i + 1);
	}
	return ret;
}

/* How many of the list had no socket any more. */
static int sweep_list(struct datapath *dp, struct tracked_list *list, int forget_fd, struct error *err)
{
	struct conns_call call = { .dp = dp, .list = list, .forget_fd = forget_fd };

	if (!list->n || atomic_load(&dp->unswept))
		return 0;
	return netns_run(dp->netns_fd, sweep_inside, &call, err);
}

/* Lists entries that their timer or the end of their socket should have taken away long ago, and those that are simply open. */
static int admitted_list(struct datapath *dp, struct tracked_list *list, __u64 idle_ns)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	__u64 now_ns = datapath_now_ns();
	int ret = map_cursor_open(&cursor, dp->maps.admitted, sizeof(struct weir_flow), sizeof(struct weir_admitted));

	while (!ret && !atomic_load(&dp->unswept) && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_admitted *admitted = cursor.values;
		const struct weir_flow *flows = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n && !ret; i++)
			if (weir_admitted_age_ns(admitted[i].word, now_ns) > WEIR_EMBRYO_NS + idle_ns)
				ret = tracked_add(list, &flows[i], admitted[i].word);
	}
	return ret;
}

static int admitted_sweep(struct datapath *dp, __u64 idle_ns, struct error *err)
{
	CLEANUP_TRACKED struct tracked_list old = {};

	return admitted_list(dp, &old, idle_ns) ?: sweep_list(dp, &old, dp->forget_admitted_fd, err);
}

int datapath_sweep(struct datapath *dp, __u64 idle_ns, struct error *err)
{
	CLEANUP_TRACKED struct tracked_list due = {}, idle = {};
	const struct selection selections[] = { { choose_due, &due }, { choose_idle, &idle } };
	__u64 now_ns = datapath_now_ns();
	const struct choice choice = { .now_ns = now_ns,
				       .last_before_ns = now_ns > idle_ns ? now_ns - idle_ns : 0,
				       .stop = &dp->unswept };
	int swept = 0, ret = conns_select(dp, selections, 2, &choice) ?: let_go(dp, &due);

	/* What has just been laid to rest is among them. */
	ret = ret ?: resting_select(dp, &selections[1], &choice);
	if (!ret)
		ret = swept = sweep_list(dp, &idle, dp->forget_fd, err);
	if (ret >= 0)
		ret = admitted_sweep(dp, idle_ns, err);
	return ret < 0 ? error_set(err, ret, "sweeping connections: %s", strerror(-ret)) : swept + ret;
}

void datapath_sweep_stop(struct datapath *dp)
{
	atomic_store(&dp->unswept, true);
}

static int reset_inside(void *arg)
{
	struct conns_call *call = arg;
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_SOCK_DIAG);
	int ret = nl ? sockets_find(nl, call->list) : -errno;

	for (size_t i = 0; i < call->list->n && !ret; i++) {
		struct tracked *entry = &call->list->entries[i];

		/* The RST to the client passes our egress program first, which still knows the numbers. */
		if (entry->found)
			ret = socket_diag_destroy(nl, &entry->socket);
		if (!ret || ret == -ENOENT)
			ret = forget(call->forget_fd, entry, WEIR_CONN_RESET);
	}
	return ret;
}

int datapath_reset_translated(struct datapath *dp, __u32 slot, struct error *err)
{
	CLEANUP_TRACKED struct tracked_list translated = {};
	struct conns_call call = { .dp = dp, .list = &translated, .forget_fd = dp->forget_fd };
	int ret = conns_list(dp, &translated, choose_translated, (struct choice){ .slot = slot });

	if (!ret && translated.n)
		ret = netns_run(dp->netns_fd, reset_inside, &call, err);
	return ret ? error_set(err, ret, "resetting connections: %s", strerror(-ret)) : (int)translated.n;
}

int datapath_conns_clear(struct datapath *dp, __u32 slot, struct error *err)
{
	CLEANUP_TRACKED struct tracked_list list = {};
	int ret = conns_list(dp, &list, choose_slot, (struct choice){ .slot = slot });

	for (size_t i = 0; i < list.n && !ret; i++)
		ret = forget(dp->forget_fd, &list.entries[i], WEIR_CONN_SWEPT);
	return ret ? datapath_map_failed(err, ret, "conns") : 0;
}

__u32 datapath_connections_of(struct datapath *dp, __u64 subject)
{
	__u32 at = subject % WEIR_HOLDERS, held = 0;

	bpf_map_lookup_elem(dp->maps.holders, &at, &held);
	return held;
}
