/* SPDX-License-Identifier: GPL-2.0 */
#include "base/next_line.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM 4096 /* of the first line */

static int grow(char **text, size_t *room)
{
	size_t more = *room ? 2 * *room : ROOM;
	char *grown = realloc(*text, more);

	if (!grown)
		return -ENOMEM;
	*text = grown;
	*room = more;
	return 0;
}

ssize_t next_line(FILE *file, size_t max, char **text, size_t *room)
{
	size_t length = 0;
	int c = 0;

	while (c != '\n' && (c = getc_unlocked(file)) != EOF) {
		if (length == max && c != '\n')
			return -EFBIG;
		if (length == *room && grow(text, room))
			return -ENOMEM;
		(*text)[length++] = c;
	}
	return c == EOF && ferror(file) ? -errno : (ssize_t)length;
}
