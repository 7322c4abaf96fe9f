/* SPDX-License-Identifier: GPL-2.0 */
/* Lines of a file or a pipe, many for each read(2), where they stand in memory. */
#ifndef WEIR_USER_REPLAY_LINES_H
#define WEIR_USER_REPLAY_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct lines {
	char *text;
	size_t room, from, to; /* what was read, and is no line yet */
	bool ended;	       /* there is no more to read */
};

/* Begins anew with what another one has left. 0, or -ENOMEM. */
int lines_begin(struct lines *lines, struct lines *rest);

/*
 * The next line, without its end, with a 0 behind it. wait: reads until there is one. 1; 0: none is there (yet); or a negative errno:
 * -EFBIG: it has more than RECORDED_LINE_MAX bytes.
 * The text stays where it is until lines_begin(), if nothing was waited for since.
 */
int lines_next(struct lines *lines, int fd, bool wait, char **line, size_t *length);
void lines_free(struct lines *lines);

#endif
