/* SPDX-License-Identifier: GPL-2.0 */
#include <stdlib.h>
#include <string.h>

#include "net.h"

void net_reset(struct net *n, uint64_t seed)
{
	struct event *heap = n->heap;
	size_t room = n->room;

	*n = (struct net){ .heap = heap, .room = room, .random = { seed } };
}

void net_free(struct net *n)
{
	free(n->heap);
	*n = (struct net){ 0 };
}

static bool event_before(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void net_schedule(struct net *n, uint64_t time, enum event_kind kind, unsigned int at, const struct packet *p)
{
	struct event e = { .time = time, .order = n->order++, .kind = kind, .at = at };
	size_t i;

	if (p)
		e.packet = *p;
	if (n->n == n->room) {
		n->room = n->room ? 2 * n->room : 256;
		n->heap = realloc(n->heap, n->room * sizeof(*n->heap));
		if (!n->heap)
			abort();
	}
	for (i = n->n++; i && event_before(&e, &n->heap[(i - 1) / 2]); i = (i - 1) / 2)
		n->heap[i] = n->heap[(i - 1) / 2];
	n->heap[i] = e;
}

uint64_t net_next(const struct net *n)
{
	return n->n ? n->heap[0].time : NEVER;
}

struct event net_take(struct net *n)
{
	struct event first = n->heap[0], last = n->heap[--n->n];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < n->n) {
		if (child + 1 < n->n && event_before(&n->heap[child + 1], &n->heap[child]))
			child++;
		if (!event_before(&n->heap[child], &last))
			break;
		n->heap[i] = n->heap[child];
		i = child;
	}
	n->heap[i] = last;
	return first;
}

bool net_under_way(const struct net *n, enum hop hop)
{
	for (size_t i = 0; i < n->n; i++) {
		if (n->heap[i].kind == EVENT_PACKET && n->heap[i].at == hop)
			return true;
	}
	return false;
}

void net_send(struct net *n, enum hop hop, const struct packet *p)
{
	struct link *l = &n->link[hop];
	struct random *r = &n->random;
	bool healed = n->now >= l->heals_ns;
	uint64_t when = n->now + l->delay_ns;

	if (!healed) {
		bool outage = n->now >= l->outage_from_ns && n->now < l->outage_until_ns;

		if (random_chance(r, l->late_duplicate))
			net_schedule(n, when + random_below(r, l->late_ns), EVENT_PACKET, hop, p);
		if (outage || random_chance(r, l->loss))
			return;
		if (random_chance(r, l->duplicate))
			net_schedule(n, when + random_below(r, l->jitter_ns + l->delay_ns + 1), EVENT_PACKET, hop, p);
	}
	when += random_below(r, l->jitter_ns + 1);
	if (!healed && random_chance(r, l->reorder)) {
		when += random_below(r, 2 * (l->jitter_ns + l->delay_ns) + 1);
	} else {
		when = when < l->last_ns ? l->last_ns : when;
		l->last_ns = when;
	}
	net_schedule(n, when, EVENT_PACKET, hop, p);
}
