/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath/inside_pins.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sys/pins.h"

int inside_pins_drop_others(const char *dir, __u32 generation, struct error *err)
{
	char own[PINS_NAME_MAX];
	struct dirent *entry;
	DIR *open = opendir(dir);
	int ret = 0;

	if (!open && errno == ENOENT)
		return 0;
	if (!open)
		return error_set(err, -errno, "reading %s: %s", dir, strerror(errno));
	snprintf(own, sizeof(own), INSIDE_PIN "%08x-", generation);
	while ((entry = readdir(open))) {
		if (strncmp(entry->d_name, INSIDE_PIN, strlen(INSIDE_PIN)) != 0 ||
		    strncmp(entry->d_name, own, strlen(own)) == 0)
			continue;
		if (unlinkat(dirfd(open), entry->d_name, 0) && errno != ENOENT)
			ret = error_set(err, -errno, "removing %s/%s: %s", dir, entry->d_name, strerror(errno));
	}
	closedir(open);
	return ret;
}

int inside_pins_drop(const char *dir, struct error *err)
{
	static const char *const maps[] = {
#define X(name) #name,
		DATAPATH_INSIDE_MAPS(X)
#undef X
	};
	int ret = inside_pins_drop_others(dir, 0, err);
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps) && !ret; i++) {
		pins_path(path, dir, "%s", maps[i]);
		if (unlink(path) && errno != ENOENT)
			ret = error_set(err, -errno, "removing %s: %s", path, strerror(errno));
	}
	return ret;
}
