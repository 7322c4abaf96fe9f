/* SPDX-License-Identifier: GPL-2.0 */
/* state.json over restarts: of the agent and of the machine; and what of a server's policy it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "directories.h"
#include "policy/objects.h"
#include "saved/saved.h"

static int set_up(void **state)
{
	struct directories *d = calloc(1, sizeof(*d));

	directories_make(d);
	*state = d;
	return 0;
}

static int tear_down(void **state)
{
	struct directories *d = *state;

	directories_remove(d);
	free(d);
	return 0;
}

static void write_json(const char *directory, json_t *json)
{
	char path[64];

	path_in(directory, path);
	assert_non_null(json);
	assert_int_equal(json_dump_file(json, path, 0), 0);
	json_decref(json);
}

static json_t *read_json(const char *directory)
{
	char path[64];

	path_in(directory, path);
	return json_load_file(path, 0, NULL);
}

/* As if the file were of another boot. */
static void restart_machine(const char *directory)
{
	json_t *json = read_json(directory);

	assert_non_null(json_object_get(json, "boot_id"));
	json_object_set_new(json, "boot_id", json_string("another"));
	write_json(directory, json);
}

static struct server *server_called(const char *name, const char *policy, bool draining)
{
	CLEANUP_JSON json_t *json = json_pack("{s:s, s:[s], s:b, s:o*}", "name", name, "listen", "*:80", "draining",
					      draining, "policy", policy ? json_loads(policy, 0, NULL) : NULL);
	struct server *server = NULL;
	struct error err;

	json_object_set_new(json, "netns_cookie", json_integer(name[0]));
	if (server_from_json(json, &server, &err))
		fail_msg("%s", err.text);
	return server;
}

#define EVENTS(more)                                                                                                   \
	"{" more "\"file\":\"/etc/e.yaml\",\"document\":{\"apiVersion\":\"eventratelimit.admission.k8s.io/v1alpha1\"," \
	"\"kind\":\"Configuration\",\"limits\":[{\"type\":\"User\",\"qps\":1,\"burst\":2}]}}"
#define THROTTLE(more)                                                                                      \
	"{" more "\"file\":\"/etc/t.yaml\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\"," \
	"\"metadata\":{\"name\":\"c\"},\"spec\":{\"limits\":[{\"name\":\"user\",\"qps\":\"1\",\"burst\":2}]}}}"
#define FOLLOWED "\"followed\":\"/etc\","
#define POLICY(objects, more) "{\"objects\":[" objects "]" more "}"

/* The server with what its objects say. */
static struct server *made(struct server *server)
{
	struct server *out = NULL;
	struct error err;

	if (policy_server(server, policy_objects(server), &out, &err))
		fail_msg("%s", err.text);
	server_free(server);
	return out;
}

/* An agent that was killed while it saved leaves half a file. */
static void after_a_kill(void **state)
{
	struct directories *d = *state;
	const char *const directories[] = { d->run, d->lib };
	struct state s = { 0 };
	char paths[2][64];

	s.servers[0] = server_called("a", NULL, false);
	assert_int_equal(state_save(&s, d->run, NULL), 0);
	state_clear(&s);
	for (int i = 0; i < 2; i++) {
		CLEANUP_FCLOSE FILE *file = NULL;

		snprintf(paths[i], sizeof(paths[i]), "%s/state.json.new", directories[i]);
		file = fopen(paths[i], "w");
		assert_non_null(file);
		fputs("{\"version\":", file);
	}
	assert_int_equal(state_begin(&s, d->run, d->lib, NULL), STATE_CURRENT);
	assert_non_null(s.servers[0]);
	state_clear(&s);
	for (int i = 0; i < 2; i++)
		assert_int_equal(access(paths[i], F_OK), -1);
}

static void over_restarts(void **state)
{
	struct directories *d = *state;
	struct state s = { 0 };

	assert_int_equal(state_begin(&s, d->run, d->lib, NULL), STATE_NEW);
	s.servers[3] = made(server_called("a", POLICY(EVENTS(FOLLOWED), ""), false));
	s.servers[4] = server_called("b", NULL, true);
	s.servers[5] = made(server_called("c", POLICY(THROTTLE(FOLLOWED), ",\"attached\":true"), false));
	s.servers[6] = made(server_called("d", POLICY(EVENTS(""), ""), false));
	assert_int_equal(state_save(&s, d->run, NULL), 0);
	state_clear(&s);

	assert_int_equal(state_begin(&s, d->run, d->lib, NULL), STATE_CURRENT);
	assert_non_null(server_limit(s.servers[3], "event-user"));
	assert_true(s.servers[4]->draining);
	assert_non_null(server_limit(s.servers[5], "user"));
	state_clear(&s);

	restart_machine(d->run);
	assert_int_equal(state_begin(&s, d->run, NULL, NULL), STATE_OUTDATED);
	assert_null(s.servers[3]);
	assert_null(s.persist_dir);
	state_clear(&s);

	assert_int_equal(state_begin(&s, d->run, d->lib, NULL), STATE_PERSISTED);
	assert_string_equal(s.persist_dir, d->lib);
	assert_int_equal(s.servers[3]->n_limits, 0); /* its file is there, or not */
	assert_null(s.servers[3]->policy);
	assert_null(s.servers[4]); /* what it drained for is gone */
	assert_null(s.servers[5]); /* its Throttle attaches it */
	assert_non_null(server_limit(s.servers[6], "event-user"));
	state_clear(&s);
}

/* What a command has set on a server that a followed Throttle attached waits for that. */
static void beside_a_followed_throttle(void **state)
{
	struct directories *d = *state;
	struct state s = { .persist_dir = d->lib };

	s.servers[0] = made(server_called("c", POLICY(THROTTLE(FOLLOWED) "," EVENTS(""), ",\"attached\":true"), false));
	assert_int_equal(policy_pause(s.servers[0], true, NULL), 0);
	assert_int_equal(state_save(&s, d->run, NULL), 0);
	state_clear(&s);
	assert_int_equal(state_load(&s, d->lib, NULL), 0);
	assert_non_null(server_limit(s.servers[0], "event-user"));
	assert_null(server_limit(s.servers[0], "user"));
	assert_true(s.servers[0]->paused);
	assert_true(policy_attached(s.servers[0]));
	state_clear(&s);
}

/* What could not be saved is not there after the machine's restart either: a directory is where the new file is to be. */
static void saved_in_both_or_in_none(void **state)
{
	struct directories *d = *state;
	struct state before = { .persist_dir = d->lib }, after = { .persist_dir = d->lib }, loaded = { 0 };
	const char *const places[] = { d->run, d->lib };

	before.servers[0] = server_called("before", NULL, false);
	after.servers[0] = server_called("after", NULL, false);
	assert_int_equal(state_save(&before, d->run, NULL), 0);
	for (size_t i = 0; i < 2; i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s/state.json.new", places[i]);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_true(state_save(&after, d->run, NULL) < 0);
		for (size_t j = 0; j < 2; j++) {
			assert_int_equal(state_load(&loaded, places[j], NULL), 0);
			assert_string_equal(loaded.servers[0]->name, "before");
			state_clear(&loaded);
		}
		assert_int_equal(rmdir(path), 0);
		snprintf(path, sizeof(path), "%s/state.json.new", places[!i]);
		assert_int_equal(access(path, F_OK), -1);
	}
	/* Nor is anything left where the last step fails. */
	for (size_t i = 0; i < 2; i++) {
		char path[256], aside[256];

		snprintf(path, sizeof(path), "%s/state.json", places[i]);
		snprintf(aside, sizeof(aside), "%s/aside", places[i]);
		assert_int_equal(rename(path, aside), 0);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_true(state_save(&after, d->run, NULL) < 0);
		assert_int_equal(rmdir(path), 0);
		assert_int_equal(rename(aside, path), 0);
		for (size_t j = 0; j < 2; j++) {
			snprintf(path, sizeof(path), "%s/state.json.new", places[j]);
			assert_int_equal(access(path, F_OK), -1);
		}
	}
	state_clear(&before);
	state_clear(&after);
}

static json_t *file_with(const char *policy)
{
	return json_pack("{s:i, s:{s:{s:s, s:[s], s:o}}}", "version", 2, "servers", "0", "name", "c", "listen", "*:80",
			 "policy", json_loads(policy, JSON_DECODE_ANY, NULL));
}

static void bad_policies(void **state)
{
	static const struct {
		const char *policy, *said;
	} cases[] = {
		{ "7", "policy: must be an object" },
		{ "{\"object\":[]}", "\"object\"" },
		{ "{\"attached\":1}", "attached" },
		{ "{\"objects\":{}}", "objects: must be a list" },
		{ POLICY("7", ""), "an object" },
		{ POLICY("{}", ""), "a file and a document" },
		{ POLICY(EVENTS("\"more\":1,"), ""), "\"more\"" },
		{ POLICY(EVENTS("\"source\":\"/etc/e.yaml\","), ""), "\"source\"" },
		{ POLICY(EVENTS("\"followed\":1,"), ""), "followed: must be a text" },
		{ POLICY(EVENTS("") "," EVENTS(""), ""), "EventRateLimit is there twice" },
		{ POLICY(EVENTS(""), ",\"base\":{\"name\":\"x\"}"), "\"name\"" },
		{ POLICY(EVENTS(""), ",\"base\":{\"concurrency\":\"x\"}"), "concurrency" },
		{ "{\"objects\":[{\"file\":\"/e\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\","
		  "\"metadata\":{\"name\":\"c\"},\"spec\":{\"limits\":[{\"name\":\"user\",\"qqs\":1}]}}}]}",
		  "/e: $.spec.limits[0].qqs: there is no field" },
		{ "{\"objects\":[{\"file\":\"/e\",\"document\":{\"apiVersion\":\"weir/v0\",\"kind\":\"Throttle\","
		  "\"metadata\":{\"name\":\"c\"},\"spec\":{}}}]}",
		  "weir/v1" },
	};
	struct directories *d = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct state s = { 0 };
		struct error err = { 0 };

		write_json(d->run, file_with(cases[i].policy));
		assert_true(state_load(&s, d->run, &err) < 0);
		if (!strstr(err.text, cases[i].said) || !strstr(err.text, "state.json"))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].said);
		assert_null(s.servers[0]);
	}
}

/* Earlier agents of this version said `source`; what is saved has the name of today. */
static void earlier_names(void **state)
{
	static const char text[] =
		"{\"version\":2,\"servers\":{\"0\":{\"name\":\"c\",\"listen\":[\"*:80\"],\"limits\":["
		"{\"name\":\"total\",\"qps\":\"1\",\"burst\":2},"
		"{\"name\":\"user\",\"qps\":\"1\",\"burst\":2,\"source\":\"/etc/t.yaml\"}],"
		"\"policy\":{\"objects\":[{\"source\":\"/etc/t.yaml\",\"followed\":\"/etc\",\"document\":"
		"{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\",\"metadata\":{\"name\":\"c\"},"
		"\"spec\":{\"limits\":[{\"name\":\"user\",\"qps\":\"1\",\"burst\":2}]}}}]}}}}";
	struct directories *d = *state;
	CLEANUP_JSON json_t *saved = NULL;
	CLEANUP_FREE char *dumped = NULL;
	struct state s = { 0 };
	json_t *object;
	struct error err;

	write_json(d->run, json_loads(text, 0, NULL));
	if (state_load(&s, d->run, &err))
		fail_msg("%s", err.text);
	assert_null(server_limit(s.servers[0], "total")->file);
	assert_string_equal(server_limit(s.servers[0], "user")->file, "/etc/t.yaml");
	object = json_array_get(policy_objects(s.servers[0]), 0);
	assert_string_equal(policy_object_file(object), "/etc/t.yaml");
	assert_string_equal(policy_object_followed(object), "/etc");
	assert_int_equal(state_save(&s, d->run, NULL), 0);
	state_clear(&s);
	saved = read_json(d->run);
	dumped = json_dumps(saved, 0);
	assert_null(strstr(dumped, "\"source\""));
	assert_non_null(strstr(dumped, "\"file\""));
}

static void levels_get_numbers(void **state)
{
	struct directories *d = *state;
	struct state s = { 0 };
	struct error err;

	write_json(d->run, json_pack("{s:i, s:{s:{s:s, s:[s], s:[{s:s, s:i}, {s:s, s:i, s:i}]}}}", "version", 2,
				     "servers", "0", "name", "c", "listen", "*:80", "priority_levels", "name", "low",
				     "shares", 1, "name", "high", "shares", 2, "number", 1));
	if (state_load(&s, d->run, &err))
		fail_msg("%s", err.text);
	assert_int_equal(priority_level(&s.servers[0]->priorities, "low")->number, 2);
	assert_int_equal(priority_level(&s.servers[0]->priorities, "high")->number, 1);
	state_clear(&s);
}

/* Nobody waits for who might write into a FIFO. */
static void fifos(void **state)
{
	struct directories *d = *state;
	struct state s = { 0 };
	struct error err = { 0 };
	char path[64];

	alarm(60);
	path_in(d->run, path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(state_begin(&s, d->run, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a regular file (move it away to start with nothing)"));
	unlink(path);
	path_in(d->lib, path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(state_begin(&s, d->run, d->lib, &err), -EINVAL);
	alarm(0);
}

int main(void)
{
#define with_directories(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		with_directories(after_a_kill),
		with_directories(over_restarts),
		with_directories(beside_a_followed_throttle),
		with_directories(saved_in_both_or_in_none),
		with_directories(bad_policies),
		with_directories(earlier_names),
		with_directories(levels_get_numbers),
		with_directories(fifos),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
