/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/rate.h"
#include "saved/saved.h"

#define FULL                                                                                                                                                                                                                                                                              \
	"{\"name\":\"api\",\"listen\":[\"*:80\",\"[2001:db8::1]:443\"],\"netns\":\"/run/netns/a\",\"netns_cookie\":17,"                                                                                                                                                                   \
	"\"cgroup\":\"/sys/fs/cgroup\",\"trusted_proxies\":[\"10.0.0.0/8\"],\"proxy_protocol\":[\"192.0.2.0/24\"],\"interfaces\":[\"eth0\",\"lo\"],"                                                                                                                                      \
	"\"loopback\":\"close\",\"framing\":\"pass\",\"paths\":\"nginx\",\"namespace_from\":\"prefix=/t/u/\","                                                                                                                                                                            \
	"\"hold\":\"drop\",\"when_full\":\"closed\",\"inside\":\"see\",\"inside_share\":5,\"write_memory\":true,\"hold_max\":7,\"refusals\":\"plain\",\"xdp\":\"native\",\"syn_cookies\":\"xdp\",\"max_retry_after\":60,\"keys\":100,\"dry_run\":true,\"paused\":true,\"draining\":true," \
	"\"identity\":{\"user_header\":\"x-user\",\"group_header\":\"x-group\",\"exempt_groups\":[\"ops\",\"dev\"],"                                                                                                                                                                      \
	"\"exempt_users\":[\"root\",\"2001:db8::/64\"],\"token_file\":\"/etc/t\",\"address_file\":null,"                                                                                                                                                                                  \
	"\"addresses\":[\"10.0.0.0/8,ann\"],\"new_subjects\":\"0.5:7\"},\"limits\":["                                                                                                                                                                                                     \
	"{\"name\":\"user\",\"qps\":\"0.5\",\"burst\":10,"                                                                                                                                                                                                                                \
	"\"overrides\":[{\"subject\":\"2001:db8::/64\",\"qps\":\"1000000000\",\"burst\":0}],"                                                                                                                                                                                             \
	"\"mode\":\"enforce\",\"keys\":5},"                                                                                                                                                                                                                                               \
	"{\"name\":\"slow\",\"key\":\"namespace,user\",\"number\":17,\"in_flight\":2,"                                                                                                                                                                                                    \
	"\"rules\":[{\"groups\":[\"qa\"],\"verbs\":[\"list\"]}],\"mode\":\"dry-run\",\"keys\":0}],"                                                                                                                                                                                       \
	"\"last_number\":18,\"priority_levels\":[{\"name\":\"free\",\"exempt\":true},"                                                                                                                                                                                                    \
	"{\"name\":\"low\",\"shares\":30,\"number\":18}],"                                                                                                                                                                                                                                \
	"\"flow_schemas\":[{\"name\":\"s\",\"level\":\"low\",\"precedence\":7,\"distinguisher\":\"ByUser\","                                                                                                                                                                              \
	"\"rules\":[{\"resources\":[\"pods\"]}]}],\"concurrency\":50,\"list_width\":4,\"list_object_bytes\":250,"                                                                                                                                                                         \
	"\"exempt\":[{\"paths\":[\"/metrics\"]}],\"groups\":[\"\",\"qa\"]}"

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
	assert_int_equal(server->syn_cookies, SYN_COOKIES_XDP);
	assert_int_equal(server->inside, INSIDE_SEE);
	assert_true(server->limits[0].amount.per_ns == WEIR_QPS / 2);
	assert_int_equal(server->limits[0].keys, 5);
	assert_int_equal(limit_slot(&server->limits[0]), WEIR_BUILTIN_USER);
	assert_int_equal(limit_slot(&server->limits[1]), WEIR_BUILTIN_LIMITS + 17);
	assert_int_equal(server->limits[1].kind, WEIR_LIMIT_IN_FLIGHT);
	assert_int_equal(server->limits[1].key, WEIR_KEY_NAMESPACE | WEIR_KEY_USER);
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
	assert_int_equal(server->when_full, FULL_KNOWN);
	assert_int_equal(server->inside, INSIDE_OFF);
	assert_false(server->dry_run || server->paused || server->draining);
	assert_int_equal(server->concurrency, 600);
	assert_int_equal(server->list_width, 0);
	assert_int_equal(server->list_object_bytes, 0);
}

/* What versions without the default have saved says nothing, and stays what it was. Who attaches says nothing, and gets the default. */
static void looked_into_by_default(void **state)
{
	static const struct {
		const char *given;
		enum inside_mode read, attached;
	} cases[] = {
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"]}", INSIDE_OFF, INSIDE_AUTO },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"inside\":\"off\"}", INSIDE_OFF, INSIDE_OFF },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"inside\":\"hold\"}", INSIDE_HOLD, INSIDE_HOLD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_JSON json_t *json = json_loads(cases[i].given, 0, NULL);
		CLEANUP_SERVER struct server *read = make_server(cases[i].given), *attached = NULL;
		CLEANUP_JSON json_t *chosen = NULL;

		assert_int_equal(read->inside, cases[i].read);
		server_attach_defaults(json);
		assert_int_equal(server_from_json(json, &attached, NULL), 0);
		assert_int_equal(attached->inside, cases[i].attached);
		chosen = server_settings_chosen(attached);
		assert_int_equal(!!json_object_get(chosen, "inside"), attached->inside != INSIDE_OFF);
	}
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
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"inside\":\"peek\"}", "peek" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"refusals\":\"loud\"}", "loud" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"xdp\":\"fast\"}", "fast" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"syn_cookies\":\"tc\"}", "tc" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"max_retry_after\":3601}", "max_retry_after" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"inside_share\":101}", "inside_share" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"hold_max\":26}", "hold_max" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"keys\":-1}", "keys" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"keys\":16777217}", "keys" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"dry_run\":1}", "dry_run" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"limits\":{}}", "limits" },
#define WITH(members) "{\"name\":\"a\",\"listen\":[\"*:80\"]," members "}"
#define LIMIT(name, number) "{\"name\":\"" name "\",\"key\":\"user\",\"in_flight\":1,\"number\":" number "}"
		{ WITH("\"limits\":[{\"name\":\"user\",\"qps\":\"5\"}]"), "burst" },
		{ WITH("\"limits\":[{\"name\":\"user\"}]"), "in_flight or deny are missing" },
		{ WITH("\"limits\":[" LIMIT("x", "1") "," LIMIT("x", "2") "]"), "twice" },
		{ WITH("\"limits\":[" LIMIT("x", "1") "," LIMIT("y", "253") "]"), "place" },
		{ WITH("\"exempt\":[{\"path\":[\"/x\"]}]"), "path" },
		{ WITH("\"concurrency\":-1"), "concurrency" },
		{ WITH("\"list_width\":11"), "list_width" },
		{ WITH("\"list_object_bytes\":1073741825"), "list_object_bytes" },
		{ WITH("\"flow_schemas\":[{\"name\":\"s\",\"level\":\"low\",\"rules\":[]}]"),
		  "no priority level \"low\"" },
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

static void limit_lists(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"]}");

	(void)state;
	for (__u32 i = 0; i < 100; i++) {
		struct limit limit = { .number = i + 1 };

		snprintf(limit.name, sizeof(limit.name), "limit%u", i);
		assert_int_equal(server_limit_add(server, &limit), 0);
	}
	assert_int_equal(server_limit(server, "limit63")->number, 64);
	assert_null(server_limit(server, "limit100"));
	for (int i = 0; i < 100; i += 2) {
		char name[32];

		snprintf(name, sizeof(name), "limit%d", i);
		server_limit_remove(server, server_limit(server, name));
	}
	assert_int_equal(server->n_limits, 50);
	assert_null(server_limit(server, "limit62"));
	assert_int_equal(server_limit(server, "limit63")->number, 64);
}

/* A place in the kernel is used again only when all others have been, and then under another number. */
static void numbers(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"]}");
	const __u32 room = WEIR_SERVER_LIMITS - WEIR_BUILTIN_LIMITS;
	char name[SLOT_NAME_SIZE];
	struct error err;
	__u32 slot;

	(void)state;
	server->last_number = 1000;
	assert_int_equal(server_limit_add(server, &(struct limit){ .name = "user" }), 0);
	for (__u32 i = 0; i < room; i++) {
		struct limit limit = { 0 };

		snprintf(limit.name, sizeof(limit.name), "limit%u", i);
		assert_int_equal(server_limit_add(server, &limit), 0);
		assert_int_equal(server_give_numbers(server, &err), 0);
		assert_int_equal(server->limits[server->n_limits - 1].number, 1001 + i);
	}
	assert_int_equal(server->limits[0].number, 0);
	assert_int_equal(server_limit_add(server, &(struct limit){ .name = "more" }), 0);
	assert_int_equal(server_give_numbers(server, &err), -ENOSPC);
	slot = limit_slot(server_limit(server, "limit5"));
	server_slot_name(server, slot, name);
	assert_string_equal(name, "limit5");
	server_limit_remove(server, server_limit(server, "limit5"));
	assert_int_equal(server_give_numbers(server, &err), 0);
	assert_int_equal(limit_slot(server_limit(server, "more")), slot);
	assert_int_equal(server_limit(server, "more")->number, 1001 + room + 5);
}

/* A group that rules go on naming keeps its bit, whatever becomes of the others. */
static void groups(void **state)
{
	CLEANUP_SERVER struct server *server = make_server(
		"{\"name\":\"a\",\"listen\":[\"*:80\"],\"identity\":{\"exempt_groups\":[\"ops\"]},"
		"\"exempt\":[{\"groups\":[\"b\",\"ops\"]}],\"limits\":["
		"{\"name\":\"x\",\"key\":\"user\",\"in_flight\":1,\"rules\":[{\"groups\":[\"c\",\"b\"]}]},"
		"{\"name\":\"y\",\"key\":\"group\",\"overrides\":[{\"subject\":\"d\",\"in_flight\":1}]}]}");
	struct texts *named = &server->identity.rule_groups;

	(void)state;
	assert_int_equal(server_name_groups(server, NULL), 1);
	assert_int_equal(named->n, 3);
	assert_string_equal(named->items[0], "b");
	assert_string_equal(named->items[1], "c");
	assert_string_equal(named->items[2], "d");
	assert_int_equal(server_name_groups(server, NULL), 0);
	server_limit_remove(server, server_limit(server, "x"));
	assert_int_equal(server_name_groups(server, NULL), 1);
	assert_string_equal(named->items[0], "b");
	assert_string_equal(named->items[1], "");
	assert_string_equal(named->items[2], "d");
}

static void exempt(struct server *server, const char *array)
{
	CLEANUP_JSON json_t *groups = json_loads(array, 0, NULL);

	texts_clear(&server->identity.exempt_groups);
	assert_int_equal(texts_from_json(groups, "exempt_groups", copy_text, &server->identity.exempt_groups, NULL), 0);
}

/* A group that becomes exempt has a place among the exempt ones only, and nobody keeps a place that these need. */
static void groups_become_exempt(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"],\"limits\":["
							   "{\"name\":\"y\",\"key\":\"group\",\"overrides\":["
							   "{\"subject\":\"b\",\"in_flight\":1},"
							   "{\"subject\":\"c\",\"in_flight\":1}]}]}");
	struct texts *named = &server->identity.rule_groups;
	char many[WEIR_GROUPS_MAX * 8] = "[\"x\"";

	(void)state;
	assert_int_equal(server_name_groups(server, NULL), 1);
	exempt(server, "[\"b\"]");
	assert_int_equal(server_name_groups(server, NULL), 1);
	assert_string_equal(named->items[0], "");
	assert_string_equal(named->items[1], "c");
	for (int i = 0; i < WEIR_GROUPS_MAX - 3; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), ",\"x%d\"", i);
	strncat(many, "]", sizeof(many) - strlen(many) - 1);
	exempt(server, many);
	assert_int_equal(server_name_groups(server, NULL), -E2BIG);
	exempt(server, "[\"x\"]");
	assert_int_equal(server_name_groups(server, NULL), 1);
}

static void too_many_groups(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"]}");
	struct limit limit = { .name = "g", .key = WEIR_KEY_GROUP };
	struct datapath_amount amount = { .set = true };
	struct error err = { 0 };
	char name[16];

	(void)state;
	for (int i = 0; i < 127; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		assert_int_equal(limit_override_add(&limit, name, &amount), 0);
	}
	assert_int_equal(server_limit_add(server, &limit), 0);
	assert_int_equal(server_name_groups(server, &err), -E2BIG); /* system:masters is exempt */
	assert_non_null(strstr(err.text, "127"));
	limit_override_remove(&server->limits[0], &server->limits[0].overrides[3]);
	assert_true(server_name_groups(server, NULL) >= 0);
	assert_int_equal(server->identity.rule_groups.n, 126);
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
	s.servers[3]->draining = true;
	assert_int_equal(state_find_only(&s, &err), 9);
	s.servers[9]->draining = true;
	assert_true(state_find_only(&s, &err) >= 0);
	assert_int_equal(state_find(&s, "a"), 9);
	assert_int_equal(state_find(&s, "c"), -ENOENT);
	state_clear(&s);
}

/* A directory of its own for each test. */
static int make_dir(void **state)
{
	char *dir = strdup(P_tmpdir "/weir-test-XXXXXX");

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

/* Limits were a flat list then. */
static void version_before(void **state)
{
	struct state loaded = { 0 };
	const struct limit *user;

	write_file(*state, "{\"version\":1,\"servers\":{\"5\":{\"name\":\"a\",\"listen\":[\"*:1\"],\"limits\":["
			   "{\"type\":\"user\",\"subject\":\"alice\",\"qps\":\"7\",\"burst\":1,\"keys\":0},"
			   "{\"type\":\"user\",\"subject\":null,\"qps\":\"0.5\",\"burst\":3,\"keys\":64},"
			   "{\"type\":\"namespace\",\"subject\":\"dev\",\"qps\":\"8\",\"burst\":2,\"keys\":0}]}}}");
	assert_int_equal(state_load(&loaded, *state, NULL), 0);
	assert_int_equal(loaded.servers[5]->n_limits, 2);
	user = server_limit(loaded.servers[5], "user");
	assert_true(user->amount.set && user->amount.per_ns == WEIR_QPS / 2 && user->amount.burst == 3);
	assert_int_equal(user->keys, 64);
	assert_true(limit_override(user, "alice")->amount.per_ns == 7 * WEIR_QPS);
	assert_false(server_limit(loaded.servers[5], "namespace")->amount.set);
	assert_true(limit_override(server_limit(loaded.servers[5], "namespace"), "dev")->amount.burst == 2);
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

static char *read_file(const char *dir)
{
	char path[256], *text = NULL;
	FILE *file;

	in_dir(dir, "state.json", path);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fscanf(file, "%m[^\n]", &text) == 1);
	fclose(file);
	return text;
}

/* A disk may have lost the end of it. */
static void cut_anywhere(void **state)
{
	struct state saved = { 0 }, loaded = { 0 };
	CLEANUP_FREE char *text = NULL;

	saved.servers[0] = make_server(FULL);
	assert_int_equal(state_save(&saved, *state, NULL), 0);
	text = read_file(*state);
	for (size_t length = strlen(text); length-- > 0;) {
		struct error err = { 0 };

		text[length] = '\0';
		write_file(*state, text);
		assert_true(state_load(&loaded, *state, &err) < 0);
		assert_non_null(strstr(err.text, "move it away to start with nothing"));
		assert_int_equal(state_find_only(&loaded, NULL), -ENOENT);
	}
	state_clear(&saved);
}

static void bad_files(void **state)
{
	static const char *const cases[] = {
		"",
		"{",
		"{\"version\":1}",
		"{\"version\":1,\"servers\":null}",
		"{\"version\":1,\"servers\":[1]}",
		"{\"version\":3,\"servers\":{}}",
		"{\"version\":1,\"servers\":{},\"more\":1}",
		"{\"version\":1,\"servers\":{\"64\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}}",
		"{\"version\":1,\"servers\":{\"-1\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}}",
		"{\"version\":1,\"servers\":{\"0\":{\"name\":\"a\",\"listen\":[\"*:1\"]},\"1\":{\"name\":\"a\",\"listen\":[\"*:2\"]}}}",
		"{\"version\":1,\"servers\":{\"0\":{\"name\":\"a\",\"listen\":[\"*:1\"]},\"1\":{\"name\":\"b\"}}}",
		"{\"version\":1,\"servers\":{\"0\":{\"name\":\"a\",\"listen\":[\"*:1\"]},\"00\":{\"name\":\"b\",\"listen\":[\"*:2\"]}}}",
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
		cmocka_unit_test(looked_into_by_default),
		cmocka_unit_test(defaults),
		cmocka_unit_test(bad_servers),
		cmocka_unit_test(limit_lists),
		cmocka_unit_test(numbers),
		cmocka_unit_test(groups),
		cmocka_unit_test(groups_become_exempt),
		cmocka_unit_test(too_many_groups),
		cmocka_unit_test(conflicts),
		cmocka_unit_test(the_only_one),
		cmocka_unit_test_setup_teardown(save_and_load, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(version_before, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(no_file_is_empty, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(failed_save_changes_nothing, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(cut_anywhere, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(bad_files, make_dir, remove_dir),
	};

	return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
