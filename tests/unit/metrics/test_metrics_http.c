/* SPDX-License-Identifier: GPL-2.0 */
/* What is asked for is answered, also where many ask for the metrics at once. The server and its clients share one thread. */
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
#define ROOM 256
#define SILENT 300   /* more than there is room for */
#define TICKS_MAX 80 /* of a tenth of a second: less than who is slow has */
#define ASKED "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"

struct scene {
	struct event_base *base;
	struct metrics_http *http;
	struct sockaddr_in address;
	int read; /* how often */
	bool unreadable, starting;
	int clients[SILENT];
	size_t n;
	struct event *tick;
	int ticks;
};

static char *count_reads(void *context)
{
	struct scene *s = context;
	char *text = NULL;

	if (s->unreadable)
		return NULL;
	assert_true(asprintf(&text, "read %d\n", ++s->read) > 0);
	return text;
}

static bool is_ready(void *context)
{
	return !((struct scene *)context)->starting;
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

static void close_all(struct scene *s)
{
	while (s->n)
		close(s->clients[--s->n]);
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	close_all(s);
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

/* Beginning and end of what it gets. */
static void expect(struct scene *s, const char *request, const char *status, const char *header, const char *body)
{
	int fd = client(s);
	char text[1024], whole[128];

	snprintf(whole, sizeof(whole), "%s HTTP/1.1\r\nHost: x\r\n\r\n", request);
	assert_int_equal(send(fd, whole, strlen(whole), MSG_NOSIGNAL), strlen(whole));
	while (!answered(fd, text))
		event_base_loop(s->base, EVLOOP_ONCE);
	snprintf(whole, sizeof(whole), "HTTP/1.1 %s\r\n", status);
	assert_int_equal(strncmp(text, whole, strlen(whole)), 0);
	assert_non_null(strstr(text, header));
	assert_string_equal(strstr(text, "\r\n\r\n") + 4, body);
}

#define TEXT "Content-Type: text/plain; charset=utf-8\r\n"

static void each_path(void **state)
{
	struct scene *s = *state;

	alarm(60);
	expect(s, "GET /metrics", "200 OK", "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n", "read 1\n");
	expect(s, "GET /metrics?x=y", "200 OK", "", "read 2\n");
	expect(s, "GET /livez", "200 OK", TEXT, "ok\n");
	expect(s, "GET /healthz", "200 OK", TEXT, "ok\n");
	expect(s, "GET /readyz", "200 OK", TEXT, "ok\n");
	expect(s, "GET /", "404 Not Found", TEXT, "there is /metrics, /livez, /readyz and /healthz\n");
	expect(s, "POST /metrics", "405 Method Not Allowed", "Allow: GET\r\n", "only GET\n");
	expect(s, "PUT /", "404 Not Found", TEXT, "there is /metrics, /livez, /readyz and /healthz\n");
	s->starting = s->unreadable = true;
	expect(s, "GET /livez", "200 OK", TEXT, "ok\n");
	expect(s, "GET /readyz", "503 Service Unavailable", TEXT, "starting: servers are not in force yet\n");
	expect(s, "GET /metrics", "500 Internal Server Error", TEXT, "the counters cannot be read\n");
	alarm(0);
}

/* Connections that the server has accepted, and has not let go. */
static int accepted(const struct scene *s)
{
	int n = 0;

	for (int fd = 0; fd < 3 * SILENT; fd++) {
		struct sockaddr_in address = { 0 };
		socklen_t length = sizeof(address);
		int listens = 1;

		if (getsockname(fd, (struct sockaddr *)&address, &length) || address.sin_port != s->address.sin_port)
			continue;
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &(socklen_t){ sizeof(listens) });
		n += !listens;
	}
	return n;
}

/* The others have to wait, and the agent keeps descriptors for its work. Who goes makes room. */
static void no_more_than_there_is_room_for(void **state)
{
	struct scene *s = *state;

	alarm(60);
	for (int round = 0; round < 2; round++) {
		while (s->n < SILENT)
			client(s);
		while (accepted(s) < ROOM)
			event_base_loop(s->base, EVLOOP_ONCE);
		for (int i = 0; i < 20; i++)
			event_base_loop(s->base, EVLOOP_NONBLOCK);
		assert_int_equal(accepted(s), ROOM);
		close_all(s);
		while (accepted(s))
			event_base_loop(s->base, EVLOOP_ONCE);
	}
	alarm(0);
}

/* Nobody waits until it is looked who has gone: nothing here waits for the time. */
static void one_after_the_other(void **state)
{
	struct scene *s = *state;
	char text[1024];

	for (int i = 0; i < 2 * ROOM; i++) {
		bool said = false;

		client(s);
		ask(s);
		for (int n = 0; n < 100 && !said; n++) {
			event_base_loop(s->base, EVLOOP_NONBLOCK);
			said = answered(s->clients[0], text);
		}
		assert_true(said);
		close_all(s);
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
		cmocka_unit_test_setup_teardown(each_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_more_than_there_is_room_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_after_the_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(asked_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(silent_ones, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
