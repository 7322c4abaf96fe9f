/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Capabilities. The agent gives up all that it will not need again, for good, and of the rest none is in effect but around
 * the steps below, in the thread that takes them. Whoever has given up nothing (commands, tests) is left as he is.
 */
#ifndef WEIR_USER_SYS_PRIVILEGE_H
#define WEIR_USER_SYS_PRIVILEGE_H

#include <sys/capability.h>

#include "base/error.h"

/* What is done while the agent runs, each with the capabilities that it needs (privilege.c; docs/internals/security.md). */
enum privilege {
	PRIVILEGE_LOAD,	     /* making programs and maps */
	PRIVILEGE_MAP,	     /* opening a map or a program by its number */
	PRIVILEGE_CGROUP,    /* putting a program on a cgroup, and asking which it has */
	PRIVILEGE_NAMESPACE, /* entering a network namespace; its devices, their programs and queues, its sockets */
	PRIVILEGE_FIND,	     /* opening the network namespace of any process */
	PRIVILEGE_READ,	     /* reading files of any owner, finding a cgroup by its number */
	PRIVILEGE_PROBE,     /* probing a program: the kernel wants CAP_SYS_ADMIN for events of every process */
	PRIVILEGE_WRITE,     /* making programs that may write a process's memory */
	PRIVILEGES,
};

struct privileged {
	cap_t before;
};

/* In effect until privilege_end(). Where that fails, the step itself will, and say so. */
struct privileged privilege_begin(enum privilege privilege);
void privilege_end(struct privileged *privileged);
#define CLEANUP_PRIVILEGED __attribute__((cleanup(privilege_end), unused))

/*
 * Without these there is no use in an agent: nothing can be loaded, and no namespace entered. -EPERM: it has not all of
 * them; the error says which, and what to do.
 */
int privilege_check(struct error *err);

/*
 * For the process and the threads that it starts afterwards: no capability beyond those above, none in effect, none to be had
 * again from a program that is executed; no core dumps, and no debugger but root's; files that are its owner's alone.
 */
int privilege_drop(struct error *err);

#endif
