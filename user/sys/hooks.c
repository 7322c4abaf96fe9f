/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/hooks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/netlink.h"
#include "sys/privilege.h"

struct owner_list {
	struct hook_owner *owners;
	size_t n;
};

static struct hook_owner *owner_add(struct owner_list *list)
{
	struct hook_owner *more = reallocarray(list->owners, list->n + 1, sizeof(*more));

	if (!more)
		return NULL;
	list->owners = more;
	more[list->n] = (struct hook_owner){ 0 };
	return &more[list->n++];
}

static void name_program(struct hook_owner *owner)
{
	CLEANUP_CLOSE int fd = bpf_prog_get_fd_by_id(owner->id);
	struct bpf_prog_info info = {};
	__u32 length = sizeof(info);

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &length))
		snprintf(owner->name, sizeof(owner->name), "%s", info.name);
	owner->ours = !strncmp(owner->name, "weir_", strlen("weir_"));
}

static int read_tcx(__u32 ifindex, enum attach_direction d, struct owner_list *list)
{
	__u32 ids[ATTACH_TCX_MAX];
	int n = attach_tcx_programs(ifindex, d, ids);

	if (n == -EINVAL)
		return 0; /* before Linux 6.6 */
	for (int i = 0; i < n; i++) {
		struct hook_owner *owner = owner_add(list);

		if (!owner)
			return -ENOMEM;
		owner->id = ids[i];
		name_program(owner);
	}
	return n < 0 ? n : 0;
}

static void read_filter_options(struct hook_owner *owner, const struct nlattr *options)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested (attr, options) {
		if (mnl_attr_get_type(attr) == TCA_BPF_ID)
			owner->id = mnl_attr_get_u32(attr);
	}
	if (owner->id)
		name_program(owner);
}

/* A classifier is told once for itself, without a handle, and once for each of its filters. */
static int read_filter(const struct nlmsghdr *header, void *arg)
{
	const struct tcmsg *tcm = mnl_nlmsg_get_payload(header);
	const struct nlattr *attr, *options = NULL;
	struct hook_owner *owner;

	if (!tcm->tcm_handle)
		return MNL_CB_OK;
	owner = owner_add(arg);
	if (!owner) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	owner->clsact = true;
	owner->priority = TC_H_MAJ(tcm->tcm_info) >> 16;
	owner->handle = tcm->tcm_handle;
	mnl_attr_for_each (attr, header, sizeof(*tcm)) {
		if (mnl_attr_get_type(attr) == TCA_KIND)
			snprintf(owner->name, sizeof(owner->name), "%s", mnl_attr_get_str(attr));
		else if (mnl_attr_get_type(attr) == TCA_OPTIONS)
			options = attr;
	}
	if (options && !strcmp(owner->name, "bpf"))
		read_filter_options(owner, options);
	return MNL_CB_OK;
}

static int read_filters(__u32 ifindex, enum attach_direction d, struct owner_list *list)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_ROUTE);
	_Alignas(struct nlmsghdr) char buffer[256];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct tcmsg *tcm;
	int ret;

	if (!nl)
		return -errno;
	request->nlmsg_type = RTM_GETTFILTER;
	request->nlmsg_flags = NLM_F_DUMP;
	tcm = mnl_nlmsg_put_extra_header(request, sizeof(*tcm));
	tcm->tcm_ifindex = ifindex;
	tcm->tcm_parent = attach_filter_parent(d);
	ret = netlink_ask(nl, request, read_filter, list);
	return ret == -EINVAL ? 0 : ret; /* no such qdisc */
}

int hooks_read(__u32 ifindex, enum attach_direction d, struct hook_owner **owners)
{
	struct owner_list list = { 0 };
	int ret = read_tcx(ifindex, d, &list) ?: read_filters(ifindex, d, &list);

	if (ret < 0) {
		free(list.owners);
		return ret;
	}
	*owners = list.owners;
	return list.n;
}

__s64 hooks_other_weir(__u32 ifindex, enum attach_direction d, __u32 own)
{
	CLEANUP_FREE struct hook_owner *owners = NULL;
	int n = hooks_read(ifindex, d, &owners);

	for (int i = 0; i < n; i++)
		if (owners[i].ours && owners[i].id != own)
			return owners[i].id;
	return n < 0 ? n : 0;
}

bool hooks_is_gone(__u32 id)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_MAP);
	CLEANUP_CLOSE int fd = bpf_prog_get_fd_by_id(id);

	return fd < 0 && errno == ENOENT;
}

/* By tcx it is put behind those that are there; of filters those with a smaller priority, then handle, run before. */
static bool runs_before(const struct hook_owner *owner, bool tcx)
{
	if (!owner->clsact || tcx)
		return !owner->clsact;
	return owner->priority < ATTACH_FILTER_PRIORITY ||
	       (owner->priority == ATTACH_FILTER_PRIORITY && owner->handle < ATTACH_FILTER_HANDLE);
}

size_t hooks_place(const struct hook_owner *owners, size_t n, bool tcx)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (owners[i].ours)
			return i;
		at += runs_before(&owners[i], tcx);
	}
	return at;
}
