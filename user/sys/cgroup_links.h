/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program on cgroups, by links that are pinned as DIR/link-NAME-ID, with the kernel's id of the cgroup.
 * A cgroup below another one that has the program needs none of its own: it would see everything twice.
 */
#ifndef WEIR_USER_SYS_CGROUP_LINKS_H
#define WEIR_USER_SYS_CGROUP_LINKS_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#include "weir/abi/abi.h"

#include "base/error.h"
#include "sys/changes.h"

/* The names of the links of weir_hold and weir_sockops. */
#define CGROUP_HOLD "cgroup"
#define CGROUP_SOCKOPS "sockops"

struct cgroup_program {
	const char *name; /* of its links */
	enum bpf_attach_type type;
	int fd;					  /* negative: there is none, it can only be taken off */
	unsigned long long ids[WEIR_MAX_SERVERS]; /* cgroups that have it, as the latest sync has left it */
	size_t n;				  /* 0: it is not known */
};

/* Puts the program in the place of the one on the cgroups that have it. */
int cgroup_links_take_over(const char *dir, const struct cgroup_program *program, struct error *err);

/*
 * Makes these cgroups (paths) the ones with the program; none: takes it off everywhere. One that fails does not keep the
 * others from being served; the first failure is told. What was done is added to *changes, where those that had come off are
 * `changed`.
 */
int cgroup_links_sync(const char *dir, struct cgroup_program *program, const char *const *cgroups, size_t n,
		      struct datapath_changes *changes, struct error *err);

/* Does the kernel run it for this cgroup (a path), whatever is pinned? */
bool cgroup_program_runs(const struct cgroup_program *program, const char *cgroup);

#endif
