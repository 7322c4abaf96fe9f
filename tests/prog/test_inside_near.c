/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes that programs inside servers find at once (include/weir/inside/near.h). The server is this process. What is in `inside_near` alone,
 * or in `inside_processes` alone, says where a hit has found it.
 */
#include "attached.h"
#include "inside_hit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "weir/inside/near.h"

#include "base/cleanup.h"
#include "datapath/inside_private.h"

static const struct datapath_binary no_probes = { .fd = -1 };
static struct datapath_binary binary;
static struct datapath_process own;

static int far_fd(void)
{
	return bpf_map__fd(dp->inside->skeleton->maps.inside_processes);
}

static int near_fd(void)
{
	return bpf_map__fd(dp->inside->skeleton->maps.inside_near);
}

static struct weir_inside_near near_at(__u32 at)
{
	struct weir_inside_near near;

	assert_int_equal(bpf_map_lookup_elem(near_fd(), &at, &near), 0);
	return near;
}

/* The process that is found at once in the place of this one; 0: none. */
static __u32 in_place(__u32 process)
{
	return near_at(weir_inside_near_of(process)).id;
}

static void near_put(const struct weir_inside_near *near, __u32 at)
{
	assert_int_equal(bpf_map_update_elem(near_fd(), &at, near, BPF_ANY), 0);
}

static struct weir_inside_process far_of(__u32 process)
{
	struct weir_inside_process far;

	assert_int_equal(bpf_map_lookup_elem(far_fd(), &process, &far), 0);
	return far;
}

static void far_drop(__u32 process)
{
	assert_int_equal(bpf_map_delete_elem(far_fd(), &process), 0);
}

static void sync_all(const struct datapath_process *processes, size_t n)
{
	done(datapath_inside_sync(dp, processes, n, &error));
}

/* Is a hit one in a process that is looked into? */
static bool is_seen(void)
{
	__u64 before = inside_hits_counted(), now;

	inside_hit(NULL, NULL);
	now = inside_hits_counted();
	assert_true(now - before <= 1);
	return now > before;
}

/* Another process whose place is this one's. */
static struct datapath_process neighbour_of(const struct datapath_process *process)
{
	return (struct datapath_process){ .id = process->id + WEIR_INSIDE_NEAR,
					  .process.start = 1,
					  .binary = &no_probes };
}

static int setup(void **state)
{
	static const struct weir_inside_layout layout = { .share = 100 };
	int ret = attached_setup(state);

	if (ret)
		return ret;
	binary = inside_hit_binary(WEIR_INSIDE_HTTP);
	own = inside_hit_process(&binary, &layout);
	return 0;
}

/* The programs stay for the next test: loading them takes the kernel a second. */
static int teardown(void **state)
{
	const struct datapath_process another = { .id = own.id + 1, .binary = &no_probes };

	sync_all(&another, 1);
	close(binary.fd);
	return attached_teardown(state);
}

static int close_all(void **state)
{
	sync_all(NULL, 0);
	return attached_close(state);
}

/* It is there as it is in the other map, and a hit finds it there. */
static void test_at_once(void **state)
{
	struct weir_inside_process far;
	struct weir_inside_near near;

	(void)state;
	sync_all(&own, 1);
	far = far_of(own.id);
	near = near_at(weir_inside_near_of(own.id));
	assert_int_equal(near.id, own.id);
	assert_memory_equal(&near.process, &far, sizeof(far));
	assert_true(is_seen());
	far_drop(own.id);
	assert_true(is_seen());
}

/* Of two with the same place each is found, whichever has it; and it stays where it is. */
static void test_the_same_place(void **state)
{
	struct datapath_process both[] = { own, neighbour_of(&own) };

	(void)state;
	sync_all(both, 2);
	assert_int_equal(in_place(own.id), own.id);
	both[0] = both[1];
	both[1] = own;
	sync_all(both, 2);
	assert_int_equal(in_place(own.id), own.id);
	sync_all(both, 1);
	assert_int_equal(in_place(own.id), both[0].id);
	assert_false(is_seen());
	sync_all(both, 2);
	assert_int_equal(in_place(own.id), both[0].id);
	assert_true(is_seen());
}

/* Before a process goes from the other map, its number goes here: a hit in it is in no server any more. What was there stays for its readers. */
static void test_one_that_goes(void **state)
{
	struct datapath_process both[] = { own, neighbour_of(&own) };
	struct weir_inside_near before, now;

	(void)state;
	both[1].id++;
	sync_all(both, 2);
	before = near_at(weir_inside_near_of(own.id));
	sync_all(&both[1], 1);
	now = near_at(weir_inside_near_of(own.id));
	assert_int_equal(now.id, 0);
	assert_memory_equal(&now.process, &before.process, sizeof(now.process));
	assert_false(is_seen());
	assert_int_equal(in_place(both[1].id), both[1].id);
}

/* Where nobody is looked into any more, links of the programs go last: none finds a process while they do. */
static void test_all_that_go(void **state)
{
	const __u32 at = weir_inside_near_of(own.id);
	struct weir_inside_near near;
	CLEANUP_CLOSE int kept = -1;

	(void)state;
	sync_all(&own, 1);
	kept = dup(near_fd());
	assert_true(kept >= 0);
	sync_all(NULL, 0);
	assert_int_equal(bpf_map_lookup_elem(kept, &at, &near), 0);
	assert_int_equal(near.process.start, own.process.start);
	assert_int_equal(near.id, 0);
}

/* A process that has another one's number is another one: it began at another time. */
static void test_a_number_that_is_used_again(void **state)
{
	struct datapath_process earlier = own;

	(void)state;
	earlier.process.start -= 100;
	sync_all(&earlier, 1);
	assert_int_equal(in_place(own.id), own.id);
	assert_false(is_seen());
	sync_all(&own, 1);
	assert_int_equal(near_at(weir_inside_near_of(own.id)).process.start, own.process.start);
	assert_true(is_seen());
}

/* While another one's, or nobody's, number is there, the other map says what is so. */
static void test_no_number(void **state)
{
	struct weir_inside_near near;

	(void)state;
	sync_all(&own, 1);
	near = near_at(weir_inside_near_of(own.id));
	near.id = 0;
	near.process.generation++;
	near_put(&near, weir_inside_near_of(own.id));
	assert_true(is_seen());
	near.id = own.id + WEIR_INSIDE_NEAR;
	near_put(&near, weir_inside_near_of(own.id));
	assert_true(is_seen());
	far_drop(own.id);
	assert_false(is_seen());
}

/* What is written anew has nothing learnt, and goes into the other map and here; what is not, keeps what programs have learnt. */
static void test_written_anew(void **state)
{
	const __u32 at = weir_inside_near_of(own.id);
	struct weir_inside_near near;

	(void)state;
	sync_all(&own, 1);
	near = near_at(at);
	near.process.learnt.user_key = 1;
	near_put(&near, at);
	sync_all(&own, 1);
	assert_int_equal(near_at(at).process.learnt.user_key, 1);
	own.process.layout.share = 50;
	sync_all(&own, 1);
	near = near_at(at);
	assert_int_equal(near.id, own.id);
	assert_int_equal(near.process.layout.share, 50);
	assert_int_equal(near.process.learnt.user_key, 0);
	assert_true(is_seen());
}

/*
 * What an agent of a build without this map, or one that was killed in the midst of it, has left behind: the other map is right already,
 * and says what becomes of each entry.
 */
static void test_what_others_have_left(void **state)
{
	const __u32 at = weir_inside_near_of(own.id);
	const struct datapath_process gone = { .id = own.id + 1 };
	struct weir_inside_near near, other;

	(void)state;
	sync_all(&own, 1);
	near = other = near_at(at);
	near.process.generation--; /* written over there, and not here */
	near_put(&near, at);
	other.id = gone.id; /* nobody's any more */
	near_put(&other, weir_inside_near_of(gone.id));
	sync_all(&own, 1);
	assert_int_equal(near_at(at).process.generation, dp->inside->generation);
	assert_int_equal(in_place(own.id), own.id);
	assert_int_equal(in_place(gone.id), 0);
	near.id = 0; /* half of it was written */
	near_put(&near, at);
	sync_all(&own, 1);
	assert_int_equal(near_at(at).process.generation, dp->inside->generation);
	assert_int_equal(in_place(own.id), own.id);
}

/* The next agent's programs have the same map, and the earlier ones, which are still there at first, find nobody of theirs in it. */
static void test_taken_over(void **state)
{
	struct bpf_map_info before = {}, now = {};
	__u32 size = sizeof(before);

	(void)state;
	sync_all(&own, 1);
	assert_int_equal(bpf_obj_get_info_by_fd(near_fd(), &before, &size), 0);
	dp->inside->writes = true; /* so others take over from these */
	sync_all(&own, 1);
	assert_int_equal(bpf_obj_get_info_by_fd(near_fd(), &now, &size), 0);
	assert_int_equal(now.id, before.id);
	assert_int_equal(near_at(weir_inside_near_of(own.id)).process.generation, dp->inside->generation);
	assert_int_equal(in_place(own.id), own.id);
	assert_true(is_seen());
}

/* Where there is no room in the other map all stays as it was. Whoever was to be written is not found at once for a while. */
static void test_no_room(void **state)
{
	static struct datapath_process many[WEIR_MAX_INSIDE_PROCESSES + 1];

	(void)state;
	sync_all(&own, 1);
	for (__u32 i = 0; i <= WEIR_MAX_INSIDE_PROCESSES; i++)
		many[i] = (struct datapath_process){ .id = own.id + i, .process.start = 2, .binary = &no_probes };
	assert_int_equal(datapath_inside_sync(dp, many, WEIR_MAX_INSIDE_PROCESSES + 1, &error), -E2BIG);
	assert_int_equal(in_place(own.id), 0);
	assert_true(is_seen());
	sync_all(&own, 1);
	assert_int_equal(in_place(own.id), own.id);
	assert_true(is_seen());
}

/* --- while hits come */

#define CHANGES 40

/* What is read of a request; twice in its memory, of which the layout says one. */
struct half {
	struct {
		const char *at;
		__u64 length;
	} method, uri, peer;
	__u64 tls, proto_major;
};

#define HALF(by_tls)                                                                    \
	{                                                                               \
		{ "GET", 3 }, { "/", 1 }, { "192.0.2.1:443", 13 }, by_tls, (by_tls) + 1 \
	}

/* The request in AX has its TLS in the first half, that in BX in the second one. Read by half of the other's layout, it came without. */
static const struct half requests[2][2] = { { HALF(1), HALF(0) }, { HALF(0), HALF(1) } };

static struct weir_inside_layout layout_of(enum weir_inside_register in)
{
	const __u16 at = in == WEIR_INSIDE_AX ? 0 : sizeof(struct half);

	return (struct weir_inside_layout){
		.request_in = in,
		.method = at + offsetof(struct half, method),
		.uri = at + offsetof(struct half, uri),
		.peer = at + offsetof(struct half, peer),
		.tls = at + offsetof(struct half, tls),
		.proto_major = at + offsetof(struct half, proto_major),
		.request_size = sizeof(requests[0]),
		.share = 100,
	};
}

static atomic_bool changes_end;

static void *hit_all_the_while(void *hits)
{
	for (; !changes_end; ++*(__u64 *)hits)
		inside_hit_with(requests[0], requests[1], NULL);
	return NULL;
}

/* Each hit is seen, and by a whole layout, while the agent changes it. (Memory that the kernel moves at that moment cannot be read.) */
static void test_changed_while_hits_come(void **state)
{
	__u64 hits = 0;
	pthread_t hitting;

	(void)state;
	own.process.layout = layout_of(WEIR_INSIDE_AX);
	sync_all(&own, 1);
	changes_end = false;
	assert_int_equal(pthread_create(&hitting, NULL, hit_all_the_while, &hits), 0);
	for (int i = 1; i <= CHANGES; i++) {
		own.process.layout = layout_of(i % 2 ? WEIR_INSIDE_BX : WEIR_INSIDE_AX);
		done(datapath_inside_sync(dp, &own, 1, &error));
	}
	changes_end = true;
	assert_int_equal(pthread_join(hitting, NULL), 0);
	assert_true(counter(WEIR_INSIDE_SEEN) > 0);
	assert_int_equal(counter(WEIR_INSIDE_ON_WIRE), 0);
	assert_int_equal(inside_hits_counted(), hits);
}

#define NEAR_TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		NEAR_TEST(at_once),
		NEAR_TEST(the_same_place),
		NEAR_TEST(one_that_goes),
		NEAR_TEST(all_that_go),
		NEAR_TEST(a_number_that_is_used_again),
		NEAR_TEST(no_number),
		NEAR_TEST(written_anew),
		NEAR_TEST(what_others_have_left),
		NEAR_TEST(taken_over),
		NEAR_TEST(no_room),
		NEAR_TEST(changed_while_hits_come),
	};

	return cmocka_run_group_tests_name("processes that are found at once", tests, attached_open, close_all);
}
