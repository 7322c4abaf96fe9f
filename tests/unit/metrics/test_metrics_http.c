/* SPDX-License-Identifier: GPL-2.0 */
/* Many who ask for the metrics at once. The server and its clients share one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "metrics/http.h"

#define CLIENTS 100
#define SILENT 300   /* more than there is room for */
#define TICKS_MAX 80 /* of a tenth of a second: less than who is slow has */
#define ASKED "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"

struct scene {
	struct event_base *base;
	struct metrics_http *http;
	struct sockaddr_in address;
	int read; /* how often */
	int clients[SILENT];
	size_t n;
	struct event *tick;
	int ticks;
};

static char *count_reads(void *context)
{
	struct scene *s = context;
	char *text = NULL;

	assert_true(asprintf(&text, "read %d\n", ++s->read) > 0);
	return text;
}

static bool is_ready(void *context)
{
	(void)context;
	return true;
}

static void find_port(struct scene *s)
{
	CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(s->address);

	s->address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(fd, (struct sockaddr *)&s->address, sizeof(s->address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&s->address, &length), 0);
}

static int set_up(void **state)
{
	struct scene *s = test_calloc(1, sizeof(*s));
	struct error err = { 0 };
	char address[32];

	find_port(s);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(s->address.sin_port));
	s->base = event_base_new();
	if (metrics_http_open(&s->http, s->base, address, count_reads, is_ready, s, &err))
		fail_msg("%s", err.text);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	while (s->n)
		close(s->clients[--s->n]);
	if (s->tick)
		event_free(s->tick);
	metrics_http_close(s->http);
	event_base_free(s->base);
	test_free(s);
	return 0;
}

static int client(struct scene *s)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_true(!connect(fd, (struct sockaddr *)&s->address, sizeof(s->address)) || errno == EINPROGRESS);
	s->clients[s->n++] = fd;
	event_base_loop(s->base, EVLOOP_NONBLOCK);
	return fd;
}

static void run_until(struct scene *s, bool (*is_so)(struct scene *s))
{
	while (!is_so(s))
		event_base_loop(s->base, EVLOOP_ONCE);
}

static bool answered(int fd, char text[static 1024])
{
	ssize_t n = recv(fd, text, 1023, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void ask(const struct scene *s)
{
	for (size_t i = 0; i < s->n; i++)
		assert_int_equal(send(s->clients[i], ASKED, strlen(ASKED), MSG_NOSIGNAL), strlen(ASKED));
}

/* They were there before the text was made, so it is new for each of them. Who asks afterwards gets another one. */
static void asked_at_once(void **state)
{
	struct scene *s = *state;
	char text[1024], wanted[16];

	for (int round = 0; round < 3; round++) {
		int before = s->read;

		while (s->n < CLIENTS)
			client(s);
		ask(s);
		for (int i = 0; i < 20; i++)
			event_base_loop(s->base, EVLOOP_NONBLOCK);
		/* epoll tells of 32 at first, and of twice as many each time. */
		assert_in_range(s->read, before + 1, before + CLIENTS / 10);
		snprintf(wanted, sizeof(wanted), "read %d\n", s->read);
		for (size_t i = 0; i < s->n; i++)
			assert_true(answered(s->clients[i], text));
		assert_non_null(strstr(text, wanted));
	}
}

static bool last_is_answered(struct scene *s)
{
	char text[1024];

	return answered(s->clients[s->n - 1], text);
}

/* It begins anew each time, so that a machine that stands still for seconds does not count them. */
static void tick(evutil_socket_t fd, short what, void *context)
{
	struct scene *s = context;

	(void)fd;
	(void)what;
	assert_in_range(++s->ticks, 1, TICKS_MAX);
	event_add(s->tick, &(struct timeval){ .tv_usec = 100000 });
}

/* Who says nothing makes room within seconds, long before he is let go as one that is slow. */
static void silent_ones(void **state)
{
	struct scene *s = *state;

	while (s->n < SILENT - 1)
		client(s);
	ask(&(struct scene){ .clients = { client(s) }, .n = 1 });
	s->tick = event_new(s->base, -1, 0, tick, s);
	tick(-1, 0, s);
	run_until(s, last_is_answered);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(asked_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(silent_ones, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
