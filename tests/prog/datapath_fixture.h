/* SPDX-License-Identifier: GPL-2.0 */
/* A datapath in a network namespace and a mount namespace of the test's own, opened and removed around each test. */
#ifndef WEIR_TESTS_DATAPATH_FIXTURE_H
#define WEIR_TESTS_DATAPATH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "datapath/private.h"

extern int test_netns;
extern struct error error;

/* A call that must succeed; its text says why it did not. */
#define done(call)                                             \
	do {                                                   \
		if ((call) < 0)                                \
			fail_msg("%s: %s", #call, error.text); \
	} while (0)

int namespaces_setup(void **state);
int datapath_setup(void **state);
int datapath_teardown(void **state);

struct datapath *open_datapath(__u32 conns_max);
/* The agent that opened latest is no more, its programs and maps are. The two below begin with it. */
void agent_dies(void);
/* What opening returns while the latest agent lives. */
int open_beside(void);
/* Opens and closes again; what opening returned. */
int try_open(__u32 conns_max);

/* The limits that every server has, at a rate. The override's limit is made, without a default, where it is not there. */
int limit_set(struct datapath *dp, __u32 server, enum weir_builtin_limit builtin, __u64 per_ns, __u64 burst,
	      __u32 keys);
int limit_unset(struct datapath *dp, __u32 server, enum weir_builtin_limit builtin);
int override_set(struct datapath *dp, __u32 server, enum weir_builtin_limit builtin, __u64 subject, __u64 per_ns,
		 __u64 burst);

/* So much of the part has been written since the datapath was opened. */
void assert_changes(struct datapath *dp, enum datapath_part part, __u64 added, __u64 changed, __u64 dropped);

/* Runs a shell command in the test's network namespace; its status. */
int inside(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Calls run(arg) there. */
int call_inside(int (*run)(void *arg), void *arg);

bool pinned(const char *format, ...) __attribute__((format(printf, 1, 2)));
int unpin(const char *name);
/* Takes a pinned link off its device and leaves the pin. */
int detach_pinned(const char *link);
/* No program, link or map holds it any more; waits a while for it to be so. */
bool program_is_gone(__u32 id);

__u32 ifindex_of(const char *device);
/* Is the datapath's own program among those on the device, by tcx or clsact? */
bool runs(struct datapath *dp, const char *device, enum attach_direction direction);

#endif
