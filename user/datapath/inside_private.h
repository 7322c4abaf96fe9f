/* SPDX-License-Identifier: GPL-2.0 */
/* What inside.c and inside_links.c share. */
#ifndef WEIR_USER_DATAPATH_INSIDE_PRIVATE_H
#define WEIR_USER_DATAPATH_INSIDE_PRIVATE_H

#include "datapath/inside.h"
#include "datapath/map_cursor.h"
#include "datapath/private.h"
#include "inside.skel.h"

#define INSIDE_LINKS_MAX 1024

/*
 * set: the number of the probes that are asked for together, of one file (struct weir_inside_cookie). A file may have several sets, if requests
 * are to be seen in one process of it, and refused in another. The first of their points tells them apart.
 */
struct probe_link {
	dev_t device;
	ino_t inode;
	enum weir_inside_point first;
	__u32 set;
	struct datapath_probe probe;
	struct bpf_link *link;
	bool wanted;
};

struct datapath_inside {
	struct inside_bpf *skeleton;
	__u32 generation;
	bool nested;   /* the agent's process namespace is not the host's */
	__u64 seed[2]; /* of struct weir_settings */
	bool writes; /* its programs may write a server's memory: those of requests that are refused by memory are there */
	unsigned int pinned; /* so far: for their names */
	struct probe_link links[INSIDE_LINKS_MAX];
	size_t n_links;
	__u32 sets;		       /* so far: for their numbers */
	struct bpf_link *processes[2]; /* at their ends, and where they become other programs */
};

/* inside_links.c */
bool inside_writes_registers(enum weir_inside_point point);
/* Two of them write memory. */
bool inside_is_by_memory(enum weir_inside_point point);
struct bpf_program *inside_program_of(struct inside_bpf *skeleton, enum weir_inside_point point);
/* Those at the ends of processes, and where they become other programs. */
int inside_links_begin(struct datapath *dp, struct error *err);
/* Those of a process' binary that are missing; all that it wants are marked. */
int inside_links_add(struct datapath *dp, const struct datapath_process *process, struct error *err);
/* The number of the binary's set of probes, once they are there. 0: it has none. */
__u32 inside_links_set(const struct datapath_inside *inside, const struct datapath_binary *binary);
void inside_links_drop_unwanted(struct datapath_inside *inside);
/* What is pinned stays. */
void inside_links_close(struct datapath_inside *inside);
/* Nothing stays. */
void inside_links_end(struct datapath_inside *inside);

/* inside_processes.c */
/* The programs serve them from now on: all of them, or none. */
int inside_processes_write(struct datapath_inside *inside, const struct datapath_process *processes, size_t n,
			   struct error *err);
int inside_processes_drop_others(struct datapath_inside *inside, const struct datapath_process *processes, size_t n,
				 struct error *err);

/* inside_near.c */
/* Before `inside_processes` is changed: the process is found there, and not at once. */
int inside_near_leave(const struct datapath_inside *inside, __u32 process);
int inside_near_leave_if(const struct datapath_inside *inside, map_test *leaves, const void *arg);
/* Once they are there and no others: those that have a place are found at once, as they are in `inside_processes`. */
int inside_near_sync(const struct datapath_inside *inside, const struct datapath_process *processes, size_t n,
		     struct error *err);

#endif
