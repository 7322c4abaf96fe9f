/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A keep-alive HTTP/1.1 load generator of one thread.
 *
 *   load [-s SECONDS] [-w WARM_UP] [-c CONNECTIONS] [-r RATE] [-m METHOD] [-b BODY_BYTES] [-u HEADER]... [-p PID]...
 *        ADDRESS PORT PATH
 *
 * Without -r each connection sends its next request as soon as it has its answer. With it, RATE requests a second fall
 * due at even distances and go out on connections that are free; times are counted from when a request was due, so that
 * a server that falls behind cannot hide it. What is due and unanswered at the end counts with its age so far.
 *
 * One line of JSON on stdout, for the SECONDS behind the warm-up: what came back, times in us, and CPU seconds: of this
 * process, of each CPU, and of the processes named by -p.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "histogram.h"
#include "usage.h"

#define NS_PER_S 1000000000ULL
#define HEAD_ROOM 4096
#define EVENTS 64

struct connection {
	int fd;
	bool busy;    /* a request is out */
	bool waiting; /* for room to send more of it */
	bool closing; /* after this answer */
	bool in_body;
	uint64_t due_ns;
	size_t sent;   /* of the request */
	size_t n_head; /* of the answer's */
	uint64_t left; /* of its body */
	int status;
	char head[HEAD_ROOM];
	struct connection *next_free;
};

static struct {
	double seconds, warm_up, rate;
	int connections;
	const char *method, *path, *address, *port;
	char headers[2048];
	size_t body;
	pid_t processes[USAGE_PROCESSES];
	int n_processes;
} options = { .seconds = 1, .warm_up = 0.2, .connections = 1, .method = "GET" };

static struct {
	uint64_t sent, passed, shed, other, reconnects, bytes;
	struct histogram passed_ns, shed_ns;
} result;

static struct sockaddr_storage server;
static socklen_t server_size;
static char *request;
static size_t request_size;
static struct connection *connections, *first_free, *last_free;
static char sink[256 << 10];
static int poll_fd;
static uint64_t next_due_ns, interval_ns;

static void address_parse(void)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&server;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&server;
	in_port_t port = htons(strtoul(options.port, NULL, 10));

	if (inet_pton(AF_INET, options.address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		server_size = sizeof(*v4);
	} else if (inet_pton(AF_INET6, options.address, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = port;
		server_size = sizeof(*v6);
	} else {
		errx(1, "%s is no address", options.address);
	}
}

static void request_make(void)
{
	char length[64] = "";
	int n;

	if (options.body)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", options.body);
	request = calloc(1, HEAD_ROOM + options.body);
	if (!request)
		errx(1, "no memory");
	n = snprintf(request, HEAD_ROOM, "%s %s HTTP/1.1\r\nHost: bench\r\n%s%s\r\n", options.method, options.path,
		     options.headers, length);
	if (n >= HEAD_ROOM)
		errx(1, "the request's head is too long");
	memset(request + n, 'x', options.body);
	request_size = n + options.body;
}

static void connection_open(struct connection *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };

	c->fd = socket(server.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&server, server_size))
		errx(1, "connecting to %s port %s: %s", options.address, options.port, strerror(errno));
	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &event))
		errx(1, "epoll_ctl: %s", strerror(errno));
	c->waiting = false;
	c->n_head = 0;
	c->in_body = false;
}

static void connection_free(struct connection *c)
{
	c->busy = false;
	c->next_free = NULL;
	if (last_free)
		last_free->next_free = c;
	else
		first_free = c;
	last_free = c;
}

static struct connection *connection_take(void)
{
	struct connection *c = first_free;

	first_free = c->next_free;
	if (!first_free)
		last_free = NULL;
	return c;
}

static void wait_for_room(struct connection *c, bool wait)
{
	struct epoll_event event = { .events = EPOLLIN | (wait ? EPOLLOUT : 0), .data.ptr = c };

	if (c->waiting == wait)
		return;
	c->waiting = wait;
	epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

/* An error is left to be met by the read that follows. */
static void request_send(struct connection *c)
{
	ssize_t n = 0;

	while (c->sent < request_size && n >= 0) {
		n = send(c->fd, request + c->sent, request_size - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0)
			c->sent += n;
	}
	wait_for_room(c, c->sent < request_size);
}

static void request_start(struct connection *c, uint64_t due_ns)
{
	c->busy = true;
	c->due_ns = due_ns;
	c->sent = 0;
	result.sent++;
	request_send(c);
}

/* Whoever is free sends: at once, or what is due. */
static void requests_start(uint64_t now)
{
	while (first_free && (!interval_ns || next_due_ns <= now)) {
		request_start(connection_take(), interval_ns ? next_due_ns : now_ns());
		next_due_ns += interval_ns;
	}
}

static void connection_reopen(struct connection *c)
{
	result.reconnects++;
	close(c->fd);
	connection_open(c);
	if (c->busy)
		connection_free(c);
}

static void answer_end(struct connection *c)
{
	uint64_t ns = now_ns() - c->due_ns;

	if (c->status >= 200 && c->status < 300) {
		result.passed++;
		histogram_add(&result.passed_ns, ns);
	} else if (c->status == 429) {
		result.shed++;
		histogram_add(&result.shed_ns, ns);
	} else {
		result.other++;
	}
	c->n_head = 0;
	c->in_body = false;
	if (c->closing || c->sent < request_size) {
		connection_reopen(c);
		return;
	}
	connection_free(c);
}

/* Reads the answer's head once it is whole: what it says of its length is all that matters. */
static void head_parse(struct connection *c)
{
	char *end = memmem(c->head, c->n_head, "\r\n\r\n", 4), *line;
	size_t body;

	if (!end) {
		if (c->n_head == HEAD_ROOM - 1)
			errx(1, "an answer's head is too long");
		return;
	}
	end[2] = 0;
	body = c->n_head - (end + 4 - c->head);
	c->left = 0;
	c->closing = false;
	if (strncmp(c->head, "HTTP/1.1 ", 9))
		errx(1, "not an answer: %.40s", c->head);
	c->status = strtol(c->head + 9, NULL, 10);
	for (line = strstr(c->head, "\r\n"); line && line[2]; line = strstr(line + 2, "\r\n")) {
		if (!strncasecmp(line, "\r\nContent-Length:", 17))
			c->left = strtoull(line + 17, NULL, 10);
		else if (!strncasecmp(line, "\r\nConnection: close", 19))
			c->closing = true;
		else if (!strncasecmp(line, "\r\nTransfer-Encoding:", 20))
			errx(1, "an answer of unknown length");
	}
	if (body > c->left)
		errx(1, "more came than the answer's length");
	c->left -= body;
	c->in_body = true;
	if (!c->left)
		answer_end(c);
}

/* One read an event: what is left makes the next one. */
static void connection_read(struct connection *c)
{
	ssize_t n;

	if (c->in_body)
		n = recv(c->fd, sink, c->left < sizeof(sink) ? c->left : sizeof(sink), MSG_DONTWAIT);
	else
		n = recv(c->fd, c->head + c->n_head, HEAD_ROOM - 1 - c->n_head, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		connection_reopen(c);
		return;
	}
	result.bytes += n;
	if (!c->in_body) {
		c->n_head += n;
		head_parse(c);
		return;
	}
	c->left -= n;
	if (!c->left)
		answer_end(c);
}

static void wait_for_events(uint64_t until_ns)
{
	struct epoll_event events[EVENTS];
	uint64_t now = now_ns(), wait_ns;
	struct timespec wait;
	int n;

	if (interval_ns && first_free && next_due_ns < until_ns)
		until_ns = next_due_ns;
	wait_ns = until_ns > now ? until_ns - now : 0;
	wait = (struct timespec){ .tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S };
	n = epoll_pwait2(poll_fd, events, EVENTS, &wait, NULL);
	for (int i = 0; i < n; i++) {
		struct connection *c = events[i].data.ptr;

		if (events[i].events & EPOLLOUT)
			request_send(c);
		if (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))
			connection_read(c);
	}
}

static void run_until(uint64_t end_ns)
{
	uint64_t now;

	while ((now = now_ns()) < end_ns) {
		requests_start(now);
		wait_for_events(end_ns);
	}
}

/* At a fixed rate, what should have been answered by now has been late for at least as long as it has been due. */
static uint64_t unanswered_count(uint64_t now)
{
	uint64_t n = 0;

	if (!interval_ns)
		return 0;
	for (int i = 0; i < options.connections; i++) {
		if (!connections[i].busy)
			continue;
		histogram_add(&result.passed_ns, now - connections[i].due_ns);
		n++;
	}
	for (uint64_t due_ns = next_due_ns; due_ns < now; due_ns += interval_ns) {
		histogram_add(&result.passed_ns, now - due_ns);
		n++;
	}
	return n;
}

static void print_times(const char *name, const struct histogram *h)
{
	printf("\"%s_p50_us\": %.2f, \"%s_p99_us\": %.2f, ", name, histogram_at(h, 0.5) / 1e3, name,
	       histogram_at(h, 0.99) / 1e3);
}

static void print_result(const struct usage *start, const struct usage *end, uint64_t unanswered)
{
	uint64_t wall_ns = end->wall_ns - start->wall_ns, idle_ns;
	const char *comma = "";

	printf("{\"seconds\": %.6f, \"sent\": %lu, \"passed\": %lu, \"shed\": %lu, \"other\": %lu, \"reconnects\": %lu, ",
	       wall_ns / 1e9, result.sent, result.passed, result.shed, result.other, result.reconnects);
	printf("\"unanswered\": %lu, \"bytes\": %lu, ", unanswered, result.bytes);
	print_times("passed", &result.passed_ns);
	print_times("shed", &result.shed_ns);
	printf("\"own_cpu_s\": %.6f, \"cpus_s\": [", (end->own_ns - start->own_ns) / 1e9);
	for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF) && i < USAGE_CPUS; i++, comma = ", ") {
		idle_ns = end->idle_ns[i] - start->idle_ns[i];
		printf("%s%.3f", comma, idle_ns < wall_ns ? (wall_ns - idle_ns) / 1e9 : 0);
	}
	printf("], \"process_cpu_s\": [");
	comma = "";
	for (int i = 0; i < options.n_processes; i++, comma = ", ")
		printf("%s%.6f", comma, (end->process_ns[i] - start->process_ns[i]) / 1e9);
	printf("]}\n");
}

static void header_add(const char *header)
{
	size_t n = strlen(options.headers);

	if (snprintf(options.headers + n, sizeof(options.headers) - n, "%s\r\n", header) >=
	    (int)(sizeof(options.headers) - n))
		errx(1, "too many headers");
}

static double number_parse(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || number < 0)
		errx(1, "%s is no number", text);
	return number;
}

static void process_add(const char *pid)
{
	if (options.n_processes == USAGE_PROCESSES)
		errx(1, "too many processes");
	options.processes[options.n_processes++] = number_parse(pid);
}

static void options_parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:w:c:r:m:b:u:p:")) != -1) {
		if (option == 's')
			options.seconds = number_parse(optarg);
		else if (option == 'w')
			options.warm_up = number_parse(optarg);
		else if (option == 'c')
			options.connections = number_parse(optarg);
		else if (option == 'r')
			options.rate = number_parse(optarg);
		else if (option == 'm')
			options.method = optarg;
		else if (option == 'b')
			options.body = number_parse(optarg);
		else if (option == 'u')
			header_add(optarg);
		else if (option == 'p')
			process_add(optarg);
		else
			exit(2);
	}
	if (argc - optind != 3 || options.connections < 1)
		errx(1, "wrong usage: see the head of its source");
	options.address = argv[optind];
	options.port = argv[optind + 1];
	options.path = argv[optind + 2];
}

static void set_up(void)
{
	struct rlimit files = { .rlim_cur = options.connections + 64, .rlim_max = options.connections + 64 };

	address_parse();
	request_make();
	if (options.connections > 900 && setrlimit(RLIMIT_NOFILE, &files))
		errx(1, "RLIMIT_NOFILE: %s", strerror(errno));
	prctl(PR_SET_TIMERSLACK, 1);
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	connections = calloc(options.connections, sizeof(*connections));
	if (poll_fd < 0 || !connections)
		errx(1, "no memory");
	for (int i = 0; i < options.connections; i++) {
		connection_open(&connections[i]);
		connection_free(&connections[i]);
	}
	if (options.rate > 0)
		interval_ns = NS_PER_S / options.rate;
}

int main(int argc, char **argv)
{
	struct usage start, end;

	options_parse(argc, argv);
	set_up();
	next_due_ns = now_ns();
	run_until(now_ns() + options.warm_up * NS_PER_S);
	memset(&result, 0, sizeof(result));
	if (usage_read(&start, options.processes, options.n_processes))
		errx(1, "cannot read the CPU times");
	run_until(now_ns() + options.seconds * NS_PER_S);
	if (usage_read(&end, options.processes, options.n_processes))
		errx(1, "cannot read the CPU times");
	print_result(&start, &end, unanswered_count(end.wall_ns));
	return 0;
}
