/* SPDX-License-Identifier: GPL-2.0 */
/* Where an agent keeps its state: until the machine restarts, and beyond. */
#ifndef WEIR_TESTS_DIRECTORIES_H
#define WEIR_TESTS_DIRECTORIES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE_PATH 64

struct directories {
	char run[32], lib[32];
};

static inline void directories_make(struct directories *d)
{
	strcpy(d->run, P_tmpdir "/weir-test-XXXXXX");
	strcpy(d->lib, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(d->run));
	assert_non_null(mkdtemp(d->lib));
}

static inline void path_in(const char *directory, char path[static STATE_PATH])
{
	snprintf(path, STATE_PATH, "%s/state.json", directory);
}

/* Nothing but the state may be left in them. */
static inline void directories_remove(const struct directories *d)
{
	const char *const each[] = { d->run, d->lib };
	char path[STATE_PATH];

	for (int i = 0; i < 2; i++) {
		path_in(each[i], path);
		unlink(path);
		assert_int_equal(rmdir(each[i]), 0);
	}
}

#endif
