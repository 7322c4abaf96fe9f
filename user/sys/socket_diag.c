/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/socket_diag.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define TCP_NEW_SYN_RECV 12 /* half-open; the kernel's own number, not in its user headers */
#define STATES_WITH_PEER (((1U << (TCP_NEW_SYN_RECV + 1)) - 1) & ~(1U << TCP_LISTEN))

#define MAPPED_PREFIX 12 /* bytes of ::ffff:0:0/96 */

static bool address_is_mapped(const __u8 *address)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address);
}

/* inet_diag writes an IPv4 address into the first of four words. */
static void address_from_words(__u8 family, const __be32 *words, __u8 *address)
{
	if (family == AF_INET6) {
		memcpy(address, words, 16);
		return;
	}
	memset(address, 0, 10);
	memset(address + 10, 0xff, 2);
	memcpy(address + MAPPED_PREFIX, words, 4);
}

static void address_to_words(__u8 family, const __u8 *address, __be32 *words)
{
	if (family == AF_INET6)
		memcpy(words, address, 16);
	else
		memcpy(words, address + MAPPED_PREFIX, 4);
}

static struct inet_diag_req_v2 *request_start(void *buffer, __u16 type, __u16 flags, __u8 family)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct inet_diag_req_v2 *request;

	header->nlmsg_type = type;
	header->nlmsg_flags = flags;
	request = mnl_nlmsg_put_extra_header(header, sizeof(*request));
	request->sdiag_family = family;
	request->sdiag_protocol = IPPROTO_TCP;
	request->idiag_states = STATES_WITH_PEER;
	return request;
}

static const __u8 families[] = { AF_INET, AF_INET6 };

struct each {
	socket_diag_each_t call;
	void *arg;
};

static int each_socket(const struct nlmsghdr *header, void *arg)
{
	const struct inet_diag_msg *message = mnl_nlmsg_get_payload(header);
	struct socket_id socket = { .family = message->idiag_family, .id = message->id };
	const struct each *each = arg;
	struct weir_flow flow = {
		.client_port = message->id.idiag_dport,
		.server_port = message->id.idiag_sport,
	};

	address_from_words(message->idiag_family, message->id.idiag_dst, flow.client);
	address_from_words(message->idiag_family, message->id.idiag_src, flow.server);
	each->call(&flow, &socket, each->arg);
	return MNL_CB_OK;
}

int socket_diag_each(struct mnl_socket *nl, socket_diag_each_t call, void *arg)
{
	struct each each = { .call = call, .arg = arg };
	_Alignas(struct nlmsghdr) char buffer[256];
	int ret;

	for (size_t i = 0; i < sizeof(families); i++) {
		request_start(buffer, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, families[i]);
		ret = netlink_ask(nl, (struct nlmsghdr *)buffer, each_socket, &each);
		if (ret)
			return ret;
	}
	return 0;
}

struct each_listener {
	socket_diag_listener_t call;
	void *arg;
};

static __u64 cgroup_of(const struct nlmsghdr *header)
{
	const struct nlattr *attribute;

	mnl_attr_for_each (attribute, header, sizeof(struct inet_diag_msg))
		if (mnl_attr_get_type(attribute) == INET_DIAG_CGROUP_ID && mnl_attr_get_payload_len(attribute) == 8)
			return mnl_attr_get_u64(attribute);
	return 0;
}

static int each_listener(const struct nlmsghdr *header, void *arg)
{
	const struct inet_diag_msg *message = mnl_nlmsg_get_payload(header);
	struct socket_listener listener = {
		.port = ntohs(message->id.idiag_sport),
		.inode = message->idiag_inode,
		.cgroup = cgroup_of(header),
	};
	const struct each_listener *each = arg;

	/* 0.0.0.0 is any address, as :: is. */
	address_from_words(message->id.idiag_src[0] ? message->idiag_family : AF_INET6, message->id.idiag_src,
			   listener.address);
	each->call(&listener, each->arg);
	return MNL_CB_OK;
}

static int each_without_peer(__u8 protocol, __u32 state, struct each_listener each)
{
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_SOCK_DIAG);
	_Alignas(struct nlmsghdr) char buffer[256];
	struct inet_diag_req_v2 *request;
	int ret = nl ? 0 : -errno;

	for (size_t i = 0; i < sizeof(families) && !ret; i++) {
		request = request_start(buffer, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, families[i]);
		request->sdiag_protocol = protocol;
		request->idiag_states = 1U << state;
		ret = netlink_ask(nl, (struct nlmsghdr *)buffer, each_listener, &each);
	}
	return ret;
}

int socket_diag_listeners(socket_diag_listener_t call, void *arg)
{
	return each_without_peer(IPPROTO_TCP, TCP_LISTEN, (struct each_listener){ call, arg });
}

/* The kernel calls a socket of UDP closed that has no peer. */
int socket_diag_udp(socket_diag_listener_t call, void *arg)
{
	return each_without_peer(IPPROTO_UDP, TCP_CLOSE, (struct each_listener){ call, arg });
}

static int note_state(const struct nlmsghdr *header, void *arg)
{
	const struct inet_diag_msg *message = mnl_nlmsg_get_payload(header);

	*(int *)arg = message->idiag_state;
	return MNL_CB_OK;
}

int socket_diag_find(struct mnl_socket *nl, const struct weir_flow *flow)
{
	__u8 family = address_is_mapped(flow->server) ? AF_INET : AF_INET6;
	_Alignas(struct nlmsghdr) char buffer[256];
	struct inet_diag_req_v2 *request = request_start(buffer, SOCK_DIAG_BY_FAMILY, 0, family);
	int state = 0, ret;

	request->id.idiag_sport = flow->server_port;
	request->id.idiag_dport = flow->client_port;
	address_to_words(family, flow->server, request->id.idiag_src);
	address_to_words(family, flow->client, request->id.idiag_dst);
	request->id.idiag_cookie[0] = request->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;

	ret = netlink_ask(nl, (struct nlmsghdr *)buffer, note_state, &state);
	if (ret == -ENOENT)
		return 0;
	/* Without a connection the kernel finds the listener that would take a new one. */
	return ret ?: state == TCP_LISTEN ? 0 : state;
}

int socket_diag_destroy(struct mnl_socket *nl, const struct socket_id *socket)
{
	_Alignas(struct nlmsghdr) char buffer[256];

	request_start(buffer, SOCK_DESTROY, 0, socket->family)->id = socket->id;
	return netlink_ask(nl, (struct nlmsghdr *)buffer, NULL, NULL);
}
