/* SPDX-License-Identifier: GPL-2.0 */
/* Whose a persist directory is: what an agent keeps beyond restarts is that of one state directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "saved/owner.h"

struct place {
	char dir[32], owner[48], fresh[48], other[48];
};

static struct error err;

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->owner, sizeof(p->owner), "%s/owner", p->dir);
	snprintf(p->fresh, sizeof(p->fresh), "%s/owner.new", p->dir);
	snprintf(p->other, sizeof(p->other), "%s/other", p->dir);
	*state = p;
	return 0;
}

/* Nothing but the note may be left. */
static int tear_down(void **state)
{
	struct place *p = *state;

	unlink(p->owner);
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

static void write_note(const struct place *p, const char *text)
{
	FILE *file = fopen(p->owner, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void of_the_usual_one_without_a_note(void **state)
{
	const struct place *p = *state;

	assert_true(persist_dir_is_of(p->dir, STATE_DIR_DEFAULT));
	assert_false(persist_dir_is_of(p->dir, p->dir));
	assert_int_equal(persist_dir_own(p->dir, STATE_DIR_DEFAULT, &err), 0);
	assert_int_equal(access(p->owner, F_OK), -1);
}

static void of_who_has_said_so_last(void **state)
{
	const struct place *p = *state;
	char through[64];

	snprintf(through, sizeof(through), "%s/../%s", p->dir, strrchr(p->dir, '/') + 1);
	assert_int_equal(persist_dir_own(p->dir, p->dir, &err), 0);
	assert_true(persist_dir_is_of(p->dir, p->dir));
	assert_true(persist_dir_is_of(p->dir, through));
	assert_false(persist_dir_is_of(p->dir, STATE_DIR_DEFAULT));
	assert_int_equal(persist_dir_own(p->dir, "/none", &err), 0);
	assert_true(persist_dir_is_of(p->dir, "/none"));
	assert_false(persist_dir_is_of(p->dir, p->dir));
	assert_int_equal(persist_dir_own(p->dir, STATE_DIR_DEFAULT, &err), 0);
	assert_true(persist_dir_is_of(p->dir, STATE_DIR_DEFAULT));
}

/* Earlier versions have cut it off before they wrote, and the machine may have ended then. Nobody removes what is there. */
static void of_nobody_with_an_empty_note(void **state)
{
	const struct place *p = *state;

	write_note(p, "");
	assert_false(persist_dir_is_of(p->dir, STATE_DIR_DEFAULT));
	assert_false(persist_dir_is_of(p->dir, p->dir));
	assert_int_equal(persist_dir_own(p->dir, STATE_DIR_DEFAULT, &err), 0);
	assert_true(persist_dir_is_of(p->dir, STATE_DIR_DEFAULT));
}

static void of_nobody_with_a_note_that_cannot_be_read(void **state)
{
	const struct place *p = *state;

	alarm(60);
	assert_int_equal(mkfifo(p->owner, 0600), 0);
	assert_false(persist_dir_is_of(p->dir, STATE_DIR_DEFAULT));
	alarm(0);
}

/* Nothing is written to what a link names. */
static void link_in_its_place(void **state)
{
	const struct place *p = *state;

	assert_int_equal(symlink(p->other, p->owner), 0);
	assert_int_equal(persist_dir_own(p->dir, p->dir, &err), 0);
	assert_int_equal(access(p->other, F_OK), -1);
	assert_true(persist_dir_is_of(p->dir, p->dir));
	assert_int_equal(unlink(p->owner), 0);
	assert_int_equal(symlink(p->other, p->fresh), 0);
	assert_true(persist_dir_own(p->dir, p->dir, &err) < 0);
	assert_int_equal(access(p->other, F_OK), -1);
}

/* On a full disk it is whose it was. */
static void no_room(void **state)
{
	const struct place *p = *state;
	struct rlimit limit;

	assert_int_equal(persist_dir_own(p->dir, "/before", &err), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_true(persist_dir_own(p->dir, p->dir, &err) < 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_true(persist_dir_is_of(p->dir, "/before"));
}

int main(void)
{
#define placed(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		placed(of_the_usual_one_without_a_note),
		placed(of_who_has_said_so_last),
		placed(of_nobody_with_an_empty_note),
		placed(of_nobody_with_a_note_that_cannot_be_read),
		placed(link_in_its_place),
		placed(no_room),
	};

	return cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
