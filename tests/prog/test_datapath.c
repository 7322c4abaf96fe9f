/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel side on a real kernel: maps, pins, and what the agent asks of them. Everything happens in a network
 * namespace and a mount namespace of the test's own; the test stays outside the former, as an agent would.
 */
#include <errno.h>
#include <string.h>

#include "weir/conn/conn.h"

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
	assert_int_equal(access("/run/weir-test", F_OK), -1);
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

/* --- limits */

/* What the limit is by default. */
static struct weir_amount limit_of(struct datapath *dp, __u32 index)
{
	struct weir_limit limit = {};

	bpf_map_lookup_elem(dp->maps.limits, &index, &limit);
	return limit.terms.amount;
}

static struct weir_amount override_of(struct datapath *dp, __u32 index, __u64 subject)
{
	struct weir_override_key key = { .limit = index, .subject = subject };
	struct weir_amount amount = {};

	bpf_map_lookup_elem(dp->maps.overrides, &key, &amount);
	return amount;
}

/* A descriptor, or negative: the limit has no buckets. */
static int buckets_of(struct datapath *dp, __u32 index)
{
	__u32 id;

	if (bpf_map_lookup_elem(dp->maps.buckets, &index, &id))
		return -errno;
	return bpf_map_get_fd_by_id(id);
}

static void bucket_put(struct datapath *dp, __u32 index, __u64 subject, struct weir_bucket bucket)
{
	CLEANUP_CLOSE int fd = buckets_of(dp, index);
	struct weir_kept kept = { .bucket = bucket };

	kept.bucket.subject = subject;
	kept.bucket.word = weir_owned(bucket.word, subject);
	assert_true(fd >= 0);
	assert_int_equal(bpf_map_update_elem(fd, &subject, &kept, BPF_ANY), 0);
}

static bool bucket_get(struct datapath *dp, __u32 index, __u64 subject, struct weir_bucket *bucket)
{
	CLEANUP_CLOSE int fd = buckets_of(dp, index);

	struct weir_kept kept;

	if (fd < 0 || bpf_map_lookup_elem(fd, &subject, &kept))
		return false;
	*bucket = kept.bucket;
	return true;
}

static void test_limit_changes(void **state)
{
	struct datapath *dp = *state;
	__u32 index = weir_limit_index(2, WEIR_LIMIT_USER);
	struct weir_amount first, second;
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	int fd;

	assert_int_equal(buckets_of(dp, index), -ENOENT);
	done(limit_set(dp, 2, WEIR_LIMIT_USER, 5 * WEIR_QPS, 10, 100));
	first = limit_of(dp, index);
	assert_int_equal(first.flags, WEIR_LIMIT_SET);
	assert_int_equal(first.history.rates[0].burst, 10);
	fd = buckets_of(dp, index);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &length), 0);
	assert_true(info.max_entries >= 125);
	assert_true(info.max_entries < 100000);
	close(fd);

	done(limit_set(dp, 2, WEIR_LIMIT_USER, 5 * WEIR_QPS, 10, 100));
	second = limit_of(dp, index);
	assert_memory_equal(&first, &second, sizeof(first));

	done(limit_set(dp, 2, WEIR_LIMIT_USER, 6 * WEIR_QPS, 10, 0));
	second = limit_of(dp, index);
	assert_int_equal(second.history.rates[0].per_ns, 6 * WEIR_QPS);
	assert_memory_equal(&second.history.rates[1], &first.history.rates[0], sizeof(struct weir_rate));
	assert_true(second.history.rates[0].since_ns > first.history.rates[0].since_ns);

	bucket_put(dp, index, 7, (struct weir_bucket){ .word = 1 });
	done(datapath_limit_delete(dp, 2, WEIR_LIMIT_USER, &error));
	done(datapath_limit_delete(dp, 2, WEIR_LIMIT_USER, &error));
	assert_int_equal(limit_of(dp, index).flags, 0);
	assert_int_equal(buckets_of(dp, index), -ENOENT);
}

static void test_override_without_default(void **state)
{
	struct datapath *dp = *state;
	__u32 index = weir_limit_index(0, WEIR_LIMIT_NAMESPACE);
	struct weir_bucket bucket = {};

	done(override_set(dp, 0, WEIR_LIMIT_NAMESPACE, 7, WEIR_QPS, 1));
	assert_int_equal(override_of(dp, index, 7).flags, WEIR_LIMIT_SET);
	assert_int_equal(override_of(dp, index, 7).history.rates[1].burst, 0);
	bucket_put(dp, index, 7, (struct weir_bucket){ .word = 1, .shed = 3 });

	/* A default comes and goes again: the override's bucket stays, the others' do not. */
	done(limit_set(dp, 0, WEIR_LIMIT_NAMESPACE, WEIR_QPS, 9, 0));
	bucket_put(dp, index, 8, (struct weir_bucket){ .word = 1 });
	done(limit_unset(dp, 0, WEIR_LIMIT_NAMESPACE));
	assert_false(bucket_get(dp, index, 8, &bucket));
	assert_true(bucket_get(dp, index, 7, &bucket));
	assert_int_equal(bucket.shed, 3);

	done(datapath_override_delete(dp, 0, WEIR_LIMIT_NAMESPACE, 7, &error));
	assert_int_equal(override_of(dp, index, 7).flags, 0);
	assert_false(bucket_get(dp, index, 7, &bucket));
}

static void test_override_goes_on_from_the_default(void **state)
{
	struct datapath *dp = *state;
	__u32 index = weir_limit_index(0, WEIR_LIMIT_USER);
	struct weir_amount limit, override, again;

	done(limit_set(dp, 0, WEIR_LIMIT_USER, WEIR_QPS, 10, 0));
	done(override_set(dp, 0, WEIR_LIMIT_USER, 7, 2 * WEIR_QPS, 20));
	limit = limit_of(dp, index);
	override = override_of(dp, index, 7);
	assert_int_equal(override.history.rates[0].burst, 20);
	assert_memory_equal(&override.history.rates[1], &limit.history.rates[0], sizeof(struct weir_rate));

	done(override_set(dp, 0, WEIR_LIMIT_USER, 7, 2 * WEIR_QPS, 20));
	again = override_of(dp, index, 7);
	assert_memory_equal(&again, &override, sizeof(override));

	/* The same rate as the default is an override all the same: the default may change later. */
	done(override_set(dp, 0, WEIR_LIMIT_USER, 8, WEIR_QPS, 10));
	assert_int_equal(override_of(dp, index, 8).flags, WEIR_LIMIT_SET);
}

static bool has_generation(const struct weir_rate_history *h, __u8 generation)
{
	for (int i = 0; i < WEIR_RATES; i++)
		if (h->rates[i].generation == generation)
			return true;
	return false;
}

/* Whoever still has the rates of an override that has ended must not take the limit's for them, nor the other way round. */
static void test_override_has_its_own_generations(void **state)
{
	__u32 index = weir_limit_index(0, WEIR_LIMIT_USER);
	struct datapath *dp = *state;
	struct weir_amount limit, override;
	__u8 before = 0;

	done(limit_set(dp, 0, WEIR_LIMIT_USER, WEIR_QPS, 1, 8));
	for (__u64 burst = 2; burst < 2 + WEIR_GENERATIONS; burst++) {
		done(override_set(dp, 0, WEIR_LIMIT_USER, 7, WEIR_QPS, burst));
		done(limit_set(dp, 0, WEIR_LIMIT_USER, WEIR_QPS, burst, 8));
		limit = limit_of(dp, index);
		override = override_of(dp, index, 7);
		assert_false(has_generation(&override.history, limit.history.rates[0].generation));
		assert_false(has_generation(&limit.history, override.history.rates[0].generation));
		assert_int_not_equal(override.history.rates[0].generation, before);
		before = override.history.rates[0].generation;
	}
	done(datapath_limit_delete(dp, 0, WEIR_LIMIT_USER, &error));
}

/* At the override's rate the bucket is full again within a microsecond; at the default's it would stay empty. */
static void test_override_is_settled_before_it_goes(void **state)
{
	struct datapath *dp = *state;
	__u32 index = weir_limit_index(0, WEIR_LIMIT_USER);
	struct weir_bucket bucket = {}, before = { .shed = 5, .passed = 6 };
	struct weir_amount override, limit;
	struct weir_tokens tokens;
	__u64 now_ns = datapath_now_ns();

	done(limit_set(dp, 0, WEIR_LIMIT_USER, 0, 1000, 0));
	done(override_set(dp, 0, WEIR_LIMIT_USER, 7, WEIR_QPS_MAX * WEIR_QPS, 100));
	override = override_of(dp, index, 7);
	now_ns = datapath_now_ns();
	assert_true(weir_bucket_take_weight(&before, &override.history, now_ns, 100));
	assert_int_equal(weir_bucket_tokens(&before, &override.history, now_ns).high, 0);
	bucket_put(dp, index, 7, before);
	while (datapath_now_ns() < now_ns + 1000)
		;
	done(datapath_override_delete(dp, 0, WEIR_LIMIT_USER, 7, &error));

	assert_true(bucket_get(dp, index, 7, &bucket));
	assert_int_equal(bucket.shed, 5);
	assert_int_equal(bucket.passed, 6);
	/* The override's burst held until it went. */
	limit = limit_of(dp, index);
	tokens = weir_bucket_tokens(&bucket, &limit.history, datapath_now_ns());
	assert_int_equal(tokens.high, 100);
	assert_int_equal(tokens.low, 0);
}

static void test_clear_leaves_nothing_for_the_next(void **state)
{
	struct datapath *dp = *state;
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE };
	struct datapath_listen listen = listen_any(80);
	struct weir_flow flow = { .client_port = 1 }, others = { .client_port = 2 };
	struct weir_conn conn = { .server = 1 }, other = { .server = 2 };
	__u64 counters[WEIR_REASON_COUNT], ones[1024];

	memset(ones, 1, sizeof(ones));
	assert_true(dp->cpus <= 1024);
	done(datapath_server_set(dp, 1, &server, &listen, 1, NULL, 0, &error));
	for (int type = 0; type < WEIR_LIMIT_TYPES; type++)
		done(limit_set(dp, 1, type, WEIR_QPS, 1, 10));
	done(override_set(dp, 1, WEIR_LIMIT_USER, 7, WEIR_QPS, 1));
	done(override_set(dp, 2, WEIR_LIMIT_USER, 7, WEIR_QPS, 1));
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &conn, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &others, &other, BPF_ANY), 0);
	for (__u32 i = WEIR_REASON_COUNT; i < 3 * WEIR_REASON_COUNT; i++)
		assert_int_equal(bpf_map_update_elem(dp->maps.counters, &i, ones, BPF_ANY), 0);

	done(datapath_server_clear(dp, 1, &error));
	for (int type = 0; type < WEIR_LIMIT_TYPES; type++) {
		assert_int_equal(limit_of(dp, weir_limit_index(1, type)).flags, 0);
		assert_int_equal(buckets_of(dp, weir_limit_index(1, type)), -ENOENT);
	}
	assert_int_equal(override_of(dp, weir_limit_index(1, WEIR_LIMIT_USER), 7).flags, 0);
	assert_int_equal(override_of(dp, weir_limit_index(2, WEIR_LIMIT_USER), 7).flags, WEIR_LIMIT_SET);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &conn), -ENOENT);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &others, &conn), 0);
	done(datapath_counters(dp, 1, counters, &error));
	for (int i = 0; i < WEIR_REASON_COUNT; i++)
		assert_int_equal(counters[i], 0);
	done(datapath_counters(dp, 2, counters, &error));
	for (int i = 0; i < WEIR_REASON_COUNT; i++)
		assert_int_equal(counters[i], ones[0] * dp->cpus);
}

/* --- counters and names */

static void test_counters_sum(void **state)
{
	struct datapath *dp = *state;
	__u64 counters[WEIR_REASON_COUNT], each[1024] = {}, sum = 0;
	__u32 index = 9 * WEIR_REASON_COUNT + WEIR_SHED;

	for (int cpu = 0; cpu < dp->cpus; cpu++)
		sum += each[cpu] = 1ULL << (33 + cpu % 8);
	assert_int_equal(bpf_map_update_elem(dp->maps.counters, &index, each, BPF_ANY), 0);
	done(datapath_counters(dp, 9, counters, &error));
	for (int i = 0; i < WEIR_REASON_COUNT; i++)
		assert_int_equal(counters[i], i == WEIR_SHED ? sum : 0);
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

static void test_top(void **state)
{
	struct datapath *dp = *state;
	__u32 users = weir_limit_index(0, WEIR_LIMIT_USER), namespaces = weir_limit_index(0, WEIR_LIMIT_NAMESPACE);
	struct datapath_subject_use top[8] = {};

	assert_int_equal(datapath_top(dp, 0, top, 8, &error), 0);
	for (int type = 0; type < WEIR_LIMIT_TYPES; type++)
		done(limit_set(dp, 0, type, WEIR_QPS, 1, 4000));
	bucket_put(dp, weir_limit_index(0, WEIR_LIMIT_TOTAL), 0, (struct weir_bucket){ .shed = 99999 });
	for (__u64 i = 1; i <= 3000; i++)
		bucket_put(dp, users, i, (struct weir_bucket){ .shed = i % 1500, .passed = i });
	bucket_put(dp, namespaces, 5, (struct weir_bucket){ .shed = 5000 });
	bucket_put(dp, namespaces, 6, (struct weir_bucket){ .shed = 0, .passed = 1 });

	assert_int_equal(datapath_top(dp, 0, top, 5, &error), 5);
	assert_int_equal(top[0].slot, WEIR_LIMIT_NAMESPACE);
	assert_int_equal(top[0].subject, 5);
	for (int i = 1; i < 5; i++) {
		assert_int_equal(top[i].slot, WEIR_LIMIT_USER);
		assert_int_equal(top[i].shed, 1499 - (i - 1) / 2);
		assert_int_equal(top[i].subject % 1500, top[i].shed);
		assert_int_equal(top[i].passed, top[i].subject);
	}
	assert_int_equal(top[5].shed, 0);
	assert_int_equal(datapath_top(dp, 0, top, 1, &error), 1);
	assert_int_equal(datapath_top(dp, 0, top, 0, &error), 0);
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
		TEST(test_server_set_and_change),
		TEST(test_server_keeps_to_its_ports),
		TEST(test_limit_changes),
		TEST(test_override_without_default),
		TEST(test_override_goes_on_from_the_default),
		TEST(test_override_has_its_own_generations),
		TEST(test_override_is_settled_before_it_goes),
		TEST(test_clear_leaves_nothing_for_the_next),
		TEST(test_counters_sum),
		TEST(test_names),
		TEST(test_names_of_objects),
		TEST(test_top),
	};

	return cmocka_run_group_tests_name("datapath", tests, namespaces_setup, NULL);
}
