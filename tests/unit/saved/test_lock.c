/* SPDX-License-Identifier: GPL-2.0 */
/* The lock of a state directory: one agent at a time, whatever lies in the lock's place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "saved/lock.h"

struct place {
	char dir[32], lock[48], other[48];
};

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->lock, sizeof(p->lock), "%s/lock", p->dir);
	snprintf(p->other, sizeof(p->other), "%s/other", p->dir);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	unlink(p->lock);
	unlink(p->other);
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

static void one_at_a_time(void **state)
{
	const struct place *p = *state;
	struct error err;
	char holder[32];
	int lock = state_lock(p->dir, &err);

	assert_true(lock >= 0);
	snprintf(holder, sizeof(holder), "(pid %d, since ", getpid());
	assert_int_equal(state_lock(p->dir, &err), -EBUSY);
	assert_non_null(strstr(err.text, holder));
	close(lock);
	lock = state_lock(p->dir, &err);
	assert_true(lock >= 0);
	close(lock);
}

static void directory_is_made(void **state)
{
	const struct place *p = *state;
	struct error err;
	struct stat st;
	int lock;

	assert_int_equal(rmdir(p->dir), 0);
	lock = state_lock(p->dir, &err);
	assert_true(lock >= 0);
	assert_int_equal(stat(p->dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	close(lock);
}

/* Nothing is written to what a link names. */
static void link_in_its_place(void **state)
{
	const struct place *p = *state;
	struct error err;
	struct stat st;
	FILE *other = fopen(p->other, "w");

	assert_non_null(other);
	fclose(other);
	assert_int_equal(symlink(p->other, p->lock), 0);
	assert_int_equal(state_lock(p->dir, &err), -ELOOP);
	assert_int_equal(stat(p->other, &st), 0);
	assert_int_equal(st.st_size, 0);
}

static void deleted(void **state)
{
	const struct place *p = *state;
	struct error err;
	int lock = state_lock(p->dir, &err);

	assert_true(lock >= 0);
	assert_int_equal(state_lock_look_after(&lock, p->dir, &err), 0);
	assert_int_equal(unlink(p->lock), 0);
	assert_int_equal(state_lock_look_after(&lock, p->dir, &err), 1);
	assert_int_equal(state_lock(p->dir, &err), -EBUSY);
	assert_int_equal(state_lock_look_after(&lock, p->dir, &err), 0);
	close(lock);
	lock = state_lock(p->dir, &err);
	assert_true(lock >= 0);
	close(lock);
}

/* Another agent has locked what lies in its place now: the lock that was held stays. */
static void taken_by_another(void **state)
{
	const struct place *p = *state;
	struct error err;
	int lock = state_lock(p->dir, &err), before = lock, other;

	assert_true(lock >= 0);
	assert_int_equal(unlink(p->lock), 0);
	other = state_lock(p->dir, &err);
	assert_true(other >= 0);
	assert_int_equal(state_lock_look_after(&lock, p->dir, &err), -EBUSY);
	assert_int_equal(lock, before);
	close(other);
	assert_int_equal(state_lock_look_after(&lock, p->dir, &err), 1);
	close(lock);
}

int main(void)
{
#define locked(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		locked(one_at_a_time), locked(directory_is_made), locked(link_in_its_place),
		locked(deleted),       locked(taken_by_another),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
