/* SPDX-License-Identifier: GPL-2.0 */
/* Lines of a file that anybody may have written: one that has no end, as that of /dev/zero, is not read for ever. */
#ifndef WEIR_USER_BASE_NEXT_LINE_H
#define WEIR_USER_BASE_NEXT_LINE_H

#include <stdio.h>
#include <sys/types.h>

/*
 * As getline(3): the length of the next line with its end, in *text, which the caller frees. 0: there is no more. -EFBIG: it has more than
 * max bytes, its end not among them; or another negative errno.
 */
ssize_t next_line(FILE *file, size_t max, char **text, size_t *room);

#endif
