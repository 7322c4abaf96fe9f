/* SPDX-License-Identifier: GPL-2.0 */
/* Calls that do not come back: nobody waits for them for longer than they want, and there is one of them for each key. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/aside.h"

#define LONG_MS 60000
#define SHORT_MS 20

/* Comes back when a byte is there, and says so. */
struct work {
	int begin[2], released[2];
	int runs;
};

static void run(void *arg)
{
	struct work *work = arg;
	char byte;

	assert_int_equal(read(work->begin[0], &byte, 1), 1);
	work->runs++;
}

static void release(void *arg)
{
	struct work *work = arg;

	assert_int_equal(write(work->released[1], "", 1), 1);
}

static void make(struct work *work)
{
	*work = (struct work){ .runs = 0 };
	assert_int_equal(pipe(work->begin), 0);
	assert_int_equal(pipe(work->released), 0);
}

static void end(struct work *work)
{
	for (int i = 0; i < 2; i++) {
		close(work->begin[i]);
		close(work->released[i]);
	}
}

static void let_run(struct work *work)
{
	assert_int_equal(write(work->begin[1], "", 1), 1);
}

static void wait_released(struct work *work)
{
	char byte;

	assert_int_equal(read(work->released[0], &byte, 1), 1);
}

static void comes_back(void **state)
{
	struct work work;

	(void)state;
	make(&work);
	for (int i = 1; i <= 3; i++) {
		let_run(&work);
		assert_int_equal(aside_run(1, run, release, &work, LONG_MS), 0);
		assert_int_equal(work.runs, i);
	}
	end(&work);
}

static void is_given_up(void **state)
{
	struct work stuck, second, other;

	(void)state;
	make(&stuck);
	make(&second);
	make(&other);
	assert_int_equal(aside_run(1, run, release, &stuck, SHORT_MS), -ETIMEDOUT);
	assert_int_equal(aside_run(1, run, release, &second, LONG_MS), -EBUSY);
	wait_released(&second);
	assert_int_equal(second.runs, 0);
	let_run(&other);
	assert_int_equal(aside_run(2, run, release, &other, LONG_MS), 0);
	assert_int_equal(aside_run(3, run, release, &other, 0), -ETIMEDOUT);
	let_run(&stuck);
	wait_released(&stuck);
	assert_int_equal(stuck.runs, 1);
	let_run(&second);
	assert_int_equal(aside_run(1, run, release, &second, LONG_MS), 0);
	assert_int_equal(second.runs, 1);
	let_run(&other);
	wait_released(&other);
	end(&stuck);
	end(&second);
	end(&other);
}

/* Whatever keys they have: no more than so many are left, and each that returns makes room. */
static void few_are_left(void **state)
{
	struct work stuck[ASIDE_LEFT_MAX], further;

	(void)state;
	make(&further);
	for (int i = 0; i < ASIDE_LEFT_MAX; i++) {
		make(&stuck[i]);
		assert_int_equal(aside_run(i, run, release, &stuck[i], 0), -ETIMEDOUT);
	}
	assert_int_equal(aside_run(ASIDE_LEFT_MAX, run, release, &further, LONG_MS), -EBUSY);
	wait_released(&further);
	assert_int_equal(further.runs, 0);
	let_run(&stuck[3]);
	wait_released(&stuck[3]);
	let_run(&further);
	assert_int_equal(aside_run(ASIDE_LEFT_MAX, run, release, &further, LONG_MS), 0);
	assert_int_equal(further.runs, 1);
	for (int i = 0; i < ASIDE_LEFT_MAX; i++) {
		if (i != 3) {
			let_run(&stuck[i]);
			wait_released(&stuck[i]);
		}
		end(&stuck[i]);
	}
	end(&further);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back),
		cmocka_unit_test(is_given_up),
		cmocka_unit_test(few_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
