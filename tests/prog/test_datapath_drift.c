/* SPDX-License-Identifier: GPL-2.0 */
/* What is in the maps against what should be there: what differs is written and counted, and nothing else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "datapath_fixture.h"

#define SLOT 3

static const struct datapath_servers only_ours = { .has[SLOT] = true };

static const struct datapath_changes *changes(struct datapath *dp, enum datapath_part part)
{
	return &datapath_written(dp)->of[part];
}

static struct datapath_cidr network(__u8 first, __u8 bits)
{
	return (struct datapath_cidr){ .address = { [10] = 0xff, 0xff, first }, .bits = 96 + bits };
}

/* --- tries and hashes */

static void test_networks(void **state)
{
	struct datapath *dp = *state;
	struct datapath_cidr some[] = { network(10, 8), network(20, 8), network(20, 8), network(30, 16) };
	struct weir_proxy_key key = { .prefixlen = 32 + 96 + 8, .server = SLOT, .address = { [10] = 0xff, 0xff, 20 } };
	const __u8 two = 2;

	done(datapath_balancers_set(dp, SLOT, some, 4, &error));
	assert_changes(dp, DATAPATH_balancers, 3, 0, 0);
	done(datapath_balancers_set(dp, SLOT, some, 4, &error));
	assert_changes(dp, DATAPATH_balancers, 3, 0, 0);
	assert_int_equal(bpf_map_update_elem(dp->maps.balancers, &key, &two, BPF_ANY), 0);
	done(datapath_balancers_set(dp, SLOT, some, 4, &error));
	assert_changes(dp, DATAPATH_balancers, 3, 1, 0);
	assert_int_equal(bpf_map_delete_elem(dp->maps.balancers, &key), 0);
	done(datapath_balancers_set(dp, SLOT, some, 3, &error));
	assert_changes(dp, DATAPATH_balancers, 4, 1, 1);
	/* What stands behind the prefix is nothing to the trie. */
	some[0].address[15] = 9;
	done(datapath_balancers_set(dp, SLOT, some, 3, &error));
	assert_changes(dp, DATAPATH_balancers, 4, 1, 1);
}

/* Two sets without a common network, each of which fills the map. */
static void test_full_map(void **state)
{
	CLEANUP_FREE struct datapath_cidr *networks = calloc(WEIR_MAX_PROXIES, sizeof(*networks));
	struct datapath *dp = *state;

	for (int set = 0; set < 2; set++) {
		for (int i = 0; i < WEIR_MAX_PROXIES; i++) {
			networks[i] = network(set + 1, 24);
			networks[i].address[13] = i >> 8;
			networks[i].address[14] = i;
		}
		done(datapath_balancers_set(dp, SLOT, networks, WEIR_MAX_PROXIES, &error));
		assert_changes(dp, DATAPATH_balancers, (set + 1) * WEIR_MAX_PROXIES, 0, set * WEIR_MAX_PROXIES);
	}
	done(datapath_balancers_set(dp, SLOT, networks, WEIR_MAX_PROXIES, &error));
	assert_changes(dp, DATAPATH_balancers, 2 * WEIR_MAX_PROXIES, 0, WEIR_MAX_PROXIES);
	/* One more than there is room for is refused, and said. */
	networks[0] = network(9, 24);
	assert_true(datapath_balancers_set(dp, SLOT + 1, networks, 1, &error) < 0);
	assert_non_null(strstr(error.text, "balancers"));
}

static void test_equal_keys(void **state)
{
	struct datapath *dp = *state;
	const struct datapath_group groups[] = { { 5, 1 }, { 6, 1 }, { 5, 2 } };
	struct weir_subject_key key = { .server = SLOT, .subject = 5 };
	__u32 bit;

	for (int i = 0; i < 3; i++)
		done(datapath_groups_set(dp, SLOT, groups, 3, &error));
	assert_changes(dp, DATAPATH_groups, 2, 0, 0);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.groups, &key, &bit), 0);
	assert_int_equal(bit, 2);
}

static void test_many_tokens(void **state)
{
	enum {
		MANY = 5000
	};
	struct datapath *dp = *state;
	struct datapath_token *tokens = calloc(MANY, sizeof(*tokens));
	struct weir_subject_key key = { .server = SLOT, .subject = 4321 };

	for (int i = 0; i < MANY; i++)
		tokens[i] = (struct datapath_token){ .subject = i + 1, .principal.user = MANY - i };
	done(datapath_tokens_set(dp, SLOT, tokens, MANY, &error));
	assert_changes(dp, DATAPATH_tokens, MANY, 0, 0);
	assert_int_equal(bpf_map_delete_elem(dp->maps.tokens, &key), 0);
	tokens[7].principal.user = 1;
	done(datapath_tokens_set(dp, SLOT, tokens, MANY - 10, &error));
	assert_changes(dp, DATAPATH_tokens, MANY + 1, 1, 10);
	free(tokens);
}

/* --- overrides */

static void test_overrides(void **state)
{
	struct datapath *dp = *state;
	struct datapath_slots slots = {};
	struct datapath_override wanted[] = {
		{ WEIR_BUILTIN_USER, 7, { .set = true, .per_ns = WEIR_QPS, .burst = 3 } },
		{ WEIR_BUILTIN_USER, 8, { .set = true, .per_ns = WEIR_QPS, .burst = 4 } },
	};
	struct weir_override_key key = { .limit = weir_limit_index(SLOT, WEIR_BUILTIN_USER), .subject = 8 };
	struct weir_override_key others = { .limit = weir_limit_index(SLOT, WEIR_BUILTIN_TOTAL), .subject = 0 };
	struct weir_amount before, after;

	datapath_slots_add(&slots, WEIR_BUILTIN_USER);
	done(limit_set(dp, SLOT, WEIR_BUILTIN_USER, WEIR_QPS, 10, 0));
	done(datapath_overrides_set(dp, SLOT, &slots, wanted, 2, &error));
	done(datapath_overrides_set(dp, SLOT, &slots, wanted, 2, &error));
	assert_changes(dp, DATAPATH_overrides, 2, 0, 0);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.overrides, &key, &before), 0);

	/* The rate before stays known: buckets may have been used under it last. */
	wanted[1].amount.burst = 5;
	done(datapath_overrides_set(dp, SLOT, &slots, wanted, 2, &error));
	assert_changes(dp, DATAPATH_overrides, 2, 1, 0);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.overrides, &key, &after), 0);
	assert_int_equal(after.history.rates[0].burst, 5);
	assert_memory_equal(&after.history.rates[1], &before.history.rates[0], sizeof(struct weir_rate));

	/* Those of a limit that is to go are left to that. */
	assert_int_equal(bpf_map_update_elem(dp->maps.overrides, &others, &before, BPF_ANY), 0);
	done(datapath_overrides_set(dp, SLOT, &slots, wanted, 1, &error));
	assert_changes(dp, DATAPATH_overrides, 2, 1, 1);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.overrides, &others, &after), 0);
}

/* --- limits */

static void test_limits_that_are_kept(void **state)
{
	struct datapath *dp = *state;
	struct datapath_slots slots = {};

	datapath_slots_add(&slots, WEIR_BUILTIN_USER);
	for (int i = 0; i < 2; i++) {
		done(limit_set(dp, SLOT, WEIR_BUILTIN_USER, WEIR_QPS, 10, 0));
		done(limit_set(dp, SLOT, WEIR_BUILTIN_NAMESPACE, WEIR_QPS, 10, 0));
	}
	assert_changes(dp, DATAPATH_limits, 2, 0, 0);
	assert_changes(dp, DATAPATH_buckets, 2, 0, 0);
	done(datapath_limits_keep(dp, SLOT, &slots, &error));
	done(datapath_limits_keep(dp, SLOT, &slots, &error));
	assert_changes(dp, DATAPATH_limits, 2, 0, 1);
}

/* --- rules */

static __u32 generation(struct datapath *dp)
{
	struct weir_server server;
	__u32 slot = SLOT;

	assert_int_equal(bpf_map_lookup_elem(dp->maps.servers, &slot, &server), 0);
	return server.generation;
}

static void test_rules_that_are_right(void **state)
{
	struct datapath *dp = *state;
	static struct weir_rules rules = { .dimensions = 1 };
	const struct datapath_vector vectors[] = { { .dimension = WEIR_DIMENSION_CALL, .value = 1 },
						   { .dimension = WEIR_DIMENSION_CALL, .value = 2 } };
	struct weir_vector_key key = { .generation = 1, .server = SLOT, .dimension = WEIR_DIMENSION_CALL, .value = 2 };
	struct weir_rules_key old = { .server = SLOT, .generation = 9 };

	for (int i = 0; i < 2; i++)
		done(datapath_rules_set(dp, SLOT, &rules, vectors, 2, NULL, 0, &error));
	assert_int_equal(generation(dp), 1);
	assert_changes(dp, DATAPATH_vectors, 2, 0, 0);
	assert_int_equal(bpf_map_delete_elem(dp->maps.vectors, &key), 0);
	done(datapath_rules_set(dp, SLOT, &rules, vectors, 2, NULL, 0, &error));
	assert_int_equal(generation(dp), 2);
	assert_changes(dp, DATAPATH_vectors, 3, 0, 0);
	/* What is left of another generation goes, and the one in force stays. */
	assert_int_equal(bpf_map_update_elem(dp->maps.rules, &old, &rules, BPF_ANY), 0);
	done(datapath_rules_set(dp, SLOT, &rules, vectors, 2, NULL, 0, &error));
	assert_int_equal(generation(dp), 2);
	assert_changes(dp, DATAPATH_rules, 1, 0, 1);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.rules, &old, &rules), -ENOENT);
	done(datapath_rules_set(dp, SLOT, NULL, NULL, 0, NULL, 0, &error));
	assert_int_equal(generation(dp), 0);
	assert_changes(dp, DATAPATH_vectors, 3, 0, 2);
}

/* --- what is shared */

static void test_shared(void **state)
{
	struct datapath *dp = *state;
	__u64 subject = datapath_subject(dp, WEIR_NAME_USER, "alice", 5);
	struct weir_settings none = {}, settings;
	struct weir_listener listener = { .port = 80 };
	__u32 zero = 0, stranger = SLOT + 1;
	__u64 answers = changes(dp, DATAPATH_answers)->changed;

	done(datapath_shared_sync(dp, &only_ours, &error));
	assert_int_equal(changes(dp, DATAPATH_answers)->changed, answers);
	assert_changes(dp, DATAPATH_pins, 0, 0, 0);
	assert_int_equal(bpf_map_update_elem(dp->maps.settings, &zero, &none, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(dp->maps.listeners, &listener, &stranger, BPF_ANY), 0);
	assert_int_equal(unpin("conns"), 0);
	done(datapath_shared_sync(dp, &only_ours, &error));
	assert_changes(dp, DATAPATH_settings, 0, 1, 0);
	assert_changes(dp, DATAPATH_listeners, 0, 0, 1);
	assert_changes(dp, DATAPATH_pins, 1, 0, 0);
	assert_true(pinned("conns"));
	assert_int_equal(bpf_map_lookup_elem(dp->maps.settings, &zero, &settings), 0);
	assert_int_equal(settings.abi_version, WEIR_ABI_VERSION);
	assert_int_equal(datapath_subject(dp, WEIR_NAME_USER, "alice", 5), subject);
}

static void test_links_that_came_off(void **state)
{
	struct datapath *dp = *state;

	done(datapath_links_sync(dp, NULL, &error));
	assert_changes(dp, DATAPATH_links, 1, 0, 0);
	if (pinned("link-1-ingress"))
		assert_int_equal(detach_pinned("link-1-ingress"), 0);
	else
		assert_int_equal(inside("tc qdisc del dev lo clsact"), 0);
	assert_false(runs(dp, "lo", ATTACH_INGRESS));
	done(datapath_links_sync(dp, NULL, &error));
	assert_changes(dp, DATAPATH_links, 1, 1, 0);
	assert_true(runs(dp, "lo", ATTACH_INGRESS));
	done(datapath_links_sync(dp, NULL, &error));
	assert_changes(dp, DATAPATH_links, 1, 1, 0);
}

/* Nothing is put up, or taken for lost, that has no pin only because others have mounted or unmounted something. */
static void test_bpffs_is_unmounted(void **state)
{
	const char *const cgroups[] = { "/sys/fs/cgroup" };
	struct datapath *dp = *state;
	int ret;

	done(datapath_links_sync(dp, NULL, &error));
	assert_int_equal(mount("none", "/sys/fs", "tmpfs", 0, NULL), 0);
	assert_int_equal(datapath_links_sync(dp, NULL, &error), -ENOENT);
	assert_non_null(strstr(error.text, "is on no bpffs any more"));
	assert_int_equal(datapath_hold_sync(dp, cgroups, 1, &error), -ENOENT);
	assert_non_null(strstr(error.text, "is on no bpffs any more"));
	assert_int_equal(umount("/sys/fs"), 0);
	assert_true(runs(dp, "lo", ATTACH_INGRESS));
	done(datapath_links_sync(dp, NULL, &error));
	assert_changes(dp, DATAPATH_links, 1, 0, 0);
	assert_changes(dp, DATAPATH_pins, 0, 0, 0);
	/* A bpffs is mounted again, and the links of the one before go, a moment after it. */
	agent_dies(); /* or this test has a descriptor of it */
	assert_int_equal(umount2("/sys/fs/bpf", MNT_DETACH), 0);
	for (int tries = 0; (ret = datapath_links_sync(dp, NULL, &error)) == -EEXIST && tries < 100; tries++)
		usleep(50000);
	done(ret);
	assert_changes(dp, DATAPATH_pins, 1, 0, 0);
	assert_true(runs(dp, "lo", ATTACH_INGRESS));
	assert_true(pinned("link-1-ingress") || pinned("clsact-1"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, datapath_setup, datapath_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_networks),
		TEST(test_full_map),
		TEST(test_equal_keys),
		TEST(test_many_tokens),
		TEST(test_overrides),
		TEST(test_limits_that_are_kept),
		TEST(test_rules_that_are_right),
		TEST(test_shared),
		TEST(test_links_that_came_off),
		TEST(test_bpffs_is_unmounted),
	};

	return cmocka_run_group_tests_name("datapath_drift", tests, namespaces_setup, NULL);
}
