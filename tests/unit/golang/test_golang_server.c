/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server that this machine's Go makes ($GO, or the one in PATH): what is found in it without symbols is what its symbols
 * say. Exit 77 without Go.
 */
#include "golang/find.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

#define EXIT_SKIP 77

static char directory[] = P_tmpdir "/weir-golang-XXXXXX";

static const char *go_command(void)
{
	return getenv("GO") ?: "go";
}

static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command); /* NOLINT(cert-env33-c) */
}

static int build(void **state)
{
	char cache[256];

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(cache, sizeof(cache), "%s/cache", directory);
	setenv("GOCACHE", cache, 0);
	setenv("GO111MODULE", "off", 1);
	return run("%s build -o %s/server tests/unit/golang/server.go", go_command(), directory) ||
	       run("%s build -ldflags '-s -w' -o %s/stripped tests/unit/golang/server.go", go_command(), directory);
}

static int clean(void **state)
{
	(void)state;
	return run("rm -rf %s", directory);
}

static struct golang *open_server(const char *name)
{
	CLEANUP_CLOSE int fd = -1;
	struct golang *go = NULL;
	struct error err;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	if (golang_open(fd, &go, &err))
		fail_msg("%s", err.text);
	return go;
}

/* What `go tool nm` says. */
static __u64 symbol(const char *name)
{
	unsigned long long address, found = 0;
	char command[512], symbol[256], kind;
	FILE *out;

	snprintf(command, sizeof(command), "%s tool nm %s/server", go_command(), directory);
	out = popen(command, "r"); /* NOLINT(cert-env33-c) */
	assert_non_null(out);
	for (char line[4096]; fgets(line, sizeof(line), out);)
		if (sscanf(line, "%llx %c %255s", &address, &kind, symbol) == 3 && !strcmp(symbol, name))
			found = address;
	pclose(out);
	return found;
}

static void test_http(void **state)
{
	struct golang *go = open_server("stripped");
	struct golang_function goexit;
	struct golang_context context;
	struct golang_http found;
	struct error err = { 0 };
	__u16 goroutine;

	(void)state;
	if (golang_find_http(go, &found, &err) || golang_find_context(go, &context, &err) ||
	    golang_find_goexit(go, &goexit, &err) || golang_find_goroutine(go, &goroutine, &err))
		fail_msg("%s: %s", golang_build(go)->version, err.text);
	assert_int_equal(found.serve.address, symbol("net/http.serverHandler.ServeHTTP"));
	assert_true(goroutine == 0x90 || goroutine == 0x98); /* Go 1.24 has a word more before it */
	assert_int_equal(found.write_header, 24 + 2 * 8);    /* Header, Write, WriteHeader */
	assert_true(found.serve.begin.address > found.serve.address);
	assert_int_equal(found.serve.again, 0x41);
	assert_true(found.serve.grows.address > found.serve.begin.address);
	assert_int_equal(found.serve.grows.address - found.serve.begin.address,
			 found.serve.grows.offset - found.serve.begin.offset);
	assert_true(found.returns.n > 0);
	golang_close(go);
}

/* Nothing of it depends on symbols. */
static void test_with_symbols(void **state)
{
	struct golang *go[] = { open_server("stripped"), open_server("server") };
	struct golang_http found[2];
	struct error err = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		memset(&found[i], 0, sizeof(found[i]));
		assert_int_equal(golang_find_http(go[i], &found[i], &err), 0);
		golang_close(go[i]);
	}
	assert_int_equal(found[0].serve.address, found[1].serve.address);
	assert_int_equal(found[0].serve.begin.address, found[1].serve.begin.address);
	assert_int_equal(found[0].returns.n, found[1].returns.n);
	assert_memory_equal(&found[0].fields, &found[1].fields, sizeof(found[0].fields));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_http),
		cmocka_unit_test(test_with_symbols),
	};

	if (run("command -v %s >/dev/null", go_command())) {
		puts("SKIP: no go (golang-go)");
		return EXIT_SKIP;
	}
	return cmocka_run_group_tests_name("golang_server", tests, build, clean);
}
