/* SPDX-License-Identifier: GPL-2.0 */
#include "ends.h"
#include "packets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int listener = -1, client = -1, server = -1;

int ends_make(void *unused)
{
	struct sockaddr_in s = { .sin_family = AF_INET, .sin_port = htons(SERVER_PORT) };
	struct sockaddr_in c = { .sin_family = AF_INET, .sin_port = htons(CLIENT_PORT) };
	int one = 1;

	(void)unused;
	inet_pton(AF_INET, "127.0.0.1", &s.sin_addr);
	inet_pton(AF_INET, "127.0.0.9", &c.sin_addr);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	client = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(client, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&s, sizeof(s)) || listen(listener, 1) ||
	    bind(client, (struct sockaddr *)&c, sizeof(c)) || connect(client, (struct sockaddr *)&s, sizeof(s)))
		return -errno;
	server = accept(listener, NULL, NULL);
	return server < 0 ? -errno : 0;
}

static void reset(int fd)
{
	struct linger at_once = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

void ends_part(void)
{
	reset(client);
	reset(server);
	client = server = -1;
}

void ends_close(void)
{
	ends_part();
	close(listener);
	listener = -1;
}

int ends_sign(void)
{
	struct tcp_md5sig sign = { .tcpm_keylen = 1, .tcpm_key = "k" };
	socklen_t size = sizeof(sign.tcpm_addr);

	if (getpeername(server, (struct sockaddr *)&sign.tcpm_addr, &size) ||
	    setsockopt(server, IPPROTO_TCP, TCP_MD5SIG, &sign, sizeof(sign)))
		return -errno;
	return 0;
}

void ends_say(bool client_says, const char *text)
{
	const size_t n = strlen(text);
	char heard[n];

	assert_int_equal(send(client_says ? client : server, text, n, MSG_NOSIGNAL), n);
	assert_int_equal(recv(client_says ? server : client, heard, n, MSG_WAITALL), n);
	assert_memory_equal(heard, text, n);
}

static int queue_put(int fd, int queue, __u32 next)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)) ||
	       setsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &next, sizeof(next));
}

int ends_restore(void *unused)
{
	__u32 received = ends_queue(TCP_RECV_QUEUE), sent = ends_queue(TCP_SEND_QUEUE);
	int on = TCP_REPAIR_ON, off = TCP_REPAIR_OFF_NO_WP, one = 1;
	struct sockaddr_in s, c;
	socklen_t size = sizeof(s);

	(void)unused;
	if (getsockname(server, (struct sockaddr *)&s, &size) || getpeername(server, (struct sockaddr *)&c, &size) ||
	    setsockopt(server, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)))
		return -errno;
	close(server); /* silently, in this mode */
	server = socket(AF_INET, SOCK_STREAM, 0);
	if (setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    setsockopt(server, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) || queue_put(server, TCP_SEND_QUEUE, sent) ||
	    queue_put(server, TCP_RECV_QUEUE, received) || bind(server, (struct sockaddr *)&s, sizeof(s)) ||
	    connect(server, (struct sockaddr *)&c, sizeof(c)) ||
	    setsockopt(server, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)))
		return -errno;
	return 0;
}

static void repair(int how)
{
	assert_int_equal(setsockopt(server, IPPROTO_TCP, TCP_REPAIR, &how, sizeof(how)), 0);
}

__u32 ends_queue(int queue)
{
	socklen_t size = sizeof(__u32);
	__u32 next = 0;

	repair(TCP_REPAIR_ON);
	assert_int_equal(setsockopt(server, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)), 0);
	assert_int_equal(getsockopt(server, IPPROTO_TCP, TCP_QUEUE_SEQ, &next, &size), 0);
	repair(TCP_REPAIR_OFF_NO_WP);
	return next;
}

void ends_room(__u32 bytes)
{
	struct tcp_repair_window window;
	socklen_t size = sizeof(window);

	repair(TCP_REPAIR_ON);
	assert_int_equal(getsockopt(server, IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, &size), 0);
	window.rcv_wnd = bytes;
	assert_int_equal(setsockopt(server, IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, sizeof(window)), 0);
	repair(TCP_REPAIR_OFF_NO_WP);
}
