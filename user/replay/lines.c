/* SPDX-License-Identifier: GPL-2.0 */
#include "replay/lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/recording.h"

#define READ_BYTES (32 << 10)

static int reserve(struct lines *lines, size_t room)
{
	char *text;

	if (room <= lines->room)
		return 0;
	text = realloc(lines->text, room);
	if (!text)
		return -ENOMEM;
	lines->text = text;
	lines->room = room;
	return 0;
}

int lines_begin(struct lines *lines, struct lines *rest)
{
	size_t length = rest->to - rest->from;
	int ret = reserve(lines, length + READ_BYTES + 1);

	if (ret)
		return ret;
	if (length)
		memcpy(lines->text, rest->text + rest->from, length);
	lines->ended = rest->ended;
	lines->from = 0;
	lines->to = length;
	rest->from = rest->to;
	return 0;
}

/* The only place where its thread can be cancelled: it may wait here for ever. */
static ssize_t read_more(int fd, char *to, size_t room)
{
	ssize_t n;

	do {
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
		n = read(fd, to, room);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	} while (n < 0 && errno == EINTR);
	return n;
}

static int grow(struct lines *lines, int fd)
{
	int ret = reserve(lines, lines->to + READ_BYTES + 1);
	ssize_t n;

	if (ret)
		return ret;
	n = read_more(fd, lines->text + lines->to, READ_BYTES);
	if (n < 0)
		return -errno;
	lines->ended = !n;
	lines->to += n;
	return 0;
}

static int take(struct lines *lines, size_t length, char **line, size_t *line_length)
{
	*line = lines->text + lines->from;
	*line_length = length;
	(*line)[length] = 0;
	lines->from += length;
	lines->from += lines->from < lines->to;
	return 1;
}

int lines_next(struct lines *lines, int fd, bool wait, char **line, size_t *length)
{
	size_t seen = 0;

	for (;;) {
		const char *from = lines->text + lines->from;
		const char *end = memchr(from + seen, '\n', lines->to - lines->from - seen);
		int ret;

		seen = end ? (size_t)(end - from) : lines->to - lines->from;
		if (seen > RECORDED_LINE_MAX)
			return -EFBIG;
		if (end)
			return take(lines, seen, line, length);
		if (lines->ended)
			return seen ? take(lines, seen, line, length) : 0;
		if (!wait)
			return 0;
		ret = grow(lines, fd);
		if (ret)
			return ret;
	}
}

void lines_free(struct lines *lines)
{
	free(lines->text);
	*lines = (struct lines){ 0 };
}
