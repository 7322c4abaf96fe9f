/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fills a table of connections, which is pinned, with so many that no socket has and that nothing was heard of for long: each sweep
 * finds some millions of bytes to read, and all of them to take away.
 *
 *     conns PIN N
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir/conn/conn.h"

#define BATCH 1000
#define LONG_AGO_NS 1

static struct weir_flow flow_of(__u32 i)
{
	struct weir_flow flow;

	/* Whatever stands where: each is another one, and none is a socket's. */
	memset(&flow, 0, sizeof(flow));
	memcpy(&flow, &i, sizeof(i));
	return flow;
}

static int fill(int fd, __u32 n)
{
	static struct weir_flow flows[BATCH];
	static struct weir_conn conns[BATCH];

	for (__u32 first = 0; first < n; first += BATCH) {
		__u32 count = n - first < BATCH ? n - first : BATCH;

		for (__u32 i = 0; i < count; i++) {
			flows[i] = flow_of(first + i + 1);
			conns[i].last_ns = LONG_AGO_NS;
		}
		if (bpf_map_update_batch(fd, flows, conns, &count, NULL))
			return -errno;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? bpf_obj_get(argv[1]) : -EINVAL, ret;

	if (fd < 0) {
		fprintf(stderr, "usage: conns PIN N\n");
		return 2;
	}
	ret = fill(fd, strtoul(argv[2], NULL, 10));
	if (ret)
		fprintf(stderr, "conns: %s\n", strerror(-ret));
	return ret ? 1 : 0;
}
