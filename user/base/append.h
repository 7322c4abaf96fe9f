/* SPDX-License-Identifier: GPL-2.0 */
/* Lines at the end of a file. */
#ifndef WEIR_USER_BASE_APPEND_H
#define WEIR_USER_BASE_APPEND_H

#include <stddef.h>

/* What is only half written is taken back: all of it can be tried again. A negative errno. */
int append_whole(int fd, const char *text, size_t length);

/*
 * The same to a file that is made if it is not there (regular.h). A line that a machine which lost its power has left unfinished is ended
 * before, so that it spoils none of these.
 */
int append_lines(const char *path, const char *lines, size_t length);

#endif
