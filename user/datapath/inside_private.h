/* SPDX-License-Identifier: GPL-2.0 */
/* What inside.c and inside_links.c share. */
#ifndef WEIR_USER_DATAPATH_INSIDE_PRIVATE_H
#define WEIR_USER_DATAPATH_INSIDE_PRIVATE_H

#include "datapath/inside.h"
#include "inside.skel.h"

#define INSIDE_LINKS_MAX 1024

struct probe_link {
	dev_t device;
	ino_t inode;
	struct datapath_probe probe;
	struct bpf_link *link;
	bool wanted;
};

struct datapath_inside {
	struct inside_bpf *skeleton;
	__u32 generation;
	bool writes;	     /* its programs may write a server's memory */
	unsigned int pinned; /* so far: for their names */
	struct probe_link links[INSIDE_LINKS_MAX];
	size_t n_links;
	struct bpf_link *processes[2]; /* at their ends, and where they become other programs */
};

/* inside_links.c */
bool inside_writes_registers(enum weir_inside_point point);
bool inside_writes_memory(enum weir_inside_point point);
struct bpf_program *inside_program_of(struct inside_bpf *skeleton, enum weir_inside_point point);
/* Those at the ends of processes, and where they become other programs. */
int inside_links_begin(struct datapath *dp, struct error *err);
/* Those of a process' binary that are missing; all that it wants are marked. */
int inside_links_add(struct datapath *dp, const struct datapath_process *process, struct error *err);
void inside_links_drop_unwanted(struct datapath_inside *inside);
/* What is pinned stays. */
void inside_links_close(struct datapath_inside *inside);
/* Nothing stays. */
void inside_links_end(struct datapath_inside *inside);

#endif
