/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A keep-alive HTTP/1.1 client that checks every answer against its request.
 *
 *   client ADDRESS PORT USER CONNECTIONS REQUESTS
 *
 * REQUESTS requests on each of CONNECTIONS connections, each with a path of its own: mostly GET, some HEAD, some POST
 * with a body, some for a large file. The server is tests/vm/guest's nginx, which answers with the path (also in
 * X-Path). A connection that an answer closes is made again. One line on stdout, for eval:
 *
 *   passed=N shed=N wrong=N reconnects=N ms=N
 *
 * wrong: answers that are not this request's 200 or a well-formed 429. Exit 1 when there is one, or when a connection
 * fails or is silent for SILENCE_S.
 */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SILENCE_S 60
#define PATH_BYTES 512
#define BODY_MAX 6000
#define LARGE_LINES 30000 /* of the large file; each is its number in nine digits */
#define LINE_BYTES 10

enum method {
	GET,
	HEAD,
	POST,
};

static const char *const method_names[] = { [GET] = "GET", [HEAD] = "HEAD", [POST] = "POST" };

static const char *address, *port, *user;
static long requests;

struct request {
	enum method method;
	bool large;
	char path[PATH_BYTES];
	size_t body;
};

struct answer {
	int status;
	size_t length;
	bool close, retry_after;
	char path[PATH_BYTES]; /* X-Path */
	char *body;	       /* of `length` bytes and a 0; NULL: none */
};

struct connection {
	pthread_t thread;
	long index, passed, shed, wrong, reconnects;
	FILE *in; /* NULL: not connected */
	int fd;
};

static void conn_open(struct connection *c)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *info;
	struct timeval silence = { .tv_sec = SILENCE_S };

	if (getaddrinfo(address, port, &hints, &info))
		errx(1, "%s port %s: no such address", address, port);
	c->fd = socket(info->ai_family, info->ai_socktype, 0);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
	if (c->fd < 0 || connect(c->fd, info->ai_addr, info->ai_addrlen))
		errx(1, "connecting to %s port %s: %s", address, port, strerror(errno));
	freeaddrinfo(info);
	c->in = fdopen(c->fd, "r");
	if (!c->in)
		errx(1, "out of memory");
}

static void conn_close(struct connection *c)
{
	fclose(c->in);
	c->in = NULL;
}

/* The n-th request of a connection: every run sends the same ones. */
static void request_make(struct request *r, long conn, long n)
{
	static const char padding[] = "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789";

	r->method = n % 11 == 7 ? HEAD : n % 7 == 3 ? POST : GET;
	r->body = r->method == POST ? (n * 977) % BODY_MAX : 0;
	r->large = r->method == GET && n % 50 == 20;
	snprintf(r->path, sizeof(r->path), "/%sapi/v1/namespaces/ns%ld/pods/%ld-%.*s", r->large ? "large/" : "", conn,
		 n, (int)(n * 31 % (sizeof(padding) - 1)), padding);
}

static void request_send(struct connection *c, const struct request *r)
{
	static const char filler[BODY_MAX] = { 0 };
	char text[PATH_BYTES + BODY_MAX + 256];
	size_t n, sent = 0;

	n = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: weir\r\nX-Remote-User: %s\r\n",
		     method_names[r->method], r->path, user);
	if (r->method == POST)
		n += snprintf(text + n, sizeof(text) - n, "Content-Length: %zu\r\n", r->body);
	n += snprintf(text + n, sizeof(text) - n, "\r\n");
	memcpy(text + n, filler, r->body);
	n += r->body;
	while (sent < n) {
		ssize_t ret = send(c->fd, text + sent, n - sent, MSG_NOSIGNAL);

		if (ret < 0)
			errx(1, "connection %ld, %s: sending: %s", c->index, r->path, strerror(errno));
		sent += ret;
	}
}

static void line_read(struct connection *c, const struct request *r, char *line, size_t size)
{
	if (!fgets(line, size, c->in))
		errx(1, "connection %ld, %s %s: %s", c->index, method_names[r->method], r->path,
		     feof(c->in) ? "closed without an answer" : strerror(errno));
	line[strcspn(line, "\r\n")] = 0;
}

/* The answer's body is the caller's to free. */
static void answer_read(struct connection *c, const struct request *r, struct answer *a)
{
	char line[1024];

	memset(a, 0, sizeof(*a));
	line_read(c, r, line, sizeof(line));
	if (sscanf(line, "HTTP/1.1 %d ", &a->status) != 1)
		errx(1, "connection %ld, %s: not an answer: %s", c->index, r->path, line);
	for (line_read(c, r, line, sizeof(line)); *line; line_read(c, r, line, sizeof(line))) {
		sscanf(line, "Content-Length: %zu", &a->length);
		sscanf(line, "X-Path: %511s", a->path);
		a->close |= !strcmp(line, "Connection: close");
		a->retry_after |= !strncmp(line, "Retry-After: ", 13);
	}
	if (r->method == HEAD)
		return;
	a->body = calloc(1, a->length + 1);
	if (!a->body || fread(a->body, 1, a->length, c->in) != a->length)
		errx(1, "connection %ld, %s: body cut short", c->index, r->path);
}

static bool large_is_right(const struct answer *a)
{
	char line[32];

	if (a->length != (size_t)LARGE_LINES * LINE_BYTES)
		return false;
	for (int i = 0; i < LARGE_LINES; i++) {
		snprintf(line, sizeof(line), "%09d\n", i);
		if (memcmp(a->body + (size_t)i * LINE_BYTES, line, LINE_BYTES))
			return false;
	}
	return true;
}

static bool passed_is_right(const struct request *r, const struct answer *a)
{
	if (strcmp(a->path, r->path))
		return false;
	if (!a->body)
		return true;
	return r->large ? large_is_right(a) : !strcmp(a->body, r->path);
}

static bool shed_is_right(const struct answer *a)
{
	return a->retry_after && a->length && (!a->body || strstr(a->body, "\"reason\":\"TooManyRequests\""));
}

static void exchange(struct connection *c, long n)
{
	struct request r;
	struct answer a;

	if (!c->in)
		conn_open(c);
	request_make(&r, c->index, n);
	request_send(c, &r);
	answer_read(c, &r, &a);
	if (a.status == 200 && passed_is_right(&r, &a)) {
		c->passed++;
	} else if (a.status == 429 && shed_is_right(&a)) {
		c->shed++;
	} else {
		c->wrong++;
		fprintf(stderr, "connection %ld, %s: wrong answer %d %s\n", c->index, r.path, a.status, a.path);
	}
	free(a.body);
	if (a.close) {
		conn_close(c);
		c->reconnects++;
	}
}

static void *conn_run(void *arg)
{
	struct connection *c = arg;

	for (long n = 0; n < requests; n++)
		exchange(c, n);
	if (c->in)
		conn_close(c);
	return NULL;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	long passed = 0, shed = 0, wrong = 0, reconnects = 0, n, start_ms = now_ms();
	struct connection *connections;

	if (argc != 6)
		errx(1, "usage: client ADDRESS PORT USER CONNECTIONS REQUESTS");
	address = argv[1];
	port = argv[2];
	user = argv[3];
	n = atol(argv[4]);
	requests = atol(argv[5]);
	connections = calloc(n, sizeof(*connections));
	if (!connections)
		errx(1, "out of memory");
	for (long i = 0; i < n; i++) {
		connections[i].index = i;
		if (pthread_create(&connections[i].thread, NULL, conn_run, &connections[i]))
			errx(1, "no thread for connection %ld", i);
	}
	for (long i = 0; i < n; i++) {
		pthread_join(connections[i].thread, NULL);
		passed += connections[i].passed;
		shed += connections[i].shed;
		wrong += connections[i].wrong;
		reconnects += connections[i].reconnects;
	}
	free(connections);
	printf("passed=%ld shed=%ld wrong=%ld reconnects=%ld ms=%ld\n", passed, shed, wrong, reconnects,
	       now_ms() - start_ms + 1);
	return wrong ? 1 : 0;
}
