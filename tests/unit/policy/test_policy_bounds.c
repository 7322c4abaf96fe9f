/* SPDX-License-Identifier: GPL-2.0 */
/* Policy files that would take for ever to read: each has a bound that is told. One step below it, nothing is wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "policy/policy.h"

#define THROTTLE "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: api}\nspec:\n"
#define BESIDE "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: two}\nspec:\n  listen: [\"*:81\"]\n"
#define NAMED "---\napiVersion: weir/v1\nkind: Throttle\nmetadata: {name: a%d}\nspec: {}\n"
#define SCHEMA                                                                                               \
	"---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: s%d}\nspec:\n" \
	"  priorityLevelConfiguration: {name: exempt}\n"

/* head, n times the line with its number, tail */
static void read_lines(struct policy *policy, const char *head, const char *line, int n, const char *tail)
{
	static const struct policy_file file = { .path = "a.yaml", .name = "/a.yaml" };
	CLEANUP_FREE char *text = NULL;
	struct error err = { 0 };
	size_t length;
	FILE *out = open_memstream(&text, &length);

	fputs(head, out);
	for (int i = 0; i < n; i++)
		fprintf(out, line, i); /* NOLINT: the tests' own */
	fputs(tail, out);
	fclose(out);
	assert_int_equal(policy_read_text(policy, &file, text, length, &err), 0);
	policy_check(policy);
}

static void check(const char *head, const char *line, int n, const char *tail, const char *expected)
{
	CLEANUP_POLICY struct policy fits = { 0 }, policy = { 0 };

	read_lines(&fits, head, line, n - 1, tail);
	for (size_t i = 0; i < fits.problems.n; i++)
		assert_null(strstr(fits.problems.items[i].text, expected));
	read_lines(&policy, head, line, n, tail);
	assert_int_equal(policy.problems.errors, 1);
	if (!strstr(policy.problems.items[0].text, expected))
		fail_msg("\"%s\", not \"%s\"", policy.problems.items[0].text, expected);
}

static void documents(void **state)
{
	(void)state;
	check("a: ", "[", 65 - 1, "", "more than 64 levels of nesting");
	check("", "a%d: 1\n", 1025, "", "more than 1024 fields in one object");
	check(THROTTLE "  trustedProxies:\n", "  - &a%d 10.0.0.0/8\n", 257, "",
	      "more than 256 anchors in one document");
	check("", NAMED, 4097, "", "more than 4096 objects");
}

static size_t count_told(const struct policy *policy, const char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < policy->problems.n; i++)
		n += strstr(policy->problems.items[i].text, text) != NULL;
	return n;
}

/* Each document is within its bound. */
static void aliases_of_many_documents(void **state)
{
	static const char document[] =
		"--- {r: &r [%d,1,1,1,1,1,1,1], s: &s [*r,*r,*r,*r,*r,*r,*r,*r,*r,*r,*r,*r,*r,*r,*r,*r], "
		"t: &t [*s,*s,*s,*s,*s,*s,*s,*s,*s,*s,*s,*s,*s,*s,*s,*s], u: [*t,*t,*t,*t,*t,*t,*t]}\n";
	static const char told[] = "aliases stand for more than 1048576 values in all documents";
	CLEANUP_POLICY struct policy fits = { 0 }, policy = { 0 };

	(void)state;
	/* 16 * 9 for s, 16 * 145 for t and 7 * 2321 for u: 18,711 for each document. */
	read_lines(&fits, "", document, (1 << 20) / 18711, "");
	assert_int_equal(count_told(&fits, told), 0);
	read_lines(&policy, "", document, (1 << 20) / 18711 + 1, "--- {}\n");
	assert_int_equal(count_told(&policy, told), 1);
	assert_int_equal(policy.documents.n, (1 << 20) / 18711);
}

static void lists(void **state)
{
	(void)state;
	check(THROTTLE "  limits:\n", "  - {name: l%d, key: user, qps: 1, burst: 1}\n", 257, "",
	      "there are 257: there can be 256 at most");
	check(THROTTLE "  priorityLevels:\n", "  - {name: l%d, shares: 1}\n", 257, "", "there are 257");
	check(THROTTLE "  exempt:\n", "  - {paths: [/a%d]}\n", 1025, "", "there are 1025: there can be 1024 at most");
	check(THROTTLE "  limits:\n  - name: a\n    key: user\n    qps: 1\n    burst: 1\n    rules:\n",
	      "    - {paths: [/a%d], nonResource: true}\n", 1025, "", "there are 1025");
	check("apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits:\n",
	      "- {type: User, qps: 1, burst: %d}\n", 257, "", "there are 257");
	check(THROTTLE "  trustedProxies:\n", "  - fc00::%x\n", 4097, "", "there are 4097: there can be 4096 at most");
	check(THROTTLE "  proxyProtocol:\n", "  - fc00::%x\n", 4097, "", "there are 4097: there can be 4096 at most");
}

/* None of them is one too many: that is said of the spec. */
static void rules_of_all(void **state)
{
	CLEANUP_POLICY struct policy policy = { 0 };

	(void)state;
	read_lines(&policy, THROTTLE "  limits: [{name: a, key: user, qps: 1, burst: 1}]\n  exempt:\n",
		   "  - {paths: [/a%d]}\n", 1024, "");
	assert_int_equal(policy.problems.errors, 1);
	assert_string_equal(policy.problems.items[0].path, "$.spec");
	assert_string_equal(policy.problems.items[0].text, "1025 rules: a server can have at most 1024");
}

/* What a network namespace has room for: servers in one share it. */
static void rooms(void **state)
{
	(void)state;
	check(THROTTLE "  listen:\n", "  - '[fc00::%x]:80'\n", 1025, "", "1025 addresses to listen on");
	check(THROTTLE "  identity:\n    exemptUsers:\n", "    - u%d\n", 65537 - 2, "",
	      "65537 names of groups and exempt users");
	check(THROTTLE "  listen: [\"*:80\"]\n  trustedProxies: [10.0.0.0/8]\n---\n" BESIDE
		       "  proxyProtocol: [10.0.0.0/8]\n  trustedProxies:\n",
	      "  - fc00::%x\n", 4096, "", "its other servers have 1");
}

/* All are counted, a thousand of each kind told. */
static void problems(void **state)
{
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_FREE char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	read_lines(&policy, "", "--- %d\n", 1234, "");
	assert_int_equal(policy.problems.errors, 1234);
	assert_int_equal(policy.problems.n, 1000);
	problems_print(&policy.problems, out);
	fclose(out);
	assert_non_null(strstr(text, "\nand 234 more\n"));
}

/* Warnings do not take an error's place. */
static void warnings(void **state)
{
	CLEANUP_POLICY struct policy policy = { 0 };

	(void)state;
	read_lines(&policy, "", SCHEMA "  rules: []\n", 1, "--- 3\n");
	for (int i = 0; i < 1500; i++)
		warn_node(&policy.problems, policy.documents.items[0], "again");
	problem_node(&policy.problems, policy.documents.items[0], "last");
	assert_string_equal(policy.problems.items[policy.problems.n - 1].text, "last");
}

/* Somebody has it open and writes nothing: an agent would wait for ever. */
static void a_fifo_that_is_open(void **state)
{
	char directory[] = P_tmpdir "/weir-policy-XXXXXX", path[64];
	CLEANUP_POLICY struct policy policy = { .regular = true };
	struct error err = { 0 };
	CLEANUP_CLOSE int writer = -1;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/a.yaml", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	writer = open(path, O_RDWR | O_CLOEXEC);
	assert_true(writer >= 0);
	assert_int_equal(policy_read(&policy, directory, &err), -EINVAL);
	assert_non_null(strstr(err.text, "a.yaml: not a regular file"));
	unlink(path);
	rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents), cmocka_unit_test(aliases_of_many_documents),
		cmocka_unit_test(lists),     cmocka_unit_test(problems),
		cmocka_unit_test(warnings),  cmocka_unit_test(a_fifo_that_is_open),
		cmocka_unit_test(rooms),     cmocka_unit_test(rules_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
