/* SPDX-License-Identifier: GPL-2.0 */
/* A server's binary: where it is made to refuse, and that one for another machine is not looked into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <elf.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "../golang/golang_fixture.h"
#include "base/cleanup.h"
#include "inside/binary.h"

static const struct golang_fixture_want usual = { .minor = 22 };

static int read_for(__u16 machine, const struct golang_fixture_want *want, struct inside_binary *out, struct error *err)
{
	static struct golang_fixture fixture;
	CLEANUP_CLOSE int fd = -1;

	golang_fixture_make(want, &fixture);
	memcpy(fixture.file + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
	fd = golang_fixture_open(fixture.file, sizeof(fixture.file));
	return inside_binary_read(fd, "server", out, err);
}

static enum weir_inside_refuses refuses(const struct golang_fixture_want *want)
{
	static struct inside_binary binary;
	struct error err = { 0 };

	if (read_for(EM_X86_64, want, &binary, &err))
		fail_msg("%s", err.text);
	assert_string_equal(binary.no_answer.text, "");
	assert_true(binary.see.n_probes && binary.answer.n_probes);
	return binary.layout.refuses;
}

/* From Kubernetes 1.28 on the filter needs what Handle notes. */
static void test_amd64(void **state)
{
	static const struct golang_fixture_want newer = { .minor = 22, .dropped_tracker = true };

	(void)state;
	assert_int_equal(refuses(&usual), WEIR_INSIDE_REFUSES_AT_HANDLE);
	assert_int_equal(refuses(&newer), WEIR_INSIDE_REFUSES_LATER);
}

/* The programs read no register there (bpf/inside_read.h): it is said, and nothing is probed. */
static void test_arm64(void **state)
{
	static struct inside_binary binary;
	struct error err = { 0 };

	(void)state;
	assert_int_equal(read_for(EM_AARCH64, &usual, &binary, &err), -ENOTSUP);
	assert_string_equal(err.text, "it is for arm64: only amd64 is known");
	assert_int_equal(binary.see.n_probes, 0);
}

static void test_another_machine(void **state)
{
	static struct inside_binary binary;
	struct error err = { 0 };

	(void)state;
	assert_int_equal(read_for(EM_RISCV, &usual, &binary, &err), -ENOEXEC);
	assert_string_equal(err.text, "an ELF file for another machine (243) than amd64 and arm64");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amd64),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_another_machine),
	};

	return cmocka_run_group_tests_name("binaries of servers", tests, NULL, NULL);
}
