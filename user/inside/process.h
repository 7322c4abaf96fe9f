/* SPDX-License-Identifier: GPL-2.0 */
/* Which processes listen on a server's addresses: by the inodes of their sockets. */
#ifndef WEIR_USER_INSIDE_PROCESS_H
#define WEIR_USER_INSIDE_PROCESS_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "datapath/address.h"

#define INSIDE_LISTENERS_MAX 64 /* sockets of one server */
#define INSIDE_PROCESSES_MAX 32 /* that have one of them */

/* The inodes of the sockets that listen on them, in ascending order. */
struct inside_listeners {
	__u32 inodes[INSIDE_LISTENERS_MAX];
	size_t n;
};

/* In the namespace. Addresses beyond the maximum are an error: -E2BIG. */
int inside_listeners_read(int netns_fd, const struct datapath_listen *listens, size_t n, struct inside_listeners *out,
			  struct error *err);
bool inside_listeners_equal(const struct inside_listeners *a, const struct inside_listeners *b);

struct inside_process {
	pid_t id;
	__u64 start;  /* in ticks since the machine's start, as /proc has it */
	dev_t device; /* its binary */
	ino_t inode;
	__u64 code, stack; /* where its binary's code and its stack begin: elsewhere, as a rule, after each exec */
	char command[16];
};

/* Reads start and binary of process `id`, which is set. -ESRCH: it has ended. */
int inside_process_read(struct inside_process *process, struct error *err);

/* A descriptor of its binary, which the caller closes, or a negative errno. */
int inside_process_open(pid_t id, struct error *err);

/* Those with one of these sockets. How many there are (at most INSIDE_PROCESSES_MAX are written), or a negative errno. */
int inside_processes_find(const struct inside_listeners *listeners, struct inside_process *out, struct error *err);

/* The processes that there were at a look, in ascending order. All zero: nobody has looked. */
struct inside_present {
	pid_t *ids; /* owned */
	size_t n;
};

void inside_present_clear(struct inside_present *present);
#define CLEANUP_PRESENT __attribute__((cleanup(inside_present_clear)))

/*
 * Has a process one of these sockets that was not there when *present was read? *present is what is there now. To ask all processes takes
 * long: those of before are not asked, though one of them may have been sent a descriptor. A negative errno: it cannot be told, and
 * *present is as it was.
 */
int inside_newcomer_listens(struct inside_present *present, const struct inside_listeners *listeners);

#endif
