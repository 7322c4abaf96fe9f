/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The programs inside servers (bpf/inside.h): uprobes in their binaries, by links that are pinned as inside-GENERATION-N, and
 * the processes whose requests they read. A binary's probes run in every process of it; only those that are named are read.
 */
#ifndef WEIR_USER_DATAPATH_INSIDE_H
#define WEIR_USER_DATAPATH_INSIDE_H

#include <sys/types.h>

#include "weir/inside/process.h"

#include "base/error.h"

struct datapath;

struct datapath_probe {
	enum weir_inside_point point;
	__u32 again;  /* flags of the processor with one of which the call has not begun yet (struct golang_function) */
	__u64 offset; /* of the instruction in the file */
	bool grows;   /* the place has one where the stack grows, WEIR_INSIDE_GROWS, which is probed, too */
};

#define DATAPATH_BINARY_PROBES 160

struct datapath_binary {
	dev_t device;
	ino_t inode;
	int fd; /* the caller's; open during the call */
	struct datapath_probe probes[DATAPATH_BINARY_PROBES];
	size_t n_probes;
};

struct datapath_process {
	__u32 id;			    /* in the agent's process namespace */
	struct weir_inside_process process; /* without its generation */
	const struct datapath_binary *binary;
};

/* 0, or -ENOTSUP: this build looks into no server (INSIDE=0). */
int datapath_inside_check(struct error *err);

/*
 * Makes these the processes that are looked into, and no others. Loads the programs when there are some for the first time.
 * Where it fails, those of before are looked into as before.
 */
int datapath_inside_sync(struct datapath *dp, const struct datapath_process *processes, size_t n, struct error *err);

/* May a program inside a server refuse requests: does the kernel let it write registers (from Linux 6.18, not locked down)? */
bool datapath_inside_answers(void);
/* The same by memory: is the kernel not locked down? Such programs are loaded only while a process is to be looked into by one. */
bool datapath_inside_writes(void);

/* Drops what is kept of requests in processes that are not looked into any more, and gives back their seats. */
int datapath_inside_sweep(struct datapath *dp, struct error *err);

#endif
