/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/find.h"
#include "golang/show.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "golang_fixture.h"

static struct golang_fixture fixture;

static int open_bytes(const void *bytes, size_t size, struct golang **out, struct error *err)
{
	int fd = golang_fixture_open(bytes, size), ret = golang_open(fd, out, err);

	close(fd);
	return ret;
}

static struct golang *open_fixture(struct golang_fixture_want want)
{
	struct golang *go = NULL;
	struct error err = { 0 };

	golang_fixture_make(&want, &fixture);
	if (open_bytes(fixture.file, sizeof(fixture.file), &go, &err))
		fail_msg("go1.%u: %s", want.minor, err.text);
	return go;
}

static void check_refusal(int ret, int expected, const struct error *err, const char *words)
{
	if (ret != expected || !strstr(err->text, words))
		fail_msg("%d: \"%s\" instead of %d: \"%s\"", ret, err->text, expected, words);
}

static void check_http(struct golang *go)
{
	struct golang_http found;
	struct error err = { 0 };

	if (golang_find_http(go, &found, &err))
		fail_msg("%s: %s", golang_build(go)->version, err.text);
	/* What may be missing (here a serverHandler as a http.Handler) is no error. */
	assert_string_equal(err.text, "");
	assert_int_equal(found.serve.address, fixture.serve);
	assert_int_equal(found.serve.begin.address, fixture.serve_begin);
	assert_int_equal(found.serve.begin.offset, fixture.serve_begin - 0x400000);
	assert_int_equal(found.returns.n, 1);
	assert_int_equal(found.returns.places[0].address, fixture.serve_return);
	assert_int_equal(found.writer.reg, 1);
	assert_int_equal(found.request.reg, 3);
	assert_int_equal(found.fields.remote_addr, 176);
	assert_int_equal(found.fields.url_path, 56);
	assert_int_equal(found.write_header, 24);
}

static void check_apf(struct golang *go, bool skippable)
{
	struct golang_apf found;
	struct error err = { 0 };

	if (golang_find_apf(go, &found, &err))
		fail_msg("%s: %s", golang_build(go)->version, err.text);
	assert_int_equal(found.handle.address, fixture.handle);
	assert_int_equal(found.info.reg, 3);
	assert_int_equal(found.user_itab.reg, 4);
	assert_int_equal(found.user_data.reg, 5);
	/* Receiver, context (2), digest (3), three funcs: nine registers; the last func is on the stack. */
	assert_true(found.execute_value.on_stack);
	assert_int_equal(found.execute_value.stack, 8);
	assert_int_equal(found.n_execute, 2);
	assert_int_equal(found.user.itab, fixture.user_itab);
	assert_int_equal(found.user.groups, 32);
	assert_int_equal(found.fields.asked.resource, 104);
	assert_int_equal(found.skippable, skippable);
	assert_string_equal(err.text, "");
}

static void check_others(struct golang *go)
{
	struct golang_authorization authorization;
	struct golang_max_in_flight in_flight;
	struct golang_context context;
	struct golang_user_key key;
	struct golang_function goexit;
	struct error err = { 0 };
	char *version = NULL;

	assert_int_equal(golang_find_authorization(go, &authorization, &err), 0);
	assert_int_equal(authorization.request.reg, 2);
	assert_int_equal(authorization.record.reg, 1);
	assert_int_equal(authorization.attributes.asked.path, 136);
	assert_int_equal(golang_find_max_in_flight(go, &in_flight, &err), 0);
	assert_int_equal(in_flight.send.place.address, fixture.send);
	assert_int_equal(in_flight.send.next, fixture.behind_send);
	assert_int_equal(golang_find_context(go, &context, &err), 0);
	assert_int_equal(context.value, 32);
	assert_int_equal(context.n_others, 2);
	assert_int_equal(context.others[1].parent, 8);
	assert_int_equal(golang_find_user_key(go, &key, &err), 0);
	assert_int_equal(key.type, fixture.user_key);
	assert_int_equal(key.value, 1);
	assert_int_equal(golang_find_goexit(go, &goexit, &err), 0);
	assert_int_equal(golang_find_kubernetes_version(go, &version, &err), 0);
	assert_string_equal(version, "v1.20.2");
	assert_string_equal(err.text, "");
	free(version);
}

/* Every version has its tables in a form of its own. */
static void test_versions(void **state)
{
	(void)state;
	for (unsigned int minor = GOLANG_OLDEST; minor <= GOLANG_NEWEST; minor++) {
		struct golang *go = open_fixture((struct golang_fixture_want){ .minor = minor });

		assert_int_equal(golang_build(go)->minor, minor);
		/* The fixture's types: its tables are smaller, and its data can be written. */
		assert_int_equal(golang_build(go)->constants_from, 0x502000);
		assert_int_equal(golang_build(go)->constants_to, 0x505000);
		assert_string_equal(golang_build(go)->path, "example.org/server");
		assert_string_equal(golang_build(go)->module, "example.org");
		assert_string_equal(golang_build(go)->module_version, "v1.2.3");
		check_http(go);
		check_apf(go, true);
		check_others(go);
		golang_close(go);
	}
}

/* A call is seen at the jump of the stack's check, where it is not taken; without a check, where the frame is made. */
static void test_begin(void **state)
{
	(void)state;
	for (int unchecked = 0; unchecked < 2; unchecked++) {
		struct golang *go = open_fixture((struct golang_fixture_want){ .minor = 26, .unchecked = unchecked });
		struct golang_http found;
		struct error err = { 0 };

		assert_int_equal(golang_find_http(go, &found, &err), 0);
		assert_int_equal(found.serve.begin.address - found.serve.address, unchecked ? 0 : 4);
		assert_int_equal(found.serve.again, unchecked ? 0 : 0x41); /* JLS: carry or zero */
		assert_int_equal(found.serve.grows.address, 0);		   /* it leads out of this small function */
		golang_close(go);
	}
}

/* --- what Handle is to execute, in memory */

#define HANDLE(code) .handle = (code), .handle_size = sizeof(code) - 1

static int find_by_memory(struct golang_fixture_want want, struct golang_by_memory *found, struct error *err)
{
	struct golang *go = open_fixture(want);
	struct golang_apf apf;
	int ret = golang_find_apf(go, &apf, err);

	if (ret)
		fail_msg("go1.%u: %s", want.minor, err->text);
	ret = golang_find_by_memory(go, &apf, found, err);
	golang_close(go);
	return ret;
}

/* The seventh argument is on the stack when it is called, above the return address. */
static void test_handed_on_stack(void **state)
{
	(void)state;
	for (unsigned int minor = GOLANG_OLDEST; minor <= GOLANG_NEWEST; minor++) {
		struct golang_by_memory found;
		struct error err = { 0 };

		if (find_by_memory((struct golang_fixture_want){ .minor = minor }, &found, &err))
			fail_msg("go1.%u: %s", minor, err.text);
		assert_true(found.execute.at_begin);
		assert_int_equal(found.execute.stack, 8);
		assert_int_equal(found.execute.place.address, fixture.handle + 4);
		assert_int_equal(found.value, fixture.nothing);
		assert_string_equal(found.name, "net.glob..func2");
	}
}

#define KEEPS "\x4c\x89\x5c\x24\x40" /* MOVQ R11, 64(SP) */

static void test_handed_in_register(void **state)
{
	static const struct golang_fixture_want wants[] = {
		{ HANDLE(KEEPS) },
		{ HANDLE("\x4c\x89\x4c\x24\x38" KEEPS "\x4d\x89\xd1") }, /* MOVQ R9, 56(SP) ... MOVQ R10, R9 */
		{ HANDLE("\x48\x83\xec\x08" KEEPS) },			 /* SUBQ $8, SP */
		{ HANDLE(KEEPS "\x4d\x89\xd3\x4c\x89\x5c\x24\x48") }, /* MOVQ R10, R11; MOVQ R11, 72(SP): another's */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++) {
		struct golang_fixture_want want = wants[i];
		struct golang_by_memory found;
		struct error err = { 0 };

		want.minor = 19;
		if (find_by_memory(want, &found, &err))
			fail_msg("%zu: %s", i, err.text);
		assert_false(found.execute.at_begin);
		assert_int_equal(found.execute.stack, 64);
		assert_int_equal(found.execute.place.address, fixture.handed);
		assert_int_equal(found.execute.place.offset, fixture.handed - 0x400000);
	}
}

/* Where it is not certain that all is read from there, it is refused. */
static void test_handed_refusals(void **state)
{
	static const struct {
		struct golang_fixture_want want;
		int ret;
		const char *words;
	} cases[] = {
		{ { HANDLE("\x90") }, -ENOTSUP, "in a register where it calls" },
		{ { HANDLE(KEEPS), .handle_runtime = true }, -ENOTSUP, "in a register where it calls" },
		{ { HANDLE(KEEPS "\x4c\x89\x5c\x24\x48") },
		  -ENOTSUP,
		  "in more places than one" },						   /* MOVQ R11, 72(SP) */
		{ { HANDLE(KEEPS "\x4d\x89\xd9") }, -ENOTSUP, "in more places than one" }, /* MOVQ R11, R9 */
		{ { HANDLE("\x4d\x89\xd9" KEEPS) }, -ENOTSUP, "in more places than one" },
		{ { HANDLE(KEEPS "\x45\x89\xd9") }, -ENOTSUP, "in more places than one" },   /* MOVL R11, R9 */
		{ { HANDLE("\x49\x89\xc3" KEEPS) }, -ENOTSUP, "in more places than one" },   /* MOVQ AX, R11 */
		{ { HANDLE("\x44\x89\x5c\x24\x40") }, -ENOTSUP, "in more places than one" }, /* MOVL R11, 64(SP) */
		{ { HANDLE("\x4c\x89\x58\x40") }, -ENOTSUP, "in more places than one" },     /* MOVQ R11, 64(AX) */
		{ { HANDLE("\x4c\x89\x5c\x04\x40") },
		  -ENOTSUP,
		  "in more places than one" },						   /* MOVQ R11, 64(SP)(AX*1) */
		{ { HANDLE("\x4d\x8b\x0b" KEEPS) }, -ENOTSUP, "in more places than one" }, /* MOVQ (R11), R9 */
		{ { HANDLE("\x4c\x89\x5c\x24\x41") }, -ENOTSUP, "in an odd place" },
		{ { HANDLE("\x4c\x89\x5c\x24\xf8") }, -ENOTSUP, "in an odd place" },		      /* -8(SP) */
		{ { HANDLE(KEEPS "\x74\x00") }, -ENOTSUP, "an instruction that weir does not know" }, /* JEQ */
		{ { HANDLE("\xeb\x00" KEEPS) }, -ENOTSUP, "an instruction that weir does not know" }, /* JMP */
		{ { HANDLE(KEEPS "\x48\x83\xec\x08") },
		  -ENOTSUP,
		  "an instruction that weir does not know" },					  /* SUBQ $8, SP */
		{ { HANDLE(KEEPS "\x50") }, -ENOTSUP, "an instruction that weir does not know" }, /* PUSHQ AX */
		{ { HANDLE(KEEPS "\x4d\x87\xd9") },
		  -ENOTSUP,
		  "an instruction that weir does not know" }, /* XCHGQ R11, R9 */
		{ { HANDLE(KEEPS), .nothing = FIXTURE_NO_NOTHING }, -ENOENT, "of one instruction, RET" },
		{ { HANDLE(KEEPS), .nothing = FIXTURE_NOTHING_WRITABLE }, -ENOENT, "its read-only data has no func()" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct golang_fixture_want want = cases[i].want;
		struct golang_by_memory found = { .value = 1 };
		struct error err = { 0 };

		want.minor = 19;
		check_refusal(find_by_memory(want, &found, &err), cases[i].ret, &err, cases[i].words);
		assert_int_equal(found.value, 1);
	}
}

/* Each one is refused in words, and only what it is about. */
static void test_refusals(void **state)
{
	static const struct {
		struct golang_fixture_want want;
		int ret;
		const char *words;
	} of_apf[] = {
		{ { .minor = 26, .twice = true }, -ENOTUNIQ, "two functions could be" },
		{ { .minor = 26, .other_method = true }, -ENOTSUP, "flowcontrol.Interface calls" },
		{ { .minor = 26, .other_field = true }, -ENOTSUP, "user.DefaultInfo has no field Name" },
		{ { .minor = 26, .odd_frame = true }, -ENOTSUP, "its frame is made by another instruction" },
		{ { .minor = 19, .odd_frame = true }, -ENOTSUP, "its frame is made by another instruction" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of_apf) / sizeof(*of_apf); i++) {
		struct golang *go = open_fixture(of_apf[i].want);
		struct golang_apf found, before;
		struct error err = { 0 };

		memset(&found, 0x5a, sizeof(found));
		before = found;
		check_refusal(golang_find_apf(go, &found, &err), of_apf[i].ret, &err, of_apf[i].words);
		assert_memory_equal(&found, &before, sizeof(found));
		if (!of_apf[i].want.odd_frame)
			check_http(go);
		golang_close(go);
	}
}

static void test_inlined(void **state)
{
	struct golang *go = open_fixture((struct golang_fixture_want){ .minor = 24, .inlined = true });
	struct golang_http found;
	struct error err = { 0 };

	(void)state;
	check_refusal(golang_find_http(go, &found, &err), -ENOENT, &err,
		      "does not call net/http.serverHandler.ServeHTTP");
	golang_close(go);
}

static void test_not_skippable(void **state)
{
	struct golang *go = open_fixture((struct golang_fixture_want){ .minor = 26, .dropped_tracker = true });

	(void)state;
	check_apf(go, false);
	golang_close(go);
}

static void test_other_versions(void **state)
{
	static const struct {
		unsigned int minor;
		const char *version, *words;
	} cases[] = {
		{ 16, NULL, "made by go1.16.1: weir knows Go 1.17 to 1.27" },
		{ 28, NULL, "made by go1.28.1: weir knows Go 1.17 to 1.27" },
		{ 20, "go2.1", "made by go2.1" },
		{ 20, "gone", "made by gone" },
		{ 17, "go1.17.2 X:noregabi", "without arguments in registers" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct golang_fixture_want want = { .minor = cases[i].minor, .version = cases[i].version };
		struct golang *go = NULL;
		struct error err = { 0 };

		golang_fixture_make(&want, &fixture);
		check_refusal(open_bytes(fixture.file, sizeof(fixture.file), &go, &err), -ENOEXEC, &err,
			      cases[i].words);
		assert_null(go);
	}
}

static void test_other_files(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *words;
	} cases[] = {
		{ "", 0, "not an ELF file" },
		{ "#!/bin/sh\n", 10, "not an ELF file" },
		{ "\x7f"
		  "ELF",
		  4, "not an ELF file" },
	};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct golang *go = NULL;
	struct error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_refusal(open_bytes(cases[i].bytes, cases[i].size, &go, &err), -ENOEXEC, &err, cases[i].words);
	/* This test is a program, but C's. */
	check_refusal(golang_open(fd, &go, &err), -ENOEXEC, &err, "no build information");
	close(fd);
}

/* Cut off anywhere, it is refused, or all that is found is in what is left. */
static void test_cut_off(void **state)
{
	struct golang_fixture_want want = { .minor = 25 };

	(void)state;
	golang_fixture_make(&want, &fixture);
	for (size_t size = 0; size < sizeof(fixture.file); size += size < 512 ? 1 : 97) {
		struct golang *go = NULL;
		struct error err = { 0 };
		int ret = open_bytes(fixture.file, size, &go, &err);

		assert_int_equal(ret, -ENOEXEC);
		assert_true(*err.text);
	}
}

/* A package may keep anything under keys of its own. */
static void test_other_key(void **state)
{
	struct golang *go = open_fixture((struct golang_fixture_want){ .minor = 22, .other_key = true });
	struct golang_user_key key;
	struct error err = { 0 };

	(void)state;
	assert_int_equal(golang_find_user_key(go, &key, &err), -ENOENT);
	assert_non_null(strstr(err.text, "GetAuthorizerAttributes asks for no request.key"));
	golang_close(go);
}

static void test_json(void **state)
{
	struct golang *go = open_fixture((struct golang_fixture_want){ .minor = 22, .other_field = true });
	json_t *json = golang_to_json(go), *finding;
	size_t i, found = 0;

	(void)state;
	assert_string_equal(json_string_value(json_object_get(json, "go")), "go1.22.1");
	assert_string_equal(json_string_value(json_object_get(json, "kubernetes")), "v1.20.2");
	json_array_foreach (json_object_get(json, "found"), i, finding) {
		bool is_found = json_is_true(json_object_get(finding, "found"));

		assert_int_equal(is_found, json_is_null(json_object_get(finding, "why")));
		found += is_found;
	}
	assert_int_equal(found, 5);
	json_decref(json);
	golang_close(go);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),	cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_inlined),		cmocka_unit_test(test_not_skippable),
		cmocka_unit_test(test_other_versions),	cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_cut_off),		cmocka_unit_test(test_json),
		cmocka_unit_test(test_begin),		cmocka_unit_test(test_other_key),
		cmocka_unit_test(test_handed_on_stack), cmocka_unit_test(test_handed_in_register),
		cmocka_unit_test(test_handed_refusals),
	};

	return cmocka_run_group_tests_name("golang", tests, NULL, NULL);
}
