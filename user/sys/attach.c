/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/netlink.h"
#include "sys/pins.h"
#include "sys/xdp.h"

/* From linux/bpf.h of Linux 6.6. */
#define TCX_INGRESS ((enum bpf_attach_type)46)
#define TCX_EGRESS ((enum bpf_attach_type)47)
#define LOOPBACK_IFINDEX 1

static const struct {
	const char *name;
	enum bpf_attach_type tcx;
	enum bpf_tc_attach_point clsact;
	__u32 parent;
} hooks[ATTACH_DIRECTIONS] = {
	[ATTACH_EGRESS] = { "egress", TCX_EGRESS, BPF_TC_EGRESS, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS) },
	[ATTACH_INGRESS] = { "ingress", TCX_INGRESS, BPF_TC_INGRESS, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS) },
};

const char *attach_direction_name(enum attach_direction direction)
{
	return hooks[direction].name;
}

__u32 attach_filter_parent(enum attach_direction direction)
{
	return hooks[direction].parent;
}

static void link_path(char path[static PATH_MAX], const struct attach *a, __u32 ifindex, enum attach_direction d)
{
	pins_path(path, a->dir, "link-%u-%s", ifindex, hooks[d].name);
}

/* --- tcx */

int attach_tcx_programs(__u32 ifindex, enum attach_direction d, __u32 ids[static ATTACH_TCX_MAX])
{
	__u32 n = ATTACH_TCX_MAX, flags;
	int ret = bpf_prog_query(ifindex, hooks[d].tcx, 0, &flags, ids, &n);

	return ret ?: (int)n;
}

bool attach_has_tcx(void)
{
	__u32 ids[ATTACH_TCX_MAX];

	return attach_tcx_programs(LOOPBACK_IFINDEX, ATTACH_INGRESS, ids) != -EINVAL;
}

/* A link outlives its device, and a number may be given to another one: only the device knows what runs on it. */
static bool tcx_runs(const struct attach *a, __u32 ifindex, enum attach_direction d)
{
	__u32 ids[ATTACH_TCX_MAX];
	int n = attach_tcx_programs(ifindex, d, ids);

	while (n-- > 0) {
		if (ids[n] == a->program[d].id)
			return true;
	}
	return false;
}

static void tcx_remove(const struct attach *a, __u32 ifindex, enum attach_direction d)
{
	char path[PATH_MAX];

	link_path(path, a, ifindex, d);
	CLEANUP_CLOSE int fd = bpf_obj_get(path);

	/* Unpinning alone would take the program off only some time later. */
	if (fd >= 0)
		bpf_link_detach(fd);
	unlink(path);
}

/* 1: it was not there. */
static int tcx_add(const struct attach *a, __u32 ifindex, enum attach_direction d)
{
	char path[PATH_MAX];
	int pinned;

	link_path(path, a, ifindex, d);
	pinned = bpf_obj_get(path);
	if (pinned < 0 && pinned != -ENOENT)
		return pinned; /* nobody can tell what is there */
	if (pinned >= 0) {
		close(pinned);
		if (tcx_runs(a, ifindex, d))
			return 0;
		tcx_remove(a, ifindex, d);
	}
	CLEANUP_CLOSE int fd = bpf_link_create(a->program[d].fd, ifindex, hooks[d].tcx, NULL);
	if (fd < 0)
		return fd;
	return bpf_obj_pin(fd, path) ?: 1;
}

/* -ENOENT: no link there; it had lost its device and was removed, or never was. */
static int tcx_update(const struct attach *a, __u32 ifindex, enum attach_direction d)
{
	char path[PATH_MAX];
	int ret;

	link_path(path, a, ifindex, d);
	CLEANUP_CLOSE int fd = bpf_obj_get(path);
	if (fd < 0)
		return fd;
	ret = bpf_link_update(fd, a->program[d].fd, NULL);
	if (ret != -ENOLINK)
		return ret;
	unlink(path);
	return -ENOENT;
}

/* --- clsact */

static bool clsact_noted(const struct attach *a, __u32 ifindex, const char *note)
{
	char path[PATH_MAX];

	pins_path(path, a->dir, "%s-%u", note, ifindex);
	return !access(path, F_OK);
}

static int clsact_note(const struct attach *a, __u32 ifindex, const char *note)
{
	char path[PATH_MAX];

	pins_path(path, a->dir, "%s-%u", note, ifindex);
	return mkdir(path, 0700) ? -errno : 0;
}

static void clsact_forget(const struct attach *a, __u32 ifindex, const char *note)
{
	char path[PATH_MAX];

	pins_path(path, a->dir, "%s-%u", note, ifindex);
	rmdir(path);
}

/* The note comes before the deed: a qdisc that we made is never taken for someone else's. */
static int clsact_qdisc(const struct attach *a, __u32 ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	int noted = clsact_note(a, ifindex, "qdisc");
	int ret = bpf_tc_hook_create(&hook);

	if (ret && !noted)
		clsact_forget(a, ifindex, "qdisc");
	return ret == -EEXIST ? 0 : ret;
}

int attach_try_clsact(void)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = LOOPBACK_IFINDEX, .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);

	return bpf_tc_hook_create(&hook);
}

/* 1: it was not there. */
static int clsact_filter(const struct attach *a, __u32 ifindex, enum attach_direction d)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = hooks[d].clsact);
	LIBBPF_OPTS(bpf_tc_opts, found, .handle = ATTACH_FILTER_HANDLE, .priority = ATTACH_FILTER_PRIORITY);
	LIBBPF_OPTS(bpf_tc_opts, filter, .handle = ATTACH_FILTER_HANDLE, .priority = ATTACH_FILTER_PRIORITY,
		    .prog_fd = a->program[d].fd, .flags = BPF_TC_F_REPLACE);

	if (!bpf_tc_query(&hook, &found) && found.prog_id == a->program[d].id)
		return 0;
	return bpf_tc_attach(&hook, &filter) ?: 1;
}

static int clsact_add(const struct attach *a, __u32 ifindex)
{
	int ret = clsact_note(a, ifindex, "clsact"), added = 0;

	if (ret && ret != -EEXIST)
		return ret;
	ret = clsact_qdisc(a, ifindex);
	for (int d = 0; d < ATTACH_DIRECTIONS && ret >= 0; d++) {
		ret = clsact_filter(a, ifindex, d);
		added |= ret > 0;
	}
	return ret < 0 ? ret : added;
}

static int note_filter(const struct nlmsghdr *header, void *arg)
{
	(void)header;
	*(bool *)arg = true;
	return MNL_CB_OK;
}

/* Says yes when in doubt. */
static bool clsact_has_filters(__u32 ifindex, enum attach_direction d)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_ROUTE);
	_Alignas(struct nlmsghdr) char buffer[256];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct tcmsg *tcm;
	bool found = false;

	request->nlmsg_type = RTM_GETTFILTER;
	request->nlmsg_flags = NLM_F_DUMP;
	tcm = mnl_nlmsg_put_extra_header(request, sizeof(*tcm));
	tcm->tcm_ifindex = ifindex;
	tcm->tcm_parent = attach_filter_parent(d);
	return !nl || netlink_ask(nl, request, note_filter, &found) || found;
}

static void clsact_remove(const struct attach *a, __u32 ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, both, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);

	for (int d = ATTACH_DIRECTIONS - 1; d >= 0; d--) {
		LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = hooks[d].clsact);
		LIBBPF_OPTS(bpf_tc_opts, filter, .handle = ATTACH_FILTER_HANDLE, .priority = ATTACH_FILTER_PRIORITY);

		bpf_tc_detach(&hook, &filter);
	}
	if (clsact_noted(a, ifindex, "qdisc") && !clsact_has_filters(ifindex, ATTACH_INGRESS) &&
	    !clsact_has_filters(ifindex, ATTACH_EGRESS))
		bpf_tc_hook_destroy(&both);
	clsact_forget(a, ifindex, "qdisc");
	clsact_forget(a, ifindex, "clsact");
}

/* --- either */

static int attach_failed(const struct attach *a, int code, __u32 ifindex, struct error *err)
{
	char name[IF_NAMESIZE] = "?";
	const char *why = strerror(-code);

	/* How the kernel says that it does not know the kind of qdisc, or of filter. */
	if (a->way == ATTACH_CLSACT && code == -ENOENT)
		why = "this kernel has neither tcx (Linux 6.6) nor clsact (CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF)";
	/* Of a link whose pin was removed nothing runs. */
	if (a->way != ATTACH_CLSACT && code == -EEXIST)
		why = "the program runs there, but its pin is hidden: unmount (umount -l) what is mounted over the pin directory";
	if_indextoname(ifindex, name);
	return error_set(err, code, "attaching to interface %s (%u): %s", name, ifindex, why);
}

int attach_add(struct attach *a, __u32 ifindex, struct error *err)
{
	int ret = 0, added = 0;

	for (int d = 0; d < ATTACH_DIRECTIONS && a->way != ATTACH_CLSACT && ret >= 0; d++) {
		ret = tcx_add(a, ifindex, d);
		added |= ret > 0;
		if (ret >= 0)
			a->way = ATTACH_TCX;
		else if (a->way == ATTACH_UNKNOWN && ret == -EINVAL)
			a->way = ATTACH_CLSACT;
	}
	if (a->way == ATTACH_CLSACT)
		added = ret = clsact_add(a, ifindex);
	return ret < 0 ? attach_failed(a, ret, ifindex, err) : added;
}

void attach_remove(const struct attach *a, __u32 ifindex)
{
	xdp_remove(a->dir, ifindex);
	for (int d = ATTACH_DIRECTIONS - 1; d >= 0; d--)
		tcx_remove(a, ifindex, d);
	if (clsact_noted(a, ifindex, "clsact"))
		clsact_remove(a, ifindex);
}

int attach_take_over(struct attach *a, struct error *err)
{
	CLEANUP_FREE __u32 *ifindexes = NULL;
	int n = attach_list(a, &ifindexes);

	if (n < 0)
		return error_set(err, n, "reading %s: %s", a->dir, strerror(-n));
	for (int i = 0; i < n; i++) {
		bool clsact = clsact_noted(a, ifindexes[i], "clsact");

		for (int d = 0; d < ATTACH_DIRECTIONS; d++) {
			int ret = clsact ? clsact_filter(a, ifindexes[i], d) : tcx_update(a, ifindexes[i], d);

			/* Devices come and go; the next sync attaches what misses. -EINVAL: there is no such qdisc. */
			if (ret == -ENOENT || ret == -ENODEV || (clsact && ret == -EINVAL))
				continue;
			if (ret < 0)
				return attach_failed(a, ret, ifindexes[i], err);
		}
	}
	return 0;
}

static int compare_ifindexes(const void *a, const void *b)
{
	const __u32 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int attach_list(const struct attach *a, __u32 **ifindexes)
{
	CLEANUP_FREE __u32 *list = NULL;
	DIR *dir = opendir(a->dir);
	struct dirent *entry;
	int n = 0, unique = 0;

	if (!dir)
		return errno == ENOENT ? 0 : error_errno();
	while ((entry = readdir(dir))) {
		__u32 ifindex, *more;

		if (sscanf(entry->d_name, "link-%u-", &ifindex) != 1 &&
		    sscanf(entry->d_name, "clsact-%u", &ifindex) != 1)
			continue;
		more = reallocarray(list, n + 1, sizeof(*list));
		if (!more) {
			closedir(dir);
			return -ENOMEM;
		}
		list = more;
		list[n++] = ifindex;
	}
	closedir(dir);
	if (n)
		qsort(list, n, sizeof(*list), compare_ifindexes);
	for (int i = 0; i < n; i++) {
		if (!unique || list[i] != list[unique - 1])
			list[unique++] = list[i];
	}
	*ifindexes = list;
	list = NULL;
	return unique;
}
