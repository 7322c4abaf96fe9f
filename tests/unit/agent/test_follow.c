/* SPDX-License-Identifier: GPL-2.0 */
/* Policy files that an agent follows, over a kernel side in memory: one set, of which what is wrong changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "agent_fixture.h"
#include "base/cleanup.h"
#include "fake_datapath.h"
#include "follow/follow.h"

#define THROTTLE(limits) "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: api}\nspec:\n  limits:\n" limits
#define USER(burst) "  - {name: user, qps: 5, burst: " burst "}\n"
#define FLOW(kind, name) \
	"---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: " kind "\nmetadata: {name: " name "}\n"
#define LEVEL FLOW("PriorityLevelConfiguration", "low") "spec: {type: Limited, limited: {}}\n"
#define SCHEMA                                                         \
	FLOW("FlowSchema", "all")                                      \
	"spec:\n  priorityLevelConfiguration: {name: low}\n  rules:\n" \
	"  - subjects: [{kind: Group, group: {name: dev}}]\n"          \
	"    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]\n"
#define EVENTS                                                                             \
	"---\napiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n" \
	"limits: [{type: User, qps: 5, burst: 6}]\n"

/* Two files, each of which may be followed. */
struct scene {
	struct fixture *f;
	char directory[32], a[48], b[48];
	const char *paths[2];
};

static void follow(struct scene *w, const char *a, const char *b)
{
	size_t n = 0;

	if (a)
		w->paths[n++] = w->a;
	if (b)
		w->paths[n++] = w->b;
	w->f->options.policies = w->paths;
	w->f->options.n_policies = n;
	if (a)
		write_file(w->a, a);
	if (b)
		write_file(w->b, b);
	assert_int_equal(follow_open(&w->f->agent, &w->f->err), 0);
	follow_sync(&w->f->agent);
}

static struct scene begin(struct fixture *f)
{
	struct scene w = { .f = f, .directory = P_tmpdir "/weir-test-XXXXXX" };

	assert_non_null(mkdtemp(w.directory));
	snprintf(w.a, sizeof(w.a), "%s/a.yaml", w.directory);
	snprintf(w.b, sizeof(w.b), "%s/b.yaml", w.directory);
	succeed(f, "attach", ATTACH);
	return w;
}

static void end(struct scene *w)
{
	follow_close(&w->f->agent);
	unlink(w->a);
	unlink(w->b);
	assert_int_equal(rmdir(w->directory), 0);
}

static void restart(struct scene *w)
{
	follow_close(&w->f->agent);
	end_agent(w->f);
	start_agent(w->f);
}

static struct followed *followed(struct scene *w, size_t i)
{
	return &w->f->agent.followed->items[i];
}

/* The path has this one error; NULL: none. */
static void assert_error(struct scene *w, size_t i, const char *word)
{
	const char *said = json_string_value(json_array_get(followed(w, i)->errors, 0));

	assert_int_equal(json_array_size(followed(w, i)->errors), word != NULL);
	if (word && !strstr(said, word))
		fail_msg("\"%s\" does not say \"%s\"", said, word);
}

static void sync_now(struct scene *w, const char *a, const char *b)
{
	if (a)
		write_file(w->a, a);
	if (b)
		write_file(w->b, b);
	follow_sync(&w->f->agent);
}

static __u64 user_burst(void)
{
	const struct datapath_limit *limit = fake_limit(&fake_nets[1], 0, 2);

	return limit ? limit->amount.burst : 0;
}

static void same_again_writes_nothing(void **state)
{
	struct scene w = begin(*state);
	unsigned int writes;

	follow(&w, THROTTLE(USER("9")) LEVEL, SCHEMA EVENTS);
	assert_error(&w, 0, NULL);
	assert_error(&w, 1, NULL);
	assert_int_equal(user_burst(), 9);
	assert_true(fake_nets[1].servers[0].has_rules);
	assert_int_equal(w.f->agent.state.servers[0]->priorities.n_schemas, 4);
	writes = fake_nets[1].writes;
	follow_sync(&w.f->agent);
	sync_now(&w, THROTTLE(USER("9")) LEVEL "# the same\n", NULL);
	assert_int_equal(fake_nets[1].writes, writes);
	restart(&w);
	writes = fake_nets[1].writes;
	follow(&w, THROTTLE(USER("9")) LEVEL, SCHEMA EVENTS);
	assert_int_equal(fake_nets[1].writes, writes);
	sync_now(&w, THROTTLE(USER("8")) LEVEL, NULL);
	assert_true(fake_nets[1].writes > writes);
	assert_int_equal(user_burst(), 8);
	end(&w);
}

static void what_is_wrong_changes_nothing(void **state)
{
	struct scene w = begin(*state);

	follow(&w, THROTTLE(USER("9")), LEVEL);
	sync_now(&w, THROTTLE(USER("many")), SCHEMA LEVEL);
	assert_error(&w, 0, "a.yaml:6:33: $.spec.limits[0].burst");
	assert_error(&w, 1, NULL); /* the other one is not kept waiting */
	assert_int_equal(user_burst(), 9);
	assert_int_equal(w.f->agent.state.servers[0]->priorities.n_schemas, 4);

	restart(&w);
	follow(&w, THROTTLE(USER("many")), SCHEMA LEVEL);
	assert_error(&w, 0, "a.yaml:6:33");
	assert_int_equal(user_burst(), 9);

	fake_fail("datapath_limit_set", 100);
	sync_now(&w, THROTTLE(USER("7")), NULL);
	assert_error(&w, 0, "datapath_limit_set");
	assert_int_equal(user_burst(), 9);
	fake_fail("", 0);
	sync_now(&w, NULL, NULL);
	assert_error(&w, 0, NULL);
	assert_int_equal(user_burst(), 7);
	end(&w);
}

/* What is pointed to is part of it, and may come later. */
/* The names of files need not be UTF-8: what is wrong with such a one is told, and changes nothing. */
static void name_that_is_no_text(void **state)
{
	struct scene w = begin(*state);
	char odd[48];

	snprintf(odd, sizeof(odd), "%s/caf\xe9.yaml", w.directory);
	write_file(w.a, THROTTLE(USER("9")));
	w.paths[0] = w.directory;
	w.f->options.policies = w.paths;
	w.f->options.n_policies = 1;
	assert_int_equal(follow_open(&w.f->agent, &w.f->err), 0);
	sync_now(&w, NULL, NULL);
	assert_int_equal(user_burst(), 9);
	write_file(odd, "kind: nosuch\n");
	sync_now(&w, THROTTLE(USER("7")), NULL);
	assert_error(&w, 0, "caf\\xe9.yaml");
	assert_int_equal(user_burst(), 9);
	/* It is read in part only. */
	unlink(odd);
	assert_int_equal(symlink("nosuch", odd), 0);
	sync_now(&w, NULL, NULL);
	assert_error(&w, 0, "caf\\xe9.yaml");
	assert_int_equal(user_burst(), 9);
	/* What is right is in force. */
	unlink(odd);
	write_file(odd, LEVEL SCHEMA);
	sync_now(&w, NULL, NULL);
	assert_error(&w, 0, NULL);
	assert_int_equal(user_burst(), 7);
	assert_int_equal(w.f->agent.state.servers[0]->priorities.n_schemas, 4);
	unlink(odd);
	end(&w);
}

static void pointed_to(void **state)
{
	struct scene w = begin(*state);

	follow(&w,
	       "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
	       "plugins: [{name: EventRateLimit, path: b.yaml}]\n",
	       NULL);
	assert_error(&w, 0, "b.yaml: No such file");
	sync_now(&w, NULL, EVENTS);
	assert_error(&w, 0, NULL);
	assert_int_equal(server_limit(w.f->agent.state.servers[0], "event-user")->amount.burst, 6);
	sync_now(&w, NULL, "");
	assert_error(&w, 0, "b.yaml: it is empty");
	assert_int_equal(server_limit(w.f->agent.state.servers[0], "event-user")->amount.burst, 6);
	end(&w);
}

static void one_name_from_two_files(void **state)
{
	struct scene w = begin(*state);

	follow(&w, THROTTLE(USER("9")), THROTTLE(USER("8")));
	assert_error(&w, 0, NULL);
	assert_error(&w, 1, "a.yaml and in");
	assert_int_equal(user_burst(), 9);
	sync_now(&w, LEVEL, NULL); /* now it is the other one's */
	assert_error(&w, 1, NULL);
	assert_int_equal(user_burst(), 8);
	sync_now(&w, NULL, LEVEL EVENTS);
	assert_error(&w, 1, "low of server \"api\" is in");
	assert_int_equal(user_burst(), 8);
	end(&w);
}

/* Documents applied by command are somebody else's; if they say the same, the file has them from then on. */
static void beside_commands(void **state)
{
	static const char applied[] =
		"{\"objects\":[{\"file\":\"/etc/c.yaml\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\","
		"\"metadata\":{\"name\":\"api\"},\"spec\":{\"limits\":[{\"name\":\"user\",\"qps\":\"5\",\"burst\":9}]}}}]}";
	struct scene w = begin(*state);

	succeed(w.f, "limit set", "{\"limit\":{\"name\":\"total\",\"qps\":\"1\",\"burst\":1}}");
	succeed(w.f, "apply", applied);
	follow(&w, THROTTLE(USER("8")), NULL);
	assert_error(&w, 0, "/etc/c.yaml");
	assert_int_equal(user_burst(), 9);
	sync_now(&w, THROTTLE("  - {name: user, qps: 5, burst: 9}\n"), NULL);
	assert_error(&w, 0, NULL);
	refuse(w.f, "apply", applied, "a.yaml");
	refuse(w.f, "delete", applied, "a.yaml");
	refuse(w.f, "limit delete", "{\"limit\":\"user\"}", "a.yaml, which the agent follows");
	refuse(w.f, "limit set", "{\"limit\":{\"name\":\"user\",\"burst\":1}}", "a.yaml, which the agent follows");
	sync_now(&w, THROTTLE(USER("9") "  - {name: total, qps: 2, burst: 2}\n"), NULL);
	assert_error(&w, 0, "command line");
	succeed(w.f, "apply", "{\"objects\":[],\"prune\":true}");
	assert_int_equal(user_burst(), 9);
	sync_now(&w, LEVEL, NULL);
	assert_int_equal(user_burst(), 0);
	assert_non_null(server_limit(w.f->agent.state.servers[0], "total"));
	end(&w);
}

static void what_is_not_followed_goes(void **state)
{
	struct scene w = begin(*state);

	follow(&w, THROTTLE(USER("9")), LEVEL);
	restart(&w);
	follow(&w, NULL, LEVEL);
	assert_int_equal(user_burst(), 0);
	assert_int_equal(w.f->agent.state.servers[0]->priorities.n_levels, 3);
	restart(&w);
	follow(&w, NULL, NULL);
	assert_null(w.f->agent.state.servers[0]->policy);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(same_again_writes_nothing),
		with_agent(what_is_wrong_changes_nothing),
		with_agent(pointed_to),
		with_agent(one_name_from_two_files),
		with_agent(beside_commands),
		with_agent(what_is_not_followed_goes),
		with_agent(name_that_is_no_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
