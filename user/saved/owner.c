/* SPDX-License-Identifier: GPL-2.0 */
#include "saved/owner.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/regular.h"
#include "saved/fresh.h"

static void read_owner(const char *path, char owner[static PATH_MAX])
{
	CLEANUP_FCLOSE FILE *file = NULL;
	int ret = regular_read(path, &file, NULL);

	strcpy(owner, ret == -ENOENT ? STATE_DIR_DEFAULT : "");
	if (!ret && fgets(owner, PATH_MAX, file))
		owner[strcspn(owner, "\n")] = '\0';
}

bool persist_dir_is_of(const char *persist_dir, const char *state_dir)
{
	char path[PATH_MAX], owner[PATH_MAX];
	CLEANUP_FREE char *whole = realpath(state_dir, NULL);

	if (snprintf(path, sizeof(path), "%s/" OWNER_FILE, persist_dir) >= (int)sizeof(path))
		return false;
	read_owner(path, owner);
	return strcmp(owner, whole ?: state_dir) == 0;
}

int persist_dir_own(const char *persist_dir, const char *state_dir, struct error *err)
{
	CLEANUP_FREE char *whole = realpath(state_dir, NULL), *line = NULL;
	int ret;

	if (persist_dir_is_of(persist_dir, state_dir))
		return 0;
	if (asprintf(&line, "%s\n", whole ?: state_dir) < 0) {
		line = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	ret = fresh_write(persist_dir, OWNER_FILE, line, strlen(line), err) ?:
									      fresh_place(persist_dir, OWNER_FILE, err);
	if (ret)
		fresh_drop(persist_dir, OWNER_FILE);
	return ret;
}
