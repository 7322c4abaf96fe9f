/* SPDX-License-Identifier: GPL-2.0 */
/* A server in the place of what it was: of very many overrides only those that differ are written, and no other is looked at. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "datapath_fixture.h"
#include "model/key.h"
#include "rules/put.h"

#define SLOT 2
#define MANY 10000

/* A limit for each user, which all have of their own: those from `first` on. */
static struct server *server_of(int first, int n)
{
	CLEANUP_JSON json_t *overrides = json_array(), *json = NULL;
	struct server *server = NULL;
	char subject[16];

	for (int i = first; i < first + n; i++) {
		snprintf(subject, sizeof(subject), "user-%d", i);
		json_array_append_new(overrides,
				      json_pack("{s:s, s:i, s:i}", "subject", subject, "qps", 5, "burst", 10));
	}
	json = json_pack("{s:s, s:[s], s:[{s:s, s:i, s:i, s:O}]}", "name", "web", "listen", "*:80", "limits", "name",
			 "user", "qps", 1, "burst", 1, "overrides", overrides);
	done(server_from_json(json, &server, &error));
	return server;
}

static void assert_overrides(struct datapath *dp, __u64 added, __u64 changed, __u64 dropped)
{
	const struct datapath_changes *c = &datapath_written(dp)->of[DATAPATH_overrides];

	if (c->added != added || c->changed != changed || c->dropped != dropped)
		fail_msg("%llu added, %llu changed, %llu dropped", c->added, c->changed, c->dropped);
}

static struct weir_override_key key_of(struct datapath *dp, const char *user)
{
	return (struct weir_override_key){ .limit = weir_limit_index(SLOT, WEIR_BUILTIN_USER),
					   .subject = key_subject(dp, WEIR_KEY_USER, user) };
}

static void one_of_many(void **state)
{
	CLEANUP_SERVER struct server *from = server_of(0, MANY), *to = server_of(0, MANY);
	struct datapath *dp = *state;
	struct weir_override_key key = key_of(dp, "user-77"), other = key_of(dp, "user-78");
	struct weir_amount before, after;

	done(server_put_limits(dp, SLOT, from, &error));
	assert_overrides(dp, MANY, 0, 0);
	done(server_change_limits(dp, SLOT, from, to, &error));
	assert_overrides(dp, MANY, 0, 0);

	/* What others have taken away is not seen. */
	assert_int_equal(bpf_map_delete_elem(dp->maps.overrides, &other), 0);
	to->limits[0].overrides[77].amount.burst = 20;
	assert_int_equal(bpf_map_lookup_elem(dp->maps.overrides, &key, &before), 0);
	done(server_change_limits(dp, SLOT, from, to, &error));
	assert_overrides(dp, MANY, 1, 0);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.overrides, &key, &after), 0);
	assert_int_equal(after.history.rates[0].burst, 20);
	assert_memory_equal(&after.history.rates[1], &before.history.rates[0], sizeof(struct weir_rate));
	assert_int_not_equal(bpf_map_lookup_elem(dp->maps.overrides, &other, &after), 0);

	/* Whoever looks after the server finds it, and nothing else. */
	done(server_put_limits(dp, SLOT, to, &error));
	assert_overrides(dp, MANY + 1, 1, 0);
	done(server_put_limits(dp, SLOT, to, &error));
	assert_overrides(dp, MANY + 1, 1, 0);
}

static void some_come_and_go(void **state)
{
	CLEANUP_SERVER struct server *from = server_of(0, 100), *to = server_of(10, 100);
	struct datapath *dp = *state;
	struct weir_override_key first = key_of(dp, "user-0"), last = key_of(dp, "user-109");
	struct weir_amount amount;

	done(server_put_limits(dp, SLOT, from, &error));
	done(server_change_limits(dp, SLOT, from, to, &error));
	assert_overrides(dp, 110, 0, 10);
	assert_int_not_equal(bpf_map_lookup_elem(dp->maps.overrides, &first, &amount), 0);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.overrides, &last, &amount), 0);

	/* And back; nothing is left to be done by who compares it with the kernel. */
	done(server_change_limits(dp, SLOT, to, from, &error));
	assert_overrides(dp, 120, 0, 20);
	done(server_put_limits(dp, SLOT, from, &error));
	assert_overrides(dp, 120, 0, 20);
}

/* Buckets of another size are another limit's, whose overrides went with it. */
static void another_limit(void **state)
{
	CLEANUP_SERVER struct server *from = server_of(0, 5), *to = server_of(0, 5);
	struct datapath *dp = *state;

	done(server_put_limits(dp, SLOT, from, &error));
	to->limits[0].keys = 1000;
	done(datapath_limit_delete(dp, SLOT, WEIR_BUILTIN_USER, &error));
	done(server_change_limits(dp, SLOT, from, to, &error));
	assert_int_equal(datapath_written(dp)->of[DATAPATH_overrides].added, 10);
	done(server_put_limits(dp, SLOT, to, &error));
	assert_int_equal(datapath_written(dp)->of[DATAPATH_overrides].added, 10);
}

/* Until there is room for no more, and then one less: entries of another server's. */
static void fill_but(struct datapath *dp, int n)
{
	struct weir_override_key key = { .limit = weir_limit_index(SLOT + 1, WEIR_BUILTIN_USER) };
	struct weir_amount amount = {};

	do
		key.subject++;
	while (!bpf_map_update_elem(dp->maps.overrides, &key, &amount, BPF_NOEXIST));
	while (n--) {
		key.subject--;
		assert_int_equal(bpf_map_delete_elem(dp->maps.overrides, &key), 0);
	}
}

static void assert_only(struct datapath *dp, int first, int n)
{
	struct weir_amount amount;
	char user[16];

	for (int i = 0; i < 300; i++) {
		bool there = i >= first && i < first + n;
		struct weir_override_key key;

		snprintf(user, sizeof(user), "user-%d", i);
		key = key_of(dp, user);
		assert_int_equal(bpf_map_lookup_elem(dp->maps.overrides, &key, &amount) == 0, there);
	}
}

/* There is room for what is wanted, and not for what was as well. */
static void no_room_for_both(void **state)
{
	CLEANUP_SERVER struct server *from = server_of(0, 100), *to = server_of(100, 100), *moved = server_of(0, 100);
	struct datapath *dp = *state;

	fill_but(dp, 150);
	done(server_put_limits(dp, SLOT, from, &error));
	done(server_change_limits(dp, SLOT, from, to, &error));
	assert_only(dp, 100, 100);
	/* What the kernel has is looked at. */
	done(server_put_limits(dp, SLOT, from, &error));
	assert_only(dp, 0, 100);
	/* A limit that is gone had them. */
	strcpy(moved->limits[0].name, "namespace");
	done(server_change_limits(dp, SLOT, from, moved, &error));
	assert_only(dp, 0, 0);
	assert_true(datapath_override_exists(dp, weir_limit_index(SLOT, WEIR_BUILTIN_NAMESPACE),
					     key_of(dp, "user-99").subject));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, datapath_setup, datapath_teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_of_many),
		TEST(some_come_and_go),
		TEST(another_limit),
		TEST(no_room_for_both),
	};

	return cmocka_run_group_tests_name("changes", tests, namespaces_setup, NULL);
}
