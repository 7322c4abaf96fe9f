/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/conntrack.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/cleanup.h"

#define ORIGINAL_DST 80 /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST; their headers do not go with netinet/in.h */
#define CONNECT_MS 200

/* Fills `address` with an unused port. */
static int loopback_listen(int fd, struct sockaddr *address, socklen_t length)
{
	return bind(fd, address, length) || listen(fd, 1) || getsockname(fd, address, &length) ? -errno : 0;
}

static int loopback_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int failure = 0;

	if (!connect(fd, address, length))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (poll(&wait, 1, CONNECT_MS) != 1)
		return -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
	return -failure;
}

/* conntrack tells a socket where its connection went before any rewriting: -ENOENT when it does not know it. */
static bool is_tracked(int fd, int level)
{
	struct sockaddr_storage destination;
	socklen_t length = level == SOL_IP ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	return !getsockopt(fd, level, ORIGINAL_DST, &destination, &length);
}

/* 1: it is tracked. 0: it is not, or nothing flows in this family. -errno: there is no telling. */
static int tracks(struct sockaddr *address, socklen_t length, int level)
{
	CLEANUP_CLOSE int server = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLEANUP_CLOSE int client = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int ret;

	if (server < 0 || client < 0)
		return errno == EAFNOSUPPORT ? 0 : -errno;
	ret = loopback_listen(server, address, length) ?: loopback_connect(client, address, length);
	if (ret == -EADDRNOTAVAIL || ret == -ENETUNREACH)
		return 0;
	return ret ?: is_tracked(client, level);
}

int conntrack_tracks_loopback(void)
{
	struct sockaddr_in ip4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 ip6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	int by_ip4 = tracks((struct sockaddr *)&ip4, sizeof(ip4), SOL_IP);
	int by_ip6 = by_ip4 == 1 ? 0 : tracks((struct sockaddr *)&ip6, sizeof(ip6), SOL_IPV6);

	return by_ip4 == 1 || by_ip6 == 1 ? 1 : by_ip4 ?: by_ip6;
}
