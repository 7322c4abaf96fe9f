/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What looks like TLS: clients that send records and wait for each to be answered, and a server that answers them.
 *
 *   records PORT                                            the server, on every address, until it is killed
 *   records ADDRESS PORT CONNECTIONS BYTES BURST MS         the clients, for that long
 *
 * A connection begins as TLS 1.3 does, with records that cost nothing, and the server answers in kind; then each record has BYTES bytes
 * and its number, which the server sends back. One line on stdout, for eval:
 *
 *   answered=N ms=N late=N late_ms=N longest_ms=N
 *
 * answered: within ms, which begins before the first of them is sent; late: of them, those after the first BURST, within
 * late_ms; longest_ms: the longest wait for an answer. Exit 1 when a connection fails, is silent for SILENCE_S or is
 * answered with another number.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SILENCE_S 60
#define RECORD_MAX 16384
#define HEADER_BYTES 5
#define HANDSHAKE 22
#define DATA 23
#define HELLO_BYTES 300
#define FINISHED_BYTES 53 /* of TLS 1.3 with SHA-256: what follows is data for sure */

static const char *address, *port;
static long bytes, burst, start_ms, until_ms;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long answered, late_ms, longest_ms;

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The record's first bytes are its number. */
static void record_send(int fd, uint8_t type, uint32_t number, size_t length)
{
	uint8_t record[HEADER_BYTES + RECORD_MAX] = { type, 3, 3, length >> 8, length };
	size_t sent = 0;

	memcpy(record + HEADER_BYTES, &number, sizeof(number));
	while (sent < HEADER_BYTES + length) {
		ssize_t n = send(fd, record + sent, HEADER_BYTES + length - sent, MSG_NOSIGNAL);

		if (n < 0)
			errx(1, "sending: %s", strerror(errno));
		sent += n;
	}
}

/* Returns the record's type, 0 at the stream's end. */
static int record_read(FILE *in, uint32_t *number)
{
	uint8_t header[HEADER_BYTES], body[RECORD_MAX];
	size_t length;

	if (fread(header, 1, sizeof(header), in) != sizeof(header))
		return 0;
	length = header[3] << 8 | header[4];
	if (length < sizeof(*number) || length > sizeof(body) || fread(body, 1, length, in) != length)
		return 0;
	memcpy(number, body, sizeof(*number));
	return header[0];
}

/* --- the server */

static void *serve(void *arg)
{
	int fd = (intptr_t)arg, type;
	FILE *in = fdopen(fd, "r");
	uint32_t number;

	while (in && (type = record_read(in, &number))) {
		if (type == HANDSHAKE || type == DATA)
			record_send(fd, type, number, sizeof(number));
	}
	if (in)
		fclose(in);
	return NULL;
}

static __attribute__((noreturn)) void server_run(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(port)) };
	int fd = socket(AF_INET6, SOCK_STREAM, 0), one = 1;
	pthread_t thread;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 1024))
		errx(1, "listening on port %s: %s", port, strerror(errno));
	for (;;) {
		int connection = accept(fd, NULL, NULL);

		setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (connection < 0 || pthread_create(&thread, NULL, serve, (void *)(intptr_t)connection))
			errx(1, "accepting: %s", strerror(errno));
		pthread_detach(thread);
	}
}

/* --- the clients */

static int conn_open(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *info;
	struct timeval silence = { .tv_sec = SILENCE_S };
	int fd, one = 1;

	if (getaddrinfo(address, port, &hints, &info))
		errx(1, "%s port %s: no such address", address, port);
	fd = socket(info->ai_family, info->ai_socktype, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fd < 0 || connect(fd, info->ai_addr, info->ai_addrlen))
		errx(1, "connecting to %s port %s: %s", address, port, strerror(errno));
	freeaddrinfo(info);
	return fd;
}

/* An answer that came before the end. */
static void count_answer(long sent_ms, long came_ms)
{
	pthread_mutex_lock(&lock);
	answered++;
	if (answered == burst)
		late_ms = until_ms - came_ms;
	if (came_ms - sent_ms > longest_ms)
		longest_ms = came_ms - sent_ms;
	pthread_mutex_unlock(&lock);
}

static void *client_run(void *arg)
{
	int fd = conn_open();
	FILE *in = fdopen(fd, "r");
	uint32_t number, got;

	(void)arg;
	record_send(fd, HANDSHAKE, 0, HELLO_BYTES);
	if (!in || record_read(in, &got) != HANDSHAKE)
		errx(1, "no answer to a hello");
	record_send(fd, DATA, 0, FINISHED_BYTES);
	if (record_read(in, &got) != DATA)
		errx(1, "no answer to a handshake");
	for (number = 1;; number++) {
		long sent_ms = now_ms(), came_ms;

		if (sent_ms >= until_ms)
			break;
		record_send(fd, DATA, number, bytes);
		if (record_read(in, &got) != DATA)
			errx(1, "no answer to record %u", number);
		if (got != number)
			errx(1, "record %u is answered with %u", number, got);
		came_ms = now_ms();
		if (came_ms < until_ms)
			count_answer(sent_ms, came_ms);
	}
	fclose(in);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t *threads;
	long n;

	if (argc == 2) {
		port = argv[1];
		server_run();
	}
	if (argc != 7)
		errx(1, "usage: records PORT | ADDRESS PORT CONNECTIONS BYTES BURST MS");
	address = argv[1];
	port = argv[2];
	n = atol(argv[3]);
	bytes = atol(argv[4]);
	burst = atol(argv[5]);
	start_ms = now_ms();
	until_ms = start_ms + atol(argv[6]);
	threads = calloc(n, sizeof(*threads));
	if (!threads)
		errx(1, "out of memory");
	for (long i = 0; i < n; i++) {
		if (pthread_create(&threads[i], NULL, client_run, NULL))
			errx(1, "no thread for connection %ld", i);
	}
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	printf("answered=%ld ms=%ld late=%ld late_ms=%ld longest_ms=%ld\n", answered, until_ms - start_ms,
	       answered > burst ? answered - burst : 0, late_ms, longest_ms);
	return 0;
}
