/* SPDX-License-Identifier: GPL-2.0 */
/* Limits, overrides and their buckets on a real kernel, and that nothing of a server is left for the next one (datapath_fixture.h). */
#include <errno.h>
#include <string.h>

#include "weir/conn/conn.h"
#include "weir/limit/penalty.h"

#include "base/cleanup.h"
#include "datapath_fixture.h"

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
	__u32 index = weir_limit_index(2, WEIR_BUILTIN_USER);
	struct weir_amount first, second;
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	int fd;

	assert_int_equal(buckets_of(dp, index), -ENOENT);
	done(limit_set(dp, 2, WEIR_BUILTIN_USER, 5 * WEIR_QPS, 10, 100));
	first = limit_of(dp, index);
	assert_int_equal(first.flags, WEIR_LIMIT_SET);
	assert_int_equal(first.history.rates[0].burst, 10);
	fd = buckets_of(dp, index);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &length), 0);
	assert_true(info.max_entries >= 125);
	assert_true(info.max_entries < 100000);
	close(fd);

	done(limit_set(dp, 2, WEIR_BUILTIN_USER, 5 * WEIR_QPS, 10, 100));
	second = limit_of(dp, index);
	assert_memory_equal(&first, &second, sizeof(first));

	done(limit_set(dp, 2, WEIR_BUILTIN_USER, 6 * WEIR_QPS, 10, 0));
	second = limit_of(dp, index);
	assert_int_equal(second.history.rates[0].per_ns, 6 * WEIR_QPS);
	assert_memory_equal(&second.history.rates[1], &first.history.rates[0], sizeof(struct weir_rate));
	assert_true(second.history.rates[0].since_ns > first.history.rates[0].since_ns);

	bucket_put(dp, index, 7, (struct weir_bucket){ .word = 1 });
	done(datapath_limit_delete(dp, 2, WEIR_BUILTIN_USER, &error));
	done(datapath_limit_delete(dp, 2, WEIR_BUILTIN_USER, &error));
	assert_int_equal(limit_of(dp, index).flags, 0);
	assert_int_equal(buckets_of(dp, index), -ENOENT);
}

static void test_override_without_default(void **state)
{
	struct datapath *dp = *state;
	__u32 index = weir_limit_index(0, WEIR_BUILTIN_NAMESPACE);
	struct weir_bucket bucket = {};

	done(override_set(dp, 0, WEIR_BUILTIN_NAMESPACE, 7, WEIR_QPS, 1));
	assert_int_equal(override_of(dp, index, 7).flags, WEIR_LIMIT_SET);
	assert_int_equal(override_of(dp, index, 7).history.rates[1].burst, 0);
	bucket_put(dp, index, 7, (struct weir_bucket){ .word = 1, .shed = 3 });

	/* A default comes and goes again: the override's bucket stays, the others' do not. */
	done(limit_set(dp, 0, WEIR_BUILTIN_NAMESPACE, WEIR_QPS, 9, 0));
	bucket_put(dp, index, 8, (struct weir_bucket){ .word = 1 });
	done(limit_unset(dp, 0, WEIR_BUILTIN_NAMESPACE));
	assert_false(bucket_get(dp, index, 8, &bucket));
	assert_true(bucket_get(dp, index, 7, &bucket));
	assert_int_equal(bucket.shed, 3);

	done(datapath_overrides_delete(dp, 0, WEIR_BUILTIN_NAMESPACE, &(__u64){ 7 }, 1, &error));
	assert_int_equal(override_of(dp, index, 7).flags, 0);
	assert_false(bucket_get(dp, index, 7, &bucket));
}

static __u32 flags_of(struct datapath *dp, __u32 index)
{
	struct weir_limit limit = {};

	bpf_map_lookup_elem(dp->maps.limits, &index, &limit);
	assert_int_equal(weir_terms_seal(&limit.terms, index), limit.terms.amount.seal);
	return limit.terms.flags;
}

/* Overrides are looked up only where a limit says that it has some: whoever changes the limit leaves it saying so. */
static void test_a_limit_says_that_it_has_overrides(void **state)
{
	struct datapath *dp = *state;
	__u32 index = weir_limit_index(0, WEIR_BUILTIN_USER);

	done(limit_set(dp, 0, WEIR_BUILTIN_USER, WEIR_QPS, 10, 100));
	assert_false(flags_of(dp, index) & WEIR_LIMIT_OVERRIDDEN);
	done(override_set(dp, 0, WEIR_BUILTIN_USER, 7, 2 * WEIR_QPS, 20));
	assert_true(flags_of(dp, index) & WEIR_LIMIT_OVERRIDDEN);
	done(limit_set(dp, 0, WEIR_BUILTIN_USER, 3 * WEIR_QPS, 30, 100));
	assert_true(flags_of(dp, index) & WEIR_LIMIT_OVERRIDDEN);
	assert_int_equal(override_of(dp, index, 7).history.rates[0].burst, 20);
}

static void test_override_goes_on_from_the_default(void **state)
{
	struct datapath *dp = *state;
	__u32 index = weir_limit_index(0, WEIR_BUILTIN_USER);
	struct weir_amount limit, override, again;

	done(limit_set(dp, 0, WEIR_BUILTIN_USER, WEIR_QPS, 10, 0));
	done(override_set(dp, 0, WEIR_BUILTIN_USER, 7, 2 * WEIR_QPS, 20));
	limit = limit_of(dp, index);
	override = override_of(dp, index, 7);
	assert_int_equal(override.history.rates[0].burst, 20);
	assert_memory_equal(&override.history.rates[1], &limit.history.rates[0], sizeof(struct weir_rate));

	done(override_set(dp, 0, WEIR_BUILTIN_USER, 7, 2 * WEIR_QPS, 20));
	again = override_of(dp, index, 7);
	assert_memory_equal(&again, &override, sizeof(override));

	/* The same rate as the default is an override all the same: the default may change later. */
	done(override_set(dp, 0, WEIR_BUILTIN_USER, 8, WEIR_QPS, 10));
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
	__u32 index = weir_limit_index(0, WEIR_BUILTIN_USER);
	struct datapath *dp = *state;
	struct weir_amount limit, override;
	__u8 before = 0;

	done(limit_set(dp, 0, WEIR_BUILTIN_USER, WEIR_QPS, 1, 8));
	for (__u64 burst = 2; burst < 2 + WEIR_GENERATIONS; burst++) {
		done(override_set(dp, 0, WEIR_BUILTIN_USER, 7, WEIR_QPS, burst));
		done(limit_set(dp, 0, WEIR_BUILTIN_USER, WEIR_QPS, burst, 8));
		limit = limit_of(dp, index);
		override = override_of(dp, index, 7);
		assert_false(has_generation(&override.history, limit.history.rates[0].generation));
		assert_false(has_generation(&limit.history, override.history.rates[0].generation));
		assert_int_not_equal(override.history.rates[0].generation, before);
		before = override.history.rates[0].generation;
	}
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_USER, &error));
}

/* At the override's rate the bucket is full again within a microsecond; at the default's it would stay empty. */
static void test_override_is_settled_before_it_goes(void **state)
{
	struct datapath *dp = *state;
	__u32 index = weir_limit_index(0, WEIR_BUILTIN_USER);
	struct weir_bucket bucket = {}, before = { .shed = 5, .passed = 6 };
	struct weir_amount override, limit;
	struct weir_tokens tokens;
	__u64 now_ns;

	done(limit_set(dp, 0, WEIR_BUILTIN_USER, 0, 1000, 0));
	done(override_set(dp, 0, WEIR_BUILTIN_USER, 7, WEIR_QPS_MAX * WEIR_QPS, 100));
	override = override_of(dp, index, 7);
	now_ns = datapath_now_ns();
	assert_true(weir_bucket_take_weight(&before, &override.history, now_ns, 100));
	assert_int_equal(weir_bucket_tokens(&before, &override.history, now_ns).high, 0);
	bucket_put(dp, index, 7, before);
	while (datapath_now_ns() < now_ns + 1000)
		;
	done(datapath_overrides_delete(dp, 0, WEIR_BUILTIN_USER, &(__u64){ 7 }, 1, &error));

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
	struct datapath_listen listen = { .any = true, .port = 80 };
	struct weir_flow flow = { .client_port = 1 }, others = { .client_port = 2 };
	struct weir_conn conn = { .server = 1 }, other = { .server = 2 };
	__u64 counters[WEIR_REASON_COUNT], before[WEIR_REASON_COUNT], ones[1024];

	memset(ones, 1, sizeof(ones));
	assert_true(dp->cpus <= 1024);
	done(datapath_server_set(dp, 1, &server, &listen, 1, NULL, 0, &error));
	for (int builtin = 0; builtin < WEIR_BUILTIN_LIMITS; builtin++)
		done(limit_set(dp, 1, builtin, WEIR_QPS, 1, 10));
	done(override_set(dp, 1, WEIR_BUILTIN_USER, 7, WEIR_QPS, 1));
	done(override_set(dp, 2, WEIR_BUILTIN_USER, 7, WEIR_QPS, 1));
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &conn, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &others, &other, BPF_ANY), 0);
	for (__u32 i = WEIR_COUNTER_COUNT; i < 3 * WEIR_COUNTER_COUNT; i++)
		assert_int_equal(bpf_map_update_elem(dp->maps.counters, &i, ones, BPF_ANY), 0);

	done(datapath_counters(dp, 2, before, &error));
	done(datapath_server_clear(dp, 1, &error));
	for (int builtin = 0; builtin < WEIR_BUILTIN_LIMITS; builtin++) {
		assert_int_equal(limit_of(dp, weir_limit_index(1, builtin)).flags, 0);
		assert_int_equal(buckets_of(dp, weir_limit_index(1, builtin)), -ENOENT);
	}
	assert_int_equal(override_of(dp, weir_limit_index(1, WEIR_BUILTIN_USER), 7).flags, 0);
	assert_int_equal(override_of(dp, weir_limit_index(2, WEIR_BUILTIN_USER), 7).flags, WEIR_LIMIT_SET);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &conn), -ENOENT);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &others, &conn), 0);
	done(datapath_counters(dp, 1, counters, &error));
	for (int i = 0; i < WEIR_REASON_COUNT; i++)
		assert_int_equal(counters[i], 0);
	done(datapath_counters(dp, 2, counters, &error));
	for (int i = 0; i < WEIR_REASON_COUNT; i++)
		assert_true(counters[i] && counters[i] == before[i]);
}

static void test_top(void **state)
{
	struct datapath *dp = *state;
	__u32 users = weir_limit_index(0, WEIR_BUILTIN_USER), namespaces = weir_limit_index(0, WEIR_BUILTIN_NAMESPACE);
	struct datapath_subject_use top[8] = {};

	assert_int_equal(datapath_top(dp, 0, top, 8, &error), 0);
	for (int builtin = 0; builtin < WEIR_BUILTIN_LIMITS; builtin++)
		done(limit_set(dp, 0, builtin, WEIR_QPS, 1, 4000));
	bucket_put(dp, weir_limit_index(0, WEIR_BUILTIN_TOTAL), 0, (struct weir_bucket){ .shed = 99999 });
	for (__u64 i = 1; i <= 3000; i++)
		bucket_put(dp, users, i, (struct weir_bucket){ .shed = i % 1500, .passed = i });
	bucket_put(dp, namespaces, 5, (struct weir_bucket){ .shed = 5000 });
	bucket_put(dp, namespaces, 6, (struct weir_bucket){ .shed = 0, .passed = 1 });

	assert_int_equal(datapath_top(dp, 0, top, 5, &error), 5);
	assert_int_equal(top[0].slot, WEIR_BUILTIN_NAMESPACE);
	assert_int_equal(top[0].subject, 5);
	for (int i = 1; i < 5; i++) {
		assert_int_equal(top[i].slot, WEIR_BUILTIN_USER);
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
		TEST(test_limit_changes),
		TEST(test_override_without_default),
		TEST(test_a_limit_says_that_it_has_overrides),
		TEST(test_override_goes_on_from_the_default),
		TEST(test_override_has_its_own_generations),
		TEST(test_override_is_settled_before_it_goes),
		TEST(test_clear_leaves_nothing_for_the_next),
		TEST(test_top),
	};

	return cmocka_run_group_tests_name("datapath_limits", tests, namespaces_setup, NULL);
}
