/* SPDX-License-Identifier: GPL-2.0 */
/* Cleanup by attribute: what a function owns is let go on every way out of it. */
#ifndef WEIR_USER_BASE_CLEANUP_H
#define WEIR_USER_BASE_CLEANUP_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Takes a descriptor out of its cleanup: the caller's now. */
static inline int cleanup_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void cleanup_json(json_t **json)
{
	json_decref(*json);
}

#define CLEANUP_FREE __attribute__((cleanup(cleanup_free)))
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close)))
#define CLEANUP_FCLOSE __attribute__((cleanup(cleanup_fclose)))
#define CLEANUP_JSON __attribute__((cleanup(cleanup_json), unused))

#endif
