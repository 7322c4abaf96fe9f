/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "policy_scene.h"

void policy_read_as_file(struct policy *policy, const char *text)
{
	char path[] = P_tmpdir "/weir-policy-XXXXXX";
	CLEANUP_CLOSE int fd = mkstemp(path);
	struct error err = { 0 };

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(policy_read(policy, path, &err), 0);
	policy_check(policy);
	unlink(path);
}

void policy_check_problems(const char *text, const char *const *expected)
{
	CLEANUP_POLICY struct policy policy = { 0 };

	policy_read_as_file(&policy, text);
	for (size_t i = 0; i < policy.problems.n; i++) {
		const struct problem *p = &policy.problems.items[i];
		CLEANUP_FREE char *said = NULL;

		assert_true(asprintf(&said, "%u:%u %s: %s%s", p->line, p->column, p->path,
				     p->warning ? "warning: " : "", p->text) > 0);
		if (!expected[i] || strncmp(said, expected[i], strlen(expected[i])) != 0)
			fail_msg("problem %zu is \"%s\", not \"%s\"", i, said, expected[i] ?: "");
	}
	assert_null(expected[policy.problems.n]);
}

struct server *policy_server_with(const struct server *server, const char *spec)
{
	CLEANUP_JSON json_t *objects = json_pack("[{s:s, s:{s:s, s:s, s:{s:s}, s:o}}]", "file", "/t.yaml", "document",
						 "apiVersion", "weir/v1", "kind", "Throttle", "metadata", "name", "api",
						 "spec", json_loads(spec, 0, NULL));
	struct server *made = NULL;
	struct error err;

	if (policy_server(server, objects, &made, &err))
		fail_msg("%s: %s", spec, err.text);
	return made;
}
