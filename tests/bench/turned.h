/* SPDX-License-Identifier: GPL-2.0 */
/* One packet of a test run, as another one in each run; and the benchmark's other programs (bpf/bench.bpf.c). */
#ifndef WEIR_TESTS_BENCH_TURNED_H
#define WEIR_TESTS_BENCH_TURNED_H

#ifndef __bpf__
#include "runs.h"
#endif

#define TURNED_NETWORK 0x0a000000U /* 10.0.0.0: where clients are, as many as are wanted */

struct turned {
	__u32 seq, ack; /* that are added to its numbers in each run, and before the first */
	__u32 clients;	/* one of so many sends it; 0: it stays as it is */
	__u32 payload;	/* where it begins, in what is read and nothing else */
};

#ifndef __bpf__
/* Programs on the datapath's maps. */
void turned_open(void);
void turned_close(void);

/* What a program is run as, if not by itself. */
enum turned_program {
	TURNED_NOTHING,
	TURNED_LOOK_UP, /* of the packet's connection, and nothing else */
};
int turned_program(enum turned_program which);

/* The mean of so many runs in a row. The program's own work is what is above that of TURNED_NOTHING. */
__u32 turned_ns(int program, struct packet *packet, const struct turned *how, __u32 repeat);

/* How often connections are looked up for a client's packet: as the programs of this file count it, which are weir's otherwise. */
__u32 turned_look_ups(const char *path, struct packet *packet);

/* The heads of a packet read once, and nothing else. `text`: of its payload. */
__u32 turned_read_ns(bool from_server, struct packet *packet, __u32 text);
/* All that this needs found, and nothing read. */
__u32 turned_unread_ns(bool from_server, struct packet *packet, __u32 text);
#endif

#endif
