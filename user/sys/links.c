/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/links.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sys/netlink.h"

#define LINKS_TRIES 8	 /* a dump that changed under way is read again */
#define LINKS_STACKED 16 /* the kernel stacks devices at most eight deep */

struct link_list {
	struct device *devices;
	size_t n, room;
};

static struct device *link_list_add(struct link_list *list)
{
	if (list->n == list->room) {
		size_t room = list->room ? list->room * 2 : 16;
		struct device *more = reallocarray(list->devices, room, sizeof(*more));

		if (!more)
			return NULL;
		list->devices = more;
		list->room = room;
	}
	memset(&list->devices[list->n], 0, sizeof(*list->devices));
	return &list->devices[list->n++];
}

static void text_copy(char *text, size_t size, const struct nlattr *attr)
{
	size_t length = strnlen(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));

	if (length >= size)
		length = size - 1;
	memcpy(text, mnl_attr_get_payload(attr), length);
	text[length] = 0;
}

static void read_vlan(struct device *device, const struct nlattr *data)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested (attr, data) {
		if (mnl_attr_get_type(attr) == IFLA_VLAN_ID)
			device->vlan = mnl_attr_get_u16(attr);
		else if (mnl_attr_get_type(attr) == IFLA_VLAN_PROTOCOL)
			device->service = mnl_attr_get_u16(attr) == htons(ETH_P_8021AD);
	}
}

static void read_link_info(struct device *device, const struct nlattr *info)
{
	const struct nlattr *attr, *data = NULL;

	mnl_attr_for_each_nested (attr, info) {
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			text_copy(device->kind, sizeof(device->kind), attr);
		else if (mnl_attr_get_type(attr) == IFLA_INFO_DATA)
			data = attr;
	}
	if (data && !strcmp(device->kind, "vlan"))
		read_vlan(device, data);
	if (!data || strcmp(device->kind, "macsec"))
		return;
	mnl_attr_for_each_nested (attr, data) {
		if (mnl_attr_get_type(attr) == IFLA_MACSEC_OFFLOAD)
			device->offload = mnl_attr_get_u8(attr) != MACSEC_OFFLOAD_OFF;
	}
}

static void read_attribute(struct device *device, const struct nlattr *attr)
{
	switch (mnl_attr_get_type(attr)) {
	case IFLA_IFNAME:
		text_copy(device->name, sizeof(device->name), attr);
		break;
	case IFLA_ADDRESS:
		if (mnl_attr_get_payload_len(attr) == sizeof(device->address))
			memcpy(device->address, mnl_attr_get_payload(attr), sizeof(device->address));
		break;
	case IFLA_MASTER:
		device->master = mnl_attr_get_u32(attr);
		break;
	case IFLA_GSO_MAX_SIZE:
		device->gso_max = mnl_attr_get_u32(attr);
		break;
	case IFLA_GRO_MAX_SIZE:
		device->gro_max = mnl_attr_get_u32(attr);
		break;
	case IFLA_LINK:
		device->parent = mnl_attr_get_u32(attr);
		break;
	case IFLA_LINKINFO:
		read_link_info(device, attr);
		break;
	}
}

static int read_device(const struct nlmsghdr *header, void *arg)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(header);
	struct device *device = link_list_add(arg);
	const struct nlattr *attr;
	bool elsewhere = false; /* its parent is in another network namespace */

	if (!device) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	device->ifindex = info->ifi_index;
	device->type = info->ifi_type;
	device->up = info->ifi_flags & IFF_UP;
	mnl_attr_for_each (attr, header, sizeof(*info)) {
		read_attribute(device, attr);
		elsewhere |= mnl_attr_get_type(attr) == IFLA_LINK_NETNSID;
	}
	if (elsewhere)
		device->parent = 0;
	return MNL_CB_OK;
}

static int links_dump(struct link_list *list)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_ROUTE);
	_Alignas(struct nlmsghdr) char buffer[256];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

	if (!nl)
		return -errno;
	request->nlmsg_type = RTM_GETLINK;
	request->nlmsg_flags = NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(request, sizeof(struct ifinfomsg));
	return netlink_ask(nl, request, read_device, list);
}

int links_read(struct device **devices, struct error *err)
{
	struct link_list list = {};
	int ret = -EINTR;

	for (int i = 0; i < LINKS_TRIES && ret == -EINTR; i++) {
		list.n = 0;
		ret = links_dump(&list);
	}
	if (ret) {
		free(list.devices);
		return error_set(err, ret, "reading the network devices: %s", strerror(-ret));
	}
	*devices = list.devices;
	return list.n;
}

static bool kind_is(const struct device *device, const char *kind)
{
	return !strcmp(device->kind, kind);
}

/* Why the programs can do nothing on a device, whatever is around it. */
static const char *unusable(const struct device *device)
{
	if (device->type != ARPHRD_ETHER && device->type != ARPHRD_LOOPBACK)
		return "not Ethernet";
	if (kind_is(device, "vrf"))
		return "VRF";
	if (kind_is(device, "ifb"))
		return "ifb";
	return NULL;
}

static bool named(const struct device *device, const struct links_wanted *wanted)
{
	for (size_t i = 0; i < wanted->n; i++) {
		if (!strcmp(device->name, wanted->names[i]))
			return true;
	}
	return !wanted->names;
}

static const struct device *find(const struct device *devices, size_t n, __u32 ifindex)
{
	for (size_t i = 0; i < n; i++) {
		if (ifindex && devices[i].ifindex == ifindex)
			return &devices[i];
	}
	return NULL;
}

/* Does the device below see this device's packets as they are? (macsec in software: encrypted.) */
static bool shows_parent(const struct device *device)
{
	return kind_is(device, "macvlan") || kind_is(device, "macvtap") || kind_is(device, "ipvlan") ||
	       kind_is(device, "ipvtap") || device->offload;
}

/*
 * The kernel does not find a VRF's sockets for programs on its devices: they would take each connection for one that is still to be set up.
 */
static bool in_vrf(const struct device *device, const struct device *devices, size_t n)
{
	const struct device *master = find(devices, n, device->master);

	return master && kind_is(master, "vrf");
}

/* The other device that sees this one's packets, or NULL. */
static const struct device *also_seen_by(const struct device *device, const struct device *devices, size_t n)
{
	const struct device *master = find(devices, n, device->master);

	if (master && !kind_is(master, "vrf"))
		return master;
	return shows_parent(device) ? find(devices, n, device->parent) : NULL;
}

static const char *membership(const struct device *device, const struct device *other)
{
	if (device->master != other->ifindex)
		return "on top of another device";
	if (kind_is(other, "bridge"))
		return "bridge port";
	if (kind_is(other, "bond"))
		return "bond slave";
	if (kind_is(other, "team"))
		return "team port";
	if (kind_is(other, "openvswitch"))
		return "openvswitch port";
	return "slave of another device";
}

const char *links_left_out(const struct device *device, const struct device *devices, size_t n,
			   const struct links_wanted *wanted)
{
	const char *why = unusable(device);
	const struct device *lower = device, *other;

	if (why)
		return why;
	if (!named(device, wanted))
		return "not asked for";
	if (in_vrf(device, devices, n))
		return "in a VRF";
	for (int i = 0; i < LINKS_STACKED && (other = also_seen_by(lower, devices, n)); i++) {
		if (!unusable(other) && named(other, wanted))
			return membership(device, also_seen_by(device, devices, n));
		lower = other;
	}
	return NULL;
}

bool links_named(const struct device *device, const struct device *devices, size_t n, const struct links_wanted *wanted)
{
	bool is_named = named(device, wanted);

	for (size_t i = 0; i < n && !is_named && kind_is(device, "vrf"); i++)
		is_named = devices[i].master == device->ifindex && named(&devices[i], wanted);
	return is_named;
}
