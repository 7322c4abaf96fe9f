/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SYS_PROCESS_STAT_H
#define WEIR_USER_SYS_PROCESS_STAT_H

#include <linux/types.h>
#include <sys/types.h>

/* What /proc/ID/stat says of a process. */
struct process_stat {
	char command[16];
	char state;	   /* 'T' or 't': a signal, or a debugger, has stopped it */
	pid_t parent;	   /* 0: there is none, or none that can be seen */
	__u64 start;	   /* in ticks since the machine's start */
	__u64 code, stack; /* where its binary's code and its stack begin; 0 for those who may not know */
};

/* -ESRCH: it has ended. *out is set only where it returns 0. */
int process_stat_read(pid_t id, struct process_stat *out);

/* The text, which it changes. -EPROTO: it is not such a file's. */
int process_stat_parse(char *text, struct process_stat *out);

#endif
