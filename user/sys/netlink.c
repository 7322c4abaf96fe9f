/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/netlink.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define NETLINK_BUFFER 32768 /* the kernel fills dump messages up to this size */

struct mnl_socket *netlink_open(int bus)
{
	struct mnl_socket *nl = mnl_socket_open2(bus, SOCK_CLOEXEC);

	if (nl && mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID)) {
		int saved = errno;

		mnl_socket_close(nl);
		errno = saved;
		return NULL;
	}
	return nl;
}

/* NLMSG_ERROR and NLMSG_DONE both begin with a negative errno or 0. */
static int netlink_ended(const struct nlmsghdr *message, void *arg)
{
	const int *code = mnl_nlmsg_get_payload(message);

	(void)arg;
	if (mnl_nlmsg_get_payload_len(message) < sizeof(*code) || !*code)
		return MNL_CB_STOP;
	errno = -*code;
	return MNL_CB_ERROR;
}

int netlink_ask(struct mnl_socket *nl, struct nlmsghdr *request, mnl_cb_t each, void *arg)
{
	static mnl_cb_t control[] = { [NLMSG_ERROR] = netlink_ended, [NLMSG_DONE] = netlink_ended };
	unsigned int port = mnl_socket_get_portid(nl);
	CLEANUP_FREE char *buffer = malloc(NETLINK_BUFFER);
	ssize_t length;
	int ret;

	if (!buffer)
		return -ENOMEM;
	request->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	request->nlmsg_seq = 1;
	if (mnl_socket_sendto(nl, request, request->nlmsg_len) < 0)
		return -errno;
	do {
		length = mnl_socket_recvfrom(nl, buffer, NETLINK_BUFFER);
		if (length < 0)
			return -errno;
		ret = mnl_cb_run2(buffer, length, request->nlmsg_seq, port, each, arg, control,
				  MNL_ARRAY_SIZE(control));
	} while (ret > MNL_CB_STOP);
	return ret < 0 ? -errno : 0;
}
