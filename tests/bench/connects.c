/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Opens connections at even distances, and closes each as soon as it stands.
 *
 *   connects ADDRESS PORT RATE SECONDS
 *
 * A connection takes from when it was due until its handshake is complete. What is not within the SECONDS and PATIENCE_S
 * behind them has failed, and counts with its age. One line of JSON on stdout, times in us.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"

#define PATIENCE_S 4
#define NS_PER_S 1000000000ULL

static struct sockaddr_in server = { .sin_family = AF_INET };
static struct histogram times;
static uint64_t connected, failed, waiting, n_due;
static uint64_t *due_ns; /* by descriptor; 0: none */
static int poll_fd;

#define MOST_OPEN 4096

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* With a RST, so that neither end keeps it in TIME-WAIT. */
static void connection_end(int fd, bool stands)
{
	const struct linger at_once = { .l_onoff = 1 };

	connected += stands;
	failed += !stands;
	histogram_add(&times, now_ns() - due_ns[fd]);
	due_ns[fd] = 0;
	waiting--;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

static void connection_begin(uint64_t due)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct epoll_event event = { .events = EPOLLOUT, .data.fd = fd };

	if (fd < 0 || fd >= MOST_OPEN)
		errx(1, "too many connections wait");
	due_ns[fd] = due;
	waiting++;
	if (connect(fd, (struct sockaddr *)&server, sizeof(server)) && errno != EINPROGRESS)
		connection_end(fd, false);
	else if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll_ctl");
}

static void connections_finish(int timeout_ms)
{
	struct epoll_event events[64];
	int n = epoll_wait(poll_fd, events, 64, timeout_ms);

	for (int i = 0; i < n; i++) {
		int error = 0;
		socklen_t size = sizeof(error);

		getsockopt(events[i].data.fd, SOL_SOCKET, SO_ERROR, &error, &size);
		connection_end(events[i].data.fd, !error);
	}
}

static void run(double rate, double seconds)
{
	uint64_t start = now_ns(), end = start + seconds * NS_PER_S, late = end + PATIENCE_S * NS_PER_S, due = start,
		 now;

	while ((now = now_ns()) < end || (waiting && now < late)) {
		for (; due <= now && due < end; due = start + ++n_due * NS_PER_S / rate)
			connection_begin(due);
		connections_finish(1);
	}
	for (int fd = 0; fd < MOST_OPEN; fd++)
		if (due_ns[fd])
			connection_end(fd, false);
}

int main(int argc, char **argv)
{
	if (argc != 5 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1)
		errx(2, "connects ADDRESS PORT RATE SECONDS");
	server.sin_port = htons(atoi(argv[2]));
	due_ns = calloc(MOST_OPEN, sizeof(*due_ns));
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!due_ns || poll_fd < 0)
		err(1, "start");
	run(atof(argv[3]), atof(argv[4]));
	printf("{\"connected\": %lu, \"failed\": %lu, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", connected, failed,
	       histogram_at(&times, 0.5) / 1e3, histogram_at(&times, 0.99) / 1e3);
	free(due_ns);
	return 0;
}
