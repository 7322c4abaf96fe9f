/* SPDX-License-Identifier: GPL-2.0 */
#include "tame.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_S 60
#define ANSWER_BYTES 2048
#define REFUSED 3 /* requests beyond the burst */

struct tame {
	pthread_t thread;
	struct addrinfo *address;
	unsigned int burst;
	atomic_bool stop;
	long right;
};

static int connect_to(const struct addrinfo *address)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = socket(address->ai_family, SOCK_STREAM, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, address->ai_addr, address->ai_addrlen)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A head and what its Content-Length says, as text. False: it does not come. */
static bool read_answer(int fd, char *answer)
{
	size_t length = 0, whole = 0;

	while (!whole || length < whole) {
		ssize_t n = recv(fd, answer + length, ANSWER_BYTES - 1 - length, 0);
		const char *end, *field;

		if (n <= 0)
			return false;
		length += n;
		answer[length] = 0;
		end = strstr(answer, "\r\n\r\n");
		field = strcasestr(answer, "\r\nContent-Length: ");
		if (end && field && field < end)
			whole = end + 4 - answer + strtoul(field + strlen("\r\nContent-Length: "), NULL, 10);
	}
	return length == whole;
}

/* NULL, or what is wrong. */
static const char *check_answer(const char *answer, bool served, const char *path)
{
	const char *body = strstr(answer, "\r\n\r\n") + 4;

	if (strncmp(answer, served ? "HTTP/1.1 200 " : "HTTP/1.1 429 ", 13) != 0)
		return served ? "a request within the limit is not served" :
				"a request beyond the limit is not refused";
	if (served && (strncmp(body, path, strlen(path)) != 0 || strcmp(body + strlen(path), "\n") != 0))
		return "an answer is not its request's";
	return NULL;
}

/* NULL, or what is wrong. */
static const char *visit(const struct tame *tame, int fd, char *answer)
{
	for (unsigned int i = 0; i < tame->burst + REFUSED; i++) {
		char request[256], path[64];
		const char *wrong;
		int n;

		snprintf(path, sizeof(path), "/tame/%ld/%u", tame->right, i);
		n = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\nX-Remote-User: tame-%ld\r\n\r\n",
			     path, tame->right);
		answer[0] = 0;
		if (send(fd, request, n, MSG_NOSIGNAL) != n || !read_answer(fd, answer))
			return "an answer does not come";
		wrong = check_answer(answer, i < tame->burst, path);
		if (wrong)
			return wrong;
	}
	return NULL;
}

static void *run(void *context)
{
	struct tame *tame = context;
	char answer[ANSWER_BYTES] = "";

	while (!tame->stop) {
		int fd = connect_to(tame->address);
		const char *wrong = fd < 0 ? "no connection" : visit(tame, fd, answer);

		if (fd >= 0)
			close(fd);
		if (wrong) {
			printf("well-behaved connection %ld: %s: %m\n%s\n", tame->right, wrong, answer);
			tame->right = -1;
			break;
		}
		tame->right++;
		usleep(1000);
	}
	return NULL;
}

struct tame *tame_start(const char *server, uint16_t port, unsigned int burst)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
	struct tame *tame = calloc(1, sizeof(*tame));
	char text[8];

	if (!tame)
		return NULL;
	snprintf(text, sizeof(text), "%u", port);
	tame->burst = burst;
	if (getaddrinfo(server, text, &hints, &tame->address) || pthread_create(&tame->thread, NULL, run, tame)) {
		free(tame);
		return NULL;
	}
	return tame;
}

long tame_stop(struct tame *tame)
{
	long right;

	tame->stop = true;
	pthread_join(tame->thread, NULL);
	right = tame->right;
	freeaddrinfo(tame->address);
	free(tame);
	return right;
}
