/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/addresses.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "sys/netlink.h"

#define ADDRESSES_TRIES 8 /* a dump that changed under way is read again */

struct address_list {
	struct own_address *addresses;
	size_t n, room;
};

static struct own_address *address_list_add(struct address_list *list)
{
	if (list->n == list->room) {
		size_t room = list->room ? list->room * 2 : 16;
		struct own_address *more = reallocarray(list->addresses, room, sizeof(*more));

		if (!more)
			return NULL;
		list->addresses = more;
		list->room = room;
	}
	memset(&list->addresses[list->n], 0, sizeof(*list->addresses));
	return &list->addresses[list->n++];
}

/* At the other end of a tunnel is another address: this one's own is then IFA_LOCAL. */
static const struct nlattr *find_own(const struct nlmsghdr *header)
{
	const struct nlattr *attr, *own = NULL;

	mnl_attr_for_each (attr, header, sizeof(struct ifaddrmsg)) {
		if (mnl_attr_get_type(attr) == IFA_LOCAL)
			return attr;
		if (mnl_attr_get_type(attr) == IFA_ADDRESS)
			own = attr;
	}
	return own;
}

static int read_address(const struct nlmsghdr *header, void *arg)
{
	const struct ifaddrmsg *info = mnl_nlmsg_get_payload(header);
	const struct nlattr *own = find_own(header);
	size_t length = info->ifa_family == AF_INET6 ? 16 : 4;
	struct own_address *address;

	if (!own || mnl_attr_get_payload_len(own) != length)
		return MNL_CB_OK;
	address = address_list_add(arg);
	if (!address) {
		errno = ENOMEM;
		return MNL_CB_ERROR;
	}
	address->ifindex = info->ifa_index;
	if (length == 4)
		address->bytes[10] = address->bytes[11] = 0xff;
	memcpy(address->bytes + sizeof(address->bytes) - length, mnl_attr_get_payload(own), length);
	return MNL_CB_OK;
}

static int addresses_dump(struct address_list *list)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_ROUTE);
	_Alignas(struct nlmsghdr) char buffer[256];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

	if (!nl)
		return -errno;
	request->nlmsg_type = RTM_GETADDR;
	request->nlmsg_flags = NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(request, sizeof(struct ifaddrmsg));
	return netlink_ask(nl, request, read_address, list);
}

int addresses_read(struct own_address **addresses, struct error *err)
{
	struct address_list list = {};
	int ret = -EINTR;

	for (int i = 0; i < ADDRESSES_TRIES && ret == -EINTR; i++) {
		list.n = 0;
		ret = addresses_dump(&list);
	}
	if (ret) {
		free(list.addresses);
		return error_set(err, ret, "reading the addresses: %s", strerror(-ret));
	}
	*addresses = list.addresses;
	return list.n;
}
