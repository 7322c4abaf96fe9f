/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "rate.h"
#include "state.h"

#define FULL                                                                                                                                                                                                              \
	"{\"name\":\"api\",\"listen\":[\"*:80\",\"[2001:db8::1]:443\"],\"netns\":\"/run/netns/a\",\"netns_cookie\":17,"                                                                                                   \
	"\"cgroup\":\"/sys/fs/cgroup\",\"trusted_proxies\":[\"10.0.0.0/8\"],\"proxy_protocol\":[\"192.0.2.0/24\"],\"interfaces\":[\"eth0\",\"lo\"],"                                                                      \
	"\"loopback\":\"close\",\"framing\":\"pass\",\"paths\":\"nginx\",\"namespace_from\":\"prefix=/t/u/\",\"hold\":\"drop\",\"when_full\":\"closed\",\"keys\":100,\"dry_run\":true,\"paused\":true,\"draining\":true," \
	"\"identity\":{\"user_header\":\"x-user\",\"group_header\":\"x-group\",\"exempt_groups\":[\"ops\",\"dev\"],"                                                                                                      \
	"\"exempt_users\":[\"root\",\"2001:db8::/64\"],\"token_file\":\"/etc/t\",\"address_file\":null,\"addresses\":[\"10.0.0.0/8,ann\"],\"new_subjects\":\"0.5:7\"},\"limits\":["                                       \
	"{\"type\":\"user\",\"subject\":null,\"qps\":\"0.5\",\"burst\":10,\"keys\":5},"                                                                                                                                   \
	"{\"type\":\"user\",\"subject\":\"2001:db8::/64\",\"qps\":\"1000000000\",\"burst\":0,\"keys\":0}]}"

static int read_server(const char *text, struct server **server, struct error *err)
{
	json_error_t why;
	CLEANUP_JSON json_t *json = json_loads(text, 0, &why);

	assert_non_null(json);
	return server_from_json(json, server, err);
}

static struct server *make_server(const char *text)
{
	struct server *server = NULL;

	assert_int_equal(read_server(text, &server, NULL), 0);
	return server;
}

static void server_round_trip(void **state)
{
	CLEANUP_SERVER struct server *server = make_server(FULL);
	CLEANUP_JSON json_t *json = server_to_json(server);
	CLEANUP_FREE char *text = json_dumps(json, JSON_COMPACT);

	(void)state;
	assert_string_equal(text, FULL);
	assert_int_equal(server->n_listens, 2);
	assert_true(server->listens[0].any);
	assert_int_equal(server->proxies[0].bits, 104);
	assert_int_equal(server->n_balancers, 1);
	assert_int_equal(server->balancers[0].bits, 120);
	assert_string_equal(server->interfaces[1], "lo");
	assert_int_equal(server->loopback, LOOPBACK_CLOSE);
	assert_int_equal(server->framing, FRAMING_PASS);
	assert_int_equal(server->tenancy.paths, WEIR_PATHS_NGINX);
	assert_int_equal(server->tenancy.segments, 2);
	assert_int_equal(server->hold, HOLD_DROP);
	assert_int_equal(server->when_full, FULL_CLOSED);
	assert_true(server->limits[0].per_ns == WEIR_QPS / 2);
	assert_int_equal(server->limits[0].keys, 5);
}

static void defaults(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"],\"netns\":null}");

	(void)state;
	assert_null(server->netns);
	assert_null(server->cgroup);
	assert_int_equal(server->n_interfaces, 0);
	assert_null(server->interfaces);
	assert_int_equal(server->loopback, LOOPBACK_AUTO);
	assert_int_equal(server->framing, FRAMING_REJECT);
	assert_int_equal(server->tenancy.paths, WEIR_PATHS_KUBERNETES);
	assert_int_equal(server->tenancy.tenant, WEIR_TENANT_PATH);
	assert_int_equal(server->hold, HOLD_AUTO);
	assert_int_equal(server->when_full, FULL_OPEN);
	assert_false(server->dry_run || server->paused || server->draining);
}

/* A server's text and a word of the error that it must give. */
static void bad_servers(void **state)
{
	static const char *const cases[][2] = {
		{ "[]", "object" },
		{ "{\"listen\":[\"*:80\"]}", "name" },
		{ "{\"name\":\"A\",\"listen\":[\"*:80\"]}", "\"A\"" },
		{ "{\"name\":\"a\",\"listen\":[]}", "listen" },
		{ "{\"name\":\"a\",\"listen\":\"*:80\"}", "listen" },
		{ "{\"name\":\"a\",\"listen\":[80]}", "listen" },
		{ "{\"name\":\"a\",\"listen\":[\"*:0\"]}", "\"0\"" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"lisden\":[]}", "lisden" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"netns\":5}", "netns" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"trusted_proxies\":[\"10/8\"]}", "10/8" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"proxy_protocol\":true}", "proxy_protocol: must be a list" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"interfaces\":[\"a/b\"]}", "a/b" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"loopback\":\"maybe\"}", "maybe" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"framing\":\"guess\"}", "guess" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"paths\":\"apache\"}", "apache" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"namespace_from\":\"host\"}", "host" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"hold\":\"still\"}", "still" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"hold\":1}", "string" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"when_full\":\"ajar\"}", "ajar" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"keys\":-1}", "keys" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"keys\":16777217}", "keys" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"dry_run\":1}", "dry_run" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"limits\":{}}", "limits" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"limits\":[{\"type\":\"user\",\"qps\":\"5\"}]}", "burst" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct server *server = NULL;
		struct error err = { 0 };

		assert_int_equal(read_server(cases[i][0], &server, &err), -EINVAL);
		assert_null(server);
		if (!strstr(err.text, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], err.text);
	}
}

static void limits(void **state)
{
	static const struct {
		const char *text;
		int ret;
	} cases[] = {
		{ "{\"type\":\"user\",\"subject\":\"10.0.0.1/32\",\"qps\":\"5\",\"burst\":1}", 0 },
		{ "{\"type\":\"total\",\"qps\":\"0\",\"burst\":0}", 0 },
		{ "{\"type\":\"total\",\"subject\":\"a\",\"qps\":\"5\",\"burst\":1}", -EINVAL },
		{ "{\"type\":\"user\",\"subject\":\"\",\"qps\":\"5\",\"burst\":1}", -EINVAL },
		{ "{\"type\":\"user\",\"qps\":\"12abc\",\"burst\":1}", -EINVAL },
		{ "{\"type\":\"user\",\"qps\":\"-5\",\"burst\":1}", -EINVAL },
		{ "{\"type\":\"user\",\"qps\":5,\"burst\":1}", -EINVAL },
		{ "{\"type\":\"user\",\"qps\":\"5\",\"burst\":1.5}", -EINVAL },
		{ "{\"type\":\"user\",\"qps\":\"5\",\"burst\":-1}", -EINVAL },
		{ "{\"type\":\"user\",\"qps\":\"5\",\"burst\":1000000001}", -EINVAL },
		{ "{\"type\":\"user\",\"qps\":\"5\",\"burst\":1,\"color\":1}", -EINVAL },
		{ "{\"type\":\"group\",\"qps\":\"5\",\"burst\":1}", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_JSON json_t *json = json_loads(cases[i].text, 0, NULL);
		CLEANUP_LIMIT struct limit limit = { 0 };

		assert_int_equal(limit_from_json(json, &limit, NULL), cases[i].ret);
		if (limit.subject)
			assert_string_equal(limit.subject, "10.0.0.1");
	}
}

static void limit_lists(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"]}");
	char name[16];

	(void)state;
	for (__u32 i = 0; i < 100; i++) {
		struct limit limit = { .type = WEIR_LIMIT_USER, .burst = i };

		snprintf(name, sizeof(name), "user%u", i);
		limit.subject = i ? strdup(name) : NULL;
		assert_int_equal(server_limit_add(server, &limit), 0);
	}
	assert_int_equal(server_limit(server, WEIR_LIMIT_USER, NULL)->burst, 0);
	assert_int_equal(server_limit(server, WEIR_LIMIT_USER, "user63")->burst, 63);
	assert_null(server_limit(server, WEIR_LIMIT_NAMESPACE, "user63"));
	for (int i = 0; i < 100; i += 2) {
		snprintf(name, sizeof(name), "user%d", i);
		server_limit_remove(server, server_limit(server, WEIR_LIMIT_USER, i ? name : NULL));
	}
	assert_int_equal(server->n_limits, 50);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "user%d", i);
		assert_int_equal(server_limit(server, WEIR_LIMIT_USER, i ? name : NULL) != NULL, i % 2);
	}
}

static struct server *server_at(const char *name, __u64 cookie, const char *listens)
{
	char text[256];

	snprintf(text, sizeof(text), "{\"name\":\"%s\",\"netns_cookie\":%llu,\"listen\":%s}", name, cookie, listens);
	return make_server(text);
}

static void conflicts(void **state)
{
	static const struct {
		const char *name;
		__u64 cookie;
		const char *listens;
		int ret;
		const char *word;
	} cases[] = {
		{ "b", 1, "[\"*:81\"]", 0, "" },
		{ "b", 2, "[\"*:80\"]", 0, "" },
		{ "b", 1, "[\"10.0.0.1:80\"]", 0, "" },
		{ "b", 1, "[\"10.0.0.1:90\"]", -EEXIST, "\"a\"" },
		{ "b", 1, "[\"*:81\",\"0.0.0.0:80\"]", -EEXIST, "\"a\"" },
		{ "b", 1, "[\"*:81\",\"*:81\"]", -EEXIST, "twice" },
		{ "a", 2, "[\"*:81\"]", -EEXIST, "attached already" },
	};
	struct state s = { 0 };

	(void)state;
	s.servers[5] = server_at("a", 1, "[\"*:80\",\"10.0.0.1:90\"]");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_SERVER struct server *server = server_at(cases[i].name, cases[i].cookie, cases[i].listens);
		struct error err = { 0 };

		assert_int_equal(state_check(&s, server, &err), cases[i].ret);
		assert_non_null(strstr(err.text, cases[i].word));
		if (cases[i].ret)
			assert_non_null(strstr(err.text, cases[i].name));
	}
	assert_int_equal(state_check(&s, s.servers[5], NULL), 0);
	state_clear(&s);
}

static void the_only_one(void **state)
{
	struct state s = { 0 };
	struct error err;

	(void)state;
	assert_int_equal(state_find_only(&s, &err), -ENOENT);
	s.servers[9] = server_at("a", 1, "[\"*:80\"]");
	assert_int_equal(state_find_only(&s, &err), 9);
	s.servers[3] = server_at("b", 1, "[\"*:81\"]");
	assert_int_equal(state_find_only(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "b, a"));
	assert_int_equal(state_find(&s, "a"), 9);
	assert_int_equal(state_find(&s, "c"), -ENOENT);
	state_clear(&s);
}

/* A directory of its own for each test. */
static int make_dir(void **state)
{
	char *dir = strdup("/tmp/weir-test-XXXXXX");

	*state = mkdtemp(dir);
	return *state ? 0 : -1;
}

static void in_dir(const char *dir, const char *name, char path[static 256])
{
	snprintf(path, 256, "%s/%s", dir, name);
}

static int remove_dir(void **state)
{
	char path[256];

	in_dir(*state, "state.json", path);
	unlink(path);
	in_dir(*state, "state.json.new", path);
	rmdir(path);
	if (rmdir(*state))
		return -1;
	free(*state);
	return 0;
}

static void write_file(const char *dir, const char *text)
{
	char path[256];
	FILE *file;

	in_dir(dir, "state.json", path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void save_and_load(void **state)
{
	struct state saved = { 0 }, loaded = { 0 };
	CLEANUP_FREE char *text = NULL;
	CLEANUP_JSON json_t *json = NULL;
	char path[256];
	struct stat st;

	saved.servers[0] = server_at("first", 1, "[\"*:1\"]");
	saved.servers[63] = make_server(FULL);
	assert_int_equal(state_save(&saved, *state, NULL), 0);
	assert_int_equal(state_load(&loaded, *state, NULL), 0);
	json = server_to_json(loaded.servers[63]);
	text = json_dumps(json, JSON_COMPACT);
	assert_string_equal(text, FULL);
	assert_string_equal(loaded.servers[0]->name, "first");
	in_dir(*state, "state.json", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	state_clear(&saved);
	state_clear(&loaded);
}

static void no_file_is_empty(void **state)
{
	struct state loaded = { 0 };

	assert_int_equal(state_load(&loaded, *state, NULL), 0);
	assert_int_equal(state_find_only(&loaded, NULL), -ENOENT);
}

/* A save that fails leaves the file of before: here the place of the new file is taken by a directory. */
static void failed_save_changes_nothing(void **state)
{
	struct state before = { 0 }, after = { 0 }, loaded = { 0 };
	char path[256];

	before.servers[1] = server_at("before", 1, "[\"*:1\"]");
	after.servers[1] = server_at("after", 1, "[\"*:1\"]");
	assert_int_equal(state_save(&before, *state, NULL), 0);
	in_dir(*state, "state.json.new", path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(state_save(&after, *state, NULL) < 0);
	assert_int_equal(state_load(&loaded, *state, NULL), 0);
	assert_string_equal(loaded.servers[1]->name, "before");
	state_clear(&before);
	state_clear(&after);
	state_clear(&loaded);
}

static void bad_files(void **state)
{
	static const char *const cases[] = {
		"",
		"{",
		"{\"version\":1}",
		"{\"version\":1,\"servers\":null}",
		"{\"version\":1,\"servers\":[1]}",
		"{\"version\":2,\"servers\":{}}",
		"{\"version\":1,\"servers\":{},\"more\":1}",
		"{\"version\":1,\"servers\":{\"64\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}}",
		"{\"version\":1,\"servers\":{\"-1\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}}",
		"{\"version\":1,\"servers\":{\"0\":{\"name\":\"a\",\"listen\":[\"*:1\"]},\"1\":{\"name\":\"a\",\"listen\":[\"*:2\"]}}}",
		"{\"version\":1,\"servers\":{\"0\":{\"name\":\"a\",\"listen\":[\"*:1\"]},\"1\":{\"name\":\"b\"}}}",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct state loaded = { 0 };
		struct error err = { 0 };

		write_file(*state, cases[i]);
		assert_true(state_load(&loaded, *state, &err) < 0);
		assert_non_null(strstr(err.text, "state.json"));
		for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
			assert_null(loaded.servers[slot]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_round_trip),
		cmocka_unit_test(defaults),
		cmocka_unit_test(bad_servers),
		cmocka_unit_test(limits),
		cmocka_unit_test(limit_lists),
		cmocka_unit_test(conflicts),
		cmocka_unit_test(the_only_one),
		cmocka_unit_test_setup_teardown(save_and_load, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(no_file_is_empty, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(failed_save_changes_nothing, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(bad_files, make_dir, remove_dir),
	};

	return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
