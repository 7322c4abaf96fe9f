/* SPDX-License-Identifier: GPL-2.0 */
/* An AdmissionConfiguration, and the files that it names. */
#include <errno.h>
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
#include "policy/policy.h"

#define ADMISSION(plugins) "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n" plugins
#define EVENTS                                                                         \
	"{apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, " \
	"limits: [{type: Server, qps: 1, burst: 1}]}"

struct place {
	char directory[32], admission[64], events[64];
	struct policy policy;
};

static int set_up(void **state)
{
	struct place *p = test_calloc(1, sizeof(*p));

	strcpy(p->directory, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(p->directory));
	snprintf(p->admission, sizeof(p->admission), "%s/admission.yaml", p->directory);
	snprintf(p->events, sizeof(p->events), "%s/events.yaml", p->directory);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	policy_clear(&p->policy);
	unlink(p->admission);
	unlink(p->events);
	assert_int_equal(rmdir(p->directory), 0);
	test_free(p);
	return 0;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void read_it(struct place *p, const char *admission)
{
	struct error err = { 0 };

	write_file(p->admission, admission);
	assert_int_equal(policy_read(&p->policy, p->admission, &err), 0);
	policy_check(&p->policy);
}

/* One object, of that file. */
static void expect_object(const struct place *p, const char *file)
{
	assert_int_equal(p->policy.problems.n, 0);
	assert_int_equal(p->policy.n, 1);
	assert_string_equal(p->policy.objects[0].file, file);
}

static void expect_problem(const struct place *p, const char *text)
{
	assert_int_equal(p->policy.problems.n, 1);
	assert_string_equal(p->policy.problems.items[0].text, text);
}

static void beside_it(void **state)
{
	struct place *p = *state;

	write_file(p->events, EVENTS);
	read_it(p, ADMISSION("- {name: EventRateLimit, path: events.yaml}\n"));
	expect_object(p, p->events);
	assert_false(p->policy.pointed);
}

static void anywhere(void **state)
{
	struct place *p = *state;
	char text[256];

	write_file(p->events, EVENTS);
	snprintf(text, sizeof(text), ADMISSION("- {name: EventRateLimit, path: %s}\n"), p->events);
	read_it(p, text);
	expect_object(p, p->events);
}

static void within(void **state)
{
	struct place *p = *state;

	read_it(p, ADMISSION("- {name: EventRateLimit, configuration: " EVENTS "}\n"));
	expect_object(p, p->admission);
}

/* What they are configured by is not looked at. */
static void other_plugins(void **state)
{
	struct place *p = *state;

	write_file(p->events, EVENTS);
	read_it(p, ADMISSION("- {name: Other, path: none.yaml}\n- {name: EventRateLimit, path: events.yaml}\n"));
	expect_object(p, p->events);
}

static void neither_and_both(void **state)
{
	struct place *p = *state;

	read_it(p, ADMISSION("- {name: EventRateLimit}\n"));
	expect_problem(p, "path or configuration is missing");
	policy_clear(&p->policy);
	p->policy = (struct policy){ 0 };
	read_it(p, ADMISSION("- {name: EventRateLimit, path: events.yaml, configuration: " EVENTS "}\n"));
	expect_problem(p, "the plugin has both a path and a configuration");
}

static void not_there(void **state)
{
	struct place *p = *state;
	char text[256];

	read_it(p, ADMISSION("- {name: EventRateLimit, path: events.yaml}\n"));
	snprintf(text, sizeof(text), "%s: No such file or directory", p->events);
	expect_problem(p, text);
}

/* So a file that names itself has an end. */
static void one_that_names_another(void **state)
{
	struct place *p = *state;

	read_it(p, ADMISSION("- {name: EventRateLimit, path: admission.yaml}\n"));
	expect_problem(p, "an included file cannot include another one");
}

int main(void)
{
#define placed(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		placed(beside_it),
		placed(anywhere),
		placed(within),
		placed(other_plugins),
		placed(neither_and_both),
		placed(not_there),
		placed(one_that_names_another),
	};

	return cmocka_run_group_tests_name("pointed", tests, NULL, NULL);
}
