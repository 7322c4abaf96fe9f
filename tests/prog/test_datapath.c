/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel side on a real kernel: maps, pins, and what the agent asks of them. Everything happens in a network
 * namespace and a mount namespace of the test's own; the test stays outside the former, as an agent would.
 */
#include <errno.h>
#include <string.h>

#include "weir/conn/conn.h"

#include "datapath/private.h"
#include "datapath_fixture.h"
#include "sys/pins.h"

static const __u8 address_any[16];
static const __u8 address_10_0_0_1[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static const __u8 address_10_0_0_2[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };

static struct datapath_listen listen_any(__u16 port)
{
	return (struct datapath_listen){ .any = true, .port = port };
}

static struct datapath_listen listen_on(const __u8 *address, __u16 port)
{
	struct datapath_listen listen = { .port = port };

	memcpy(listen.address, address, sizeof(listen.address));
	return listen;
}

static struct weir_port port_of(struct datapath *dp, __u32 port)
{
	struct weir_port entry = {};

	bpf_map_lookup_elem(dp->maps.ports, &port, &entry);
	return entry;
}

static bool listener_of(struct datapath *dp, const __u8 *address, __u16 port, __u32 *slot)
{
	struct weir_listener key = { .port = port };

	memcpy(key.address, address, sizeof(key.address));
	return !bpf_map_lookup_elem(dp->maps.listeners, &key, slot);
}

static bool trusted(struct datapath *dp, __u32 slot, const __u8 *address)
{
	struct weir_proxy_key key = { .prefixlen = 32 + 128, .server = slot };
	__u8 value;

	memcpy(key.address, address, sizeof(key.address));
	return !bpf_map_lookup_elem(dp->maps.proxies, &key, &value);
}

static struct weir_server server_of(struct datapath *dp, __u32 slot)
{
	struct weir_server server = {};

	assert_int_equal(bpf_map_lookup_elem(dp->maps.servers, &slot, &server), 0);
	return server;
}

/* --- opening */

static void test_mounts_bpffs_and_pins(void **state)
{
	static const char *const names[] = {
#define X(name) #name,
		DATAPATH_MAPS(X)
#undef X
			"prog-egress",
		"prog-ingress",
		"prog-hold",
		"prog-sockops",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_true(pinned("%s", names[i]));
	assert_false(pinned("works"));
}

static void test_open_takes_over(void **state)
{
	struct datapath *dp = *state, *again;
	__u64 subject = datapath_subject(dp, WEIR_NAME_USER, "alice", 5);
	struct datapath_listen listen = listen_any(80);
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 7 };

	assert_int_not_equal(datapath_subject(dp, WEIR_NAME_NAMESPACE, "alice", 5), subject);
	done(datapath_server_set(dp, 3, &server, &listen, 1, NULL, 0, &error));
	done(datapath_links_sync(dp, NULL, &error));

	again = open_datapath(0);
	assert_int_equal(datapath_subject(again, WEIR_NAME_USER, "alice", 5), subject);
	assert_int_equal(port_of(again, 80).any, 4);
	assert_int_equal(server_of(again, 3).swallow_max, 7);
	assert_true(runs(again, "lo", ATTACH_INGRESS));
	assert_true(runs(again, "lo", ATTACH_EGRESS));
	datapath_close(dp);
	*state = again;
	assert_true(runs(again, "lo", ATTACH_INGRESS));
}

static void test_open_finishes_what_was_left(void **state)
{
	struct datapath *dp = *state, *again;

	assert_int_equal(unpin("counters"), 0);
	assert_int_equal(unpin("answers"), 0);
	assert_int_equal(unpin("prog-egress"), 0);
	again = open_datapath(0);
	assert_true(pinned("counters"));
	assert_true(pinned("answers"));
	assert_true(pinned("prog-egress"));
	assert_memory_equal(again->seed, dp->seed, sizeof(dp->seed));
	datapath_close(again);
}

static void test_open_refuses_a_second_agent(void **state)
{
	(void)state;
	assert_int_equal(open_beside(), -EBUSY);
	assert_non_null(strstr(error.text, "another agent"));
}

static void test_open_refuses_another_version(void **state)
{
	struct datapath *dp = *state;
	struct weir_settings settings, other;
	char said[64];
	__u32 zero = 0;

	snprintf(said, sizeof(said), "ABI %d, this one has %d", WEIR_ABI_VERSION + 2, WEIR_ABI_VERSION);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.settings, &zero, &settings), 0);
	other = settings;
	other.abi_version = WEIR_ABI_VERSION + 2;
	assert_int_equal(bpf_map_update_elem(dp->maps.settings, &zero, &other, BPF_ANY), 0);
	assert_int_equal(try_open(0), -EPROTO);
	assert_non_null(strstr(error.text, said));
	assert_null(strchr(error.text, '\n'));
	assert_int_equal(bpf_map_update_elem(dp->maps.settings, &zero, &settings, BPF_ANY), 0);
	assert_int_equal(try_open(0), 0);
}

static void test_open_refuses_other_sizes(void **state)
{
	struct datapath *dp = *state;
	int other = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ports", 4, 16, 65536, NULL);

	assert_int_equal(try_open(2048), -EPROTO);
	assert_non_null(strstr(error.text, "holds 1024 entries, 2048 are asked for"));
	assert_int_equal(try_open(1024), 0);

	assert_int_equal(unpin("ports"), 0);
	assert_int_equal(pins_replace(other, dp->dir, "ports"), 0);
	assert_int_equal(try_open(0), -EPROTO);
	assert_non_null(strstr(error.text, "/ports was made by another version"));
	close(other);
}

static void test_open_needs_a_bpffs(void **state)
{
	struct datapath_options options = { .pin_dir = "/run/weir-test/pins", .netns_fd = test_netns };
	struct datapath *dp = NULL;

	(void)state;
	assert_int_equal(datapath_open(&dp, &options, &error), -EINVAL);
	assert_null(dp);
	assert_non_null(strstr(error.text, "/run/weir-test/pins is not on a bpffs"));
	assert_int_equal(datapath_pins_check(options.pin_dir, &error), -EINVAL);
	assert_int_equal(access("/run/weir-test", F_OK), -1);
}

/* That is not the kernel's refusal, and is mended elsewhere. */
static void test_open_needs_files(void **state)
{
	struct error err = { 0 };

	(void)state;
	assert_int_equal(datapath_load_failed(-EMFILE, &err), -EMFILE);
	assert_non_null(strstr(err.text, "LimitNOFILE"));
}

/* --- servers */

static void test_server_set_and_change(void **state)
{
	struct datapath *dp = *state;
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE | WEIR_SERVER_DRY_RUN, .swallow_max = 4096 };
	struct datapath_listen before[] = { listen_any(80), listen_on(address_10_0_0_1, 81),
					    listen_on(address_10_0_0_2, 81) };
	struct datapath_listen after[] = { listen_on(address_10_0_0_2, 81), listen_any(81), listen_any(82) };
	struct datapath_cidr proxies[] = { { .bits = 96 + 8 }, { .bits = 128 } };
	__u32 slot = 99;

	memcpy(proxies[0].address, address_10_0_0_1, 16);
	memset(proxies[0].address + 13, 0, 3);
	proxies[1].address[0] = 0xfd;
	done(datapath_server_set(dp, 5, &server, before, 3, proxies, 2, &error));
	assert_int_equal(server_of(dp, 5).flags, server.flags);
	assert_int_equal(port_of(dp, 80).any, 6);
	assert_int_equal(port_of(dp, 80).addresses, 0);
	assert_int_equal(port_of(dp, 81).any, 0);
	assert_int_equal(port_of(dp, 81).addresses, 2);
	assert_true(listener_of(dp, address_10_0_0_1, 81, &slot));
	assert_int_equal(slot, 5);
	assert_true(trusted(dp, 5, address_10_0_0_2));
	assert_true(trusted(dp, 5, proxies[1].address));
	assert_false(trusted(dp, 4, address_10_0_0_2));

	done(datapath_server_set(dp, 5, &server, after, 3, proxies, 1, &error));
	assert_int_equal(port_of(dp, 80).any, 0);
	assert_int_equal(port_of(dp, 81).any, 6);
	assert_int_equal(port_of(dp, 81).addresses, 1);
	assert_int_equal(port_of(dp, 82).any, 6);
	assert_false(listener_of(dp, address_10_0_0_1, 81, &slot));
	assert_true(listener_of(dp, address_10_0_0_2, 81, &slot));
	assert_true(trusted(dp, 5, address_10_0_0_2));
	assert_false(trusted(dp, 5, proxies[1].address));

	done(datapath_server_flags(dp, 5, WEIR_SERVER_ACTIVE | WEIR_SERVER_PAUSED, &error));
	assert_int_equal(server_of(dp, 5).flags, WEIR_SERVER_ACTIVE | WEIR_SERVER_PAUSED);
	assert_int_equal(server_of(dp, 5).swallow_max, 4096);
}

static void test_server_keeps_to_its_ports(void **state)
{
	struct datapath *dp = *state;
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE };
	struct datapath_listen first[] = { listen_any(80), listen_on(address_10_0_0_1, 81) };
	struct datapath_listen taken[] = { listen_any(90), listen_any(80) };
	struct datapath_listen taken_too[] = { listen_any(90), listen_on(address_10_0_0_1, 81) };
	struct datapath_listen beside[] = { listen_any(81), listen_on(address_10_0_0_1, 80) };
	__u32 slot;

	done(datapath_server_set(dp, 0, &server, first, 2, NULL, 0, &error));
	assert_int_equal(datapath_server_set(dp, 1, &server, taken, 2, NULL, 0, &error), -EADDRINUSE);
	assert_int_equal(datapath_server_set(dp, 1, &server, taken_too, 2, NULL, 0, &error), -EADDRINUSE);
	assert_int_equal(port_of(dp, 90).any, 0);
	assert_int_equal(server_of(dp, 1).flags, 0);

	done(datapath_server_set(dp, 1, &server, beside, 2, NULL, 0, &error));
	done(datapath_server_clear(dp, 0, &error));
	assert_int_equal(server_of(dp, 0).flags, 0);
	assert_int_equal(port_of(dp, 80).any, 0);
	assert_int_equal(port_of(dp, 80).addresses, 1);
	assert_int_equal(port_of(dp, 81).any, 2);
	assert_int_equal(port_of(dp, 81).addresses, 0);
	assert_true(listener_of(dp, address_10_0_0_1, 80, &slot));
	assert_false(listener_of(dp, address_any, 80, &slot));
}

/* --- counters and names */

static void test_counters_sum(void **state)
{
	struct datapath *dp = *state;
	__u64 counters[WEIR_REASON_COUNT], each[1024] = {}, sum = 0;
	__u32 index = 9 * WEIR_COUNTER_COUNT + WEIR_SHED;

	for (int cpu = 0; cpu < dp->cpus; cpu++)
		sum += each[cpu] = 1ULL << (33 + cpu % 8);
	assert_int_equal(bpf_map_update_elem(dp->maps.counters, &index, each, BPF_ANY), 0);
	done(datapath_counters(dp, 9, counters, &error));
	for (int i = 0; i < WEIR_REASON_COUNT; i++)
		assert_int_equal(counters[i], i == WEIR_SHED ? sum : 0);
}

/* What stands for several reasons is added to each of them. */
static void test_counters_together(void **state)
{
	struct datapath *dp = *state;
	__u64 counters[WEIR_REASON_COUNT], each[1024] = { 7 };
	__u32 users = 8 * WEIR_COUNTER_COUNT + WEIR_SEEN_AND_PASSED_USER,
	      seen = 8 * WEIR_COUNTER_COUNT + WEIR_INSIDE_SEEN;

	assert_int_equal(bpf_map_update_elem(dp->maps.counters, &users, each, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(dp->maps.counters, &seen, each, BPF_ANY), 0);
	done(datapath_counters(dp, 8, counters, &error));
	for (int i = 0; i < WEIR_REASON_COUNT; i++)
		assert_int_equal(counters[i], i == WEIR_INSIDE_SEEN		      ? 14 :
					      i == WEIR_PASSED || i == WEIR_BY_SERVER ? 7 :
											0);
	done(datapath_counters_clear(dp, 8, &error));
	done(datapath_counters(dp, 8, counters, &error));
	for (int i = 0; i < WEIR_REASON_COUNT; i++)
		assert_int_equal(counters[i], 0);
}

static void name_put(struct datapath *dp, __u64 subject, __u8 kind, const void *text, __u8 length, __u16 whole)
{
	struct weir_name name = { .kind = kind, .length = length, .whole = whole };

	memcpy(name.text, text, length);
	assert_int_equal(bpf_map_update_elem(dp->maps.names, &subject, &name, BPF_ANY), 0);
}

static const char *name_of(struct datapath *dp, __u64 subject, size_t size)
{
	static char text[600];

	memset(text, '#', sizeof(text));
	assert_int_equal(datapath_name(dp, subject, text, size), 0);
	assert_true(strlen(text) < size);
	return text;
}

static void test_names(void **state)
{
	static const __u8 ip6[16] = { 0x20, 0x01, 0x0d, 0xb8 };
	struct datapath *dp = *state;
	char text[64] = "untouched";

	name_put(dp, 1, WEIR_NAME_USER, "alice", 5, 5);
	name_put(dp, 2, WEIR_NAME_NAMESPACE, "a\x1b[2J\\\xc3", 7, 339);
	name_put(dp, 3, WEIR_NAME_ADDRESS, address_10_0_0_1, 16, 16);
	name_put(dp, 4, WEIR_NAME_ADDRESS, ip6, 16, 16);
	assert_string_equal(name_of(dp, 1, 64), "alice");
	assert_string_equal(name_of(dp, 2, 64), "a\\x1b[2J\\x5c\\xc3...");
	assert_string_equal(name_of(dp, 3, 64), "10.0.0.1");
	assert_string_equal(name_of(dp, 4, 64), "2001:db8::/64");
	assert_string_equal(name_of(dp, 1, 4), "ali");
	assert_string_equal(name_of(dp, 2, 4), "a\\x");
	assert_string_equal(name_of(dp, 2, 1), "");
	assert_int_equal(datapath_name(dp, 5, text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "untouched");
}

static void test_names_of_objects(void **state)
{
	struct weir_object_name pod = { "Pod", "shop", "web-\x1b" }, node = { .kind = "Node" }, none = {};
	struct datapath *dp = *state;

	memset(node.name, 'n', sizeof(node.name));
	name_put(dp, 1, WEIR_NAME_OBJECT, &pod, sizeof(pod), sizeof(pod));
	name_put(dp, 2, WEIR_NAME_OBJECT, &node, sizeof(node), sizeof(node));
	name_put(dp, 3, WEIR_NAME_OBJECT, &none, sizeof(none), sizeof(none));
	assert_string_equal(name_of(dp, 1, 64), "Pod/shop/web-\\x1b");
	assert_string_equal(name_of(dp, 1, 5), "Pod/");
	assert_string_equal(name_of(dp, 1, 4), "Pod");
	assert_string_equal(name_of(dp, 2, 300),
			    "Node/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...");
	assert_string_equal(name_of(dp, 3, 64), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, datapath_setup, datapath_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_mounts_bpffs_and_pins),
		TEST(test_open_takes_over),
		TEST(test_open_finishes_what_was_left),
		TEST(test_open_refuses_a_second_agent),
		TEST(test_open_refuses_another_version),
		TEST(test_open_refuses_other_sizes),
		TEST(test_open_needs_a_bpffs),
		TEST(test_open_needs_files),
		TEST(test_server_set_and_change),
		TEST(test_server_keeps_to_its_ports),
		TEST(test_counters_sum),
		TEST(test_counters_together),
		TEST(test_names),
		TEST(test_names_of_objects),
	};

	return cmocka_run_group_tests_name("datapath", tests, namespaces_setup, NULL);
}
