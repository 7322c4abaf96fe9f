/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fills a table of connections, which is pinned, with so many that no socket has: `conns` with those that are awake, `resting` with those
 * that rest. Nothing was heard of them for so many seconds: 0, and the sweep leaves them.
 *
 *     conns PIN awake|resting N SECONDS
 *
 * Or says how many there are in it:
 *
 *     conns PIN
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir/conn/rest.h"

#define BATCH 1000

union value {
	struct weir_conn awake;
	struct weir_resting resting;
};

struct table {
	int fd;
	size_t size; /* of a value */
};

static struct weir_flow flow_of(__u32 i)
{
	struct weir_flow flow;

	/* Whatever stands where: each is another one, and none is a socket's. */
	memset(&flow, 0, sizeof(flow));
	memcpy(&flow, &i, sizeof(i));
	return flow;
}

static int fill(const struct table *table, const union value *value, __u32 n)
{
	static struct weir_flow flows[BATCH];
	static __u8 values[BATCH * sizeof(union value)];

	for (__u32 i = 0; i < BATCH; i++)
		memcpy(values + i * table->size, value, table->size);
	for (__u32 first = 0; first < n; first += BATCH) {
		__u32 count = n - first < BATCH ? n - first : BATCH;

		for (__u32 i = 0; i < count; i++)
			flows[i] = flow_of(first + i + 1);
		if (bpf_map_update_batch(table->fd, flows, values, &count, NULL))
			return -errno;
	}
	return 0;
}

static __u32 count(const struct table *table)
{
	struct weir_flow flow;
	__u32 n = 0;

	for (void *key = NULL; !bpf_map_get_next_key(table->fd, key, &flow); key = &flow)
		n++;
	return n;
}

static __u64 heard_ns(unsigned long seconds_ago)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec > seconds_ago ? (now.tv_sec - seconds_ago) * 1000000000ULL : 1;
}

int main(int argc, char **argv)
{
	union value value = {};
	struct table table = { .fd = -1 };
	__u64 last_ns;
	int ret;

	if (argc == 2 || argc == 5)
		table.fd = bpf_obj_get(argv[1]);
	if (table.fd < 0) {
		fprintf(stderr, "usage: conns PIN [awake|resting N SECONDS]\n");
		return 2;
	}
	if (argc == 2) {
		printf("%u\n", count(&table));
		return 0;
	}
	last_ns = heard_ns(strtoul(argv[4], NULL, 10));
	if (!strcmp(argv[2], "resting")) {
		table.size = sizeof(value.resting);
		value.resting.last_ns = last_ns;
	} else {
		table.size = sizeof(value.awake);
		value.awake.last_ns = last_ns;
	}
	ret = fill(&table, &value, strtoul(argv[3], NULL, 10));
	if (ret)
		fprintf(stderr, "conns: %s\n", strerror(-ret));
	return ret ? 1 : 0;
}
