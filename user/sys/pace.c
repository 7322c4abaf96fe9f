/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/pace.h"

#include <errno.h>
#include <limits.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "weir/conn/pace.h"

#include "base/cleanup.h"
#include "sys/links.h"
#include "sys/netlink.h"

#define NS_PER_US 1000
#define LOOPBACK_IFINDEX 1

#define QUEUE_MAX 8192	    /* packets that wait on the device; what is more is dropped, and comes again */
#define QUEUE_FLOW_MAX 128  /* of one connection */
#define FLOWS_MASK 0xffff   /* connections that are told apart: those that share a queue wait for each other */
#define TRANSMIT_QUEUE 1000 /* packets on their way up */

struct request {
	_Alignas(struct nlmsghdr) char buffer[512];
	struct nlmsghdr *header;
};

static void link_request(struct request *r, int type, int flags, __u32 ifindex, bool up)
{
	struct ifinfomsg *info;

	r->header = mnl_nlmsg_put_header(r->buffer);
	r->header->nlmsg_type = type;
	r->header->nlmsg_flags = flags;
	info = mnl_nlmsg_put_extra_header(r->header, sizeof(*info));
	info->ifi_index = ifindex;
	info->ifi_flags = up ? IFF_UP : 0;
	info->ifi_change = up ? IFF_UP : 0;
}

static int ifb_add(struct mnl_socket *nl)
{
	struct request r;
	struct nlattr *info;

	link_request(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0, false);
	mnl_attr_put_strz(r.header, IFLA_IFNAME, PACE_DEVICE);
	mnl_attr_put_u32(r.header, IFLA_TXQLEN, TRANSMIT_QUEUE);
	mnl_attr_put_u32(r.header, IFLA_NUM_TX_QUEUES, 1);
	info = mnl_attr_nest_start(r.header, IFLA_LINKINFO);
	mnl_attr_put_strz(r.header, IFLA_INFO_KIND, "ifb");
	mnl_attr_nest_end(r.header, info);
	return netlink_ask(nl, r.header, NULL, NULL);
}

static int link_remove(struct mnl_socket *nl, __u32 ifindex)
{
	struct request r;

	link_request(&r, RTM_DELLINK, 0, ifindex, false);
	return netlink_ask(nl, r.header, NULL, NULL);
}

static int link_up(struct mnl_socket *nl, __u32 ifindex)
{
	struct request r;

	link_request(&r, RTM_NEWLINK, 0, ifindex, true);
	return netlink_ask(nl, r.header, NULL, NULL);
}

/* On a device that has fq already, this sets its parameters, and packets in its queue stay there. */
static int fq_set(struct mnl_socket *nl, __u32 ifindex)
{
	struct request r = { .header = mnl_nlmsg_put_header(r.buffer) };
	struct nlattr *options;
	struct tcmsg *tcm;

	r.header->nlmsg_type = RTM_NEWQDISC;
	r.header->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
	tcm = mnl_nlmsg_put_extra_header(r.header, sizeof(*tcm));
	tcm->tcm_ifindex = ifindex;
	tcm->tcm_parent = TC_H_ROOT;
	mnl_attr_put_strz(r.header, TCA_KIND, "fq");
	options = mnl_attr_nest_start(r.header, TCA_OPTIONS);
	mnl_attr_put_u32(r.header, TCA_FQ_PLIMIT, QUEUE_MAX);
	mnl_attr_put_u32(r.header, TCA_FQ_FLOW_PLIMIT, QUEUE_FLOW_MAX);
	mnl_attr_put_u32(r.header, TCA_FQ_ORPHAN_MASK, FLOWS_MASK);
	mnl_attr_put_u32(r.header, TCA_FQ_HORIZON, 2 * WEIR_PACE_MAX_NS / NS_PER_US);
	mnl_attr_nest_end(r.header, options);
	return netlink_ask(nl, r.header, NULL, NULL);
}

/* Sets *ifindex to the device that bears the name, or to 0. */
static int device_find(__u32 *ifindex, struct error *err)
{
	CLEANUP_FREE struct device *devices = NULL;
	int n = links_read(&devices, err);

	if (n < 0)
		return n;
	*ifindex = 0;
	for (int i = 0; i < n; i++) {
		if (strcmp(devices[i].name, PACE_DEVICE))
			continue;
		if (strcmp(devices[i].kind, "ifb"))
			return error_set(err, -EEXIST, "the interface %s is not weir's: it is no ifb", PACE_DEVICE);
		*ifindex = devices[i].ifindex;
	}
	return 0;
}

static int pace_failed(int code, const char *what, struct error *err)
{
	return error_set(err, code, "%s %s: %s", what, PACE_DEVICE, strerror(-code));
}

static int device_add(struct mnl_socket *nl, __u32 *ifindex, struct error *err)
{
	int ret = ifb_add(nl);

	if (ret == -EOPNOTSUPP)
		return error_set(err, ret, "no ifb in this kernel");
	if (ret)
		return pace_failed(ret, "making the interface", err);
	return device_find(ifindex, err);
}

int pace_device_make(__u32 *ifindex, struct error *err)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_ROUTE);
	__u32 found = 0;
	bool fresh;
	int ret;

	if (!nl)
		return pace_failed(-errno, "making the interface", err);
	ret = device_find(&found, err);
	fresh = !found;
	if (!ret && fresh)
		ret = device_add(nl, &found, err);
	if (ret)
		return ret;
	ret = fq_set(nl, found) ?: link_up(nl, found);
	if (!ret) {
		*ifindex = found;
		return 0;
	}
	if (fresh)
		link_remove(nl, found);
	if (ret == -ENOENT)
		return error_set(err, -EOPNOTSUPP, "no fq in this kernel");
	return pace_failed(ret, "setting up the interface", err);
}

int pace_device_remove(struct error *err)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_ROUTE);
	__u32 found;
	int ret;

	if (!nl)
		return pace_failed(-errno, "removing the interface", err);
	ret = device_find(&found, err);
	if (ret || !found)
		return ret;
	ret = link_remove(nl, found);
	return ret && ret != -ENODEV ? pace_failed(ret, "removing the interface", err) : 0;
}

int pace_try_ifb(void)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_ROUTE);

	return nl ? ifb_add(nl) : -errno;
}

int pace_try_fq(void)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_ROUTE);

	return nl ? fq_set(nl, LOOPBACK_IFINDEX) : -errno;
}

bool pace_ifb_would_load(void)
{
	char path[PATH_MAX], line[256];
	CLEANUP_FCLOSE FILE *modules = NULL;
	struct utsname kernel;

	uname(&kernel);
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", kernel.release);
	if (!access("/sys/module/ifb", F_OK) || !(modules = fopen(path, "re")))
		return false;
	while (fgets(line, sizeof(line), modules))
		if (strstr(line, "/ifb.ko"))
			return true;
	return false;
}
