/* SPDX-License-Identifier: GPL-2.0 */
/* Limits with rules, places that requests hold, and penalties, packet by packet. */
#include "attached.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../unit/rule_fixture.h"
#include "weir.skel.h"

#define SLOT WEIR_LIMIT_TYPES /* the first one of a limit with rules */
#define CLIENT_ADDRESS "127.0.0.9"

static const char get[] = "GET /api/v1/namespaces/a/pods/x HTTP/1.1\r\nHost: x\r\n\r\n";
static const char list[] = "GET /api/v1/namespaces/a/secrets HTTP/1.1\r\nHost: x\r\n\r\n";
static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
static const char ok_head[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";

/* --- rules as the kernel has them */

static struct datapath_group known[WEIR_GROUPS_MAX];
static const char *known_names[WEIR_GROUPS_MAX];
static size_t n_known;

static __u64 name_subject(void *context, enum weir_name_kind kind, const void *bytes, size_t length)
{
	(void)context;
	return datapath_subject(dp, kind, bytes, length);
}

static int group_bit(void *context, const char *name)
{
	(void)context;
	for (size_t i = 0; i < n_known; i++) {
		if (!strcmp(known_names[i], name))
			return i;
	}
	assert_true(n_known < WEIR_GROUPS_MAX);
	known_names[n_known] = name;
	known[n_known].subject = datapath_subject(dp, WEIR_NAME_GROUP, name, strlen(name));
	known[n_known].bit = n_known;
	return n_known++;
}

static const struct rules_names names = { .subject = name_subject, .group = group_bit };

static void rules_set(const struct rules_entry *entries, size_t n)
{
	CLEANUP_RULES struct rules *rules = NULL;

	n_known = 0;
	done(rules_compile(entries, n, &names, &rules, &error));
	done(datapath_groups_set(dp, 0, known, n_known, &error));
	done(datapath_rules_set(dp, 0, &rules->value, rules->vectors, rules->n_vectors, rules->sources,
				rules->n_sources, &error));
}

/* One limit with one rule. */
static void rule_set(const char *json)
{
	CLEANUP_RULE struct rule rule = rule_of(json);

	rules_set(&(struct rules_entry){ .rules = &rule, .n = 1, .limit = SLOT }, 1);
}

static struct datapath_limit rate_of(__u8 key, __u64 per_ns, __u64 burst)
{
	return (struct datapath_limit){ .kind = WEIR_LIMIT_RATE,
					.reason = WEIR_SHED_COMBINED,
					.key = key,
					.amount = { .set = true, .per_ns = per_ns, .burst = burst } };
}

static struct datapath_limit places_of(__u8 key, __u32 places)
{
	return (struct datapath_limit){ .kind = WEIR_LIMIT_IN_FLIGHT,
					.reason = WEIR_SHED_IN_FLIGHT,
					.key = key,
					.epoch = 7,
					.amount = { .set = true, .places = places } };
}

static void slot_set(const struct datapath_limit *limit)
{
	done(datapath_limit_set(dp, 0, SLOT, limit, &error));
}

static struct weir_limit_counts counts(__u32 slot)
{
	struct weir_limit_counts sum;

	done(datapath_limit_counts(dp, 0, slot, &sum, &error));
	return sum;
}

static __u64 taken(void)
{
	__u64 places[WEIR_SERVER_LIMITS] = {};

	done(datapath_in_flight(dp, 0, places, &error));
	return places[SLOT];
}

/* Entries of the map that holds what outstanding requests have taken. */
static int held(void)
{
	struct weir_place_key key, next, *at = NULL;
	int n = 0;

	while (!bpf_map_get_next_key(dp->maps.places, at, &next)) {
		key = next;
		at = &key;
		n++;
	}
	return n;
}

/* The two connections are told apart by their IP version. */
static int client_says(bool ipv6, __u32 at, const char *text)
{
	return run(ingress,
		   &(struct spec){
			   .ipv6 = ipv6, .seq = CLIENT_NEXT + at, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = text });
}

static int server_says(bool ipv6, __u32 at, __u32 acked, __u8 flags, const char *text)
{
	return run(egress, &(struct spec){ .ipv6 = ipv6,
					   .from_server = true,
					   .seq = SERVER_NEXT + at,
					   .ack = CLIENT_NEXT + acked,
					   .flags = flags,
					   .text = text });
}

/* A request on a fresh connection: does it pass? */
static bool passes(bool ipv6, const char *text)
{
	__u64 shed = counter(WEIR_SHED), passed = counter(WEIR_PASSED);

	connect_ends(ipv6);
	client_says(ipv6, 0, text);
	assert_int_equal(counter(WEIR_SHED) - shed + counter(WEIR_PASSED) - passed, 1);
	return counter(WEIR_PASSED) != passed;
}

/* --- rules */

static void test_only_what_matches(void **state)
{
	struct datapath_limit limit = rate_of(0, 0, 1);

	(void)state;
	slot_set(&limit);
	rule_set("{\"verbs\": [\"list\"], \"resources\": [\"secrets\"]}");
	assert_true(passes(false, list));
	assert_true(passes(false, get));
	assert_false(passes(false, list));
	assert_true(passes(false, get));
	assert_int_equal(counter(WEIR_SHED_COMBINED), 1);
	assert_int_equal(counts(SLOT).admitted, 1);
	assert_int_equal(counts(SLOT).refused, 1);

	/* Without rules the limit is for nothing any more. */
	done(datapath_rules_set(dp, 0, NULL, NULL, 0, NULL, 0, &error));
	assert_true(passes(false, list));
}

static void test_a_change_keeps_the_buckets(void **state)
{
	struct datapath_limit limit = rate_of(0, 0, 1);

	(void)state;
	slot_set(&limit);
	rule_set("{\"verbs\": [\"list\"]}");
	assert_true(passes(false, list));
	rule_set("{\"resources\": [\"secrets\"]}");
	assert_false(passes(false, list));
}

static void test_exempt(void **state)
{
	CLEANUP_RULE struct rule exempt = rule_of("{\"resources\": [\"secrets\"]}"), any = { 0 };
	const struct rules_entry entries[] = { { .rules = &exempt, .n = 1, .limit = WEIR_RULE_EXEMPT },
					       { .rules = &any, .n = 1, .limit = SLOT } };
	struct datapath_limit limit = rate_of(0, 0, 0);

	(void)state;
	slot_set(&limit);
	rules_set(entries, 2);
	assert_false(passes(false, get));
	connect_ends(false);
	assert_int_equal(client_says(false, 0, list), PASS);
	assert_int_equal(counter(WEIR_EXEMPT), 1);
}

static void test_dry_run(void **state)
{
	struct datapath_limit limit = rate_of(0, 0, 1);

	(void)state;
	limit.flags = WEIR_LIMIT_DRY_RUN;
	slot_set(&limit);
	rule_set("{}");
	assert_true(passes(false, get));
	assert_true(passes(false, get));
	assert_int_equal(counts(SLOT).dry_run_refused, 1);
	assert_int_equal(counts(SLOT).refused, 0);
	assert_int_equal(counter(WEIR_SHED_COMBINED), 0);
}

static void test_combined_key(void **state)
{
	struct datapath_limit limit = rate_of(WEIR_KEY_NAMESPACE | WEIR_KEY_SOURCE, 0, 1);
	struct datapath_subject_use top[2];
	char text[64];

	(void)state;
	slot_set(&limit);
	rule_set("{}");
	assert_true(passes(false, list));
	assert_true(passes(true, list));
	assert_false(passes(false, list));
	assert_true(passes(false, "GET /api/v1/namespaces/b/secrets HTTP/1.1\r\n\r\n"));
	assert_true(passes(false, "GET /version HTTP/1.1\r\n\r\n"));
	assert_true(passes(false, "GET /version HTTP/1.1\r\n\r\n"));
	assert_int_equal(datapath_top(dp, 0, top, 2, &error), 1);
	assert_int_equal(top[0].slot, SLOT);
	assert_int_equal(datapath_name(dp, top[0].subject, text, sizeof(text)), 0);
	assert_string_equal(text, "a/" CLIENT_ADDRESS);
}

#define LIMITS (WEIR_NAMED_MAX - 1)

/* As bytes; the ends of the packets are always the same. */
static void request_text(struct rule_request *r, char *text, size_t size)
{
	int n = snprintf(text, size, "%s %s HTTP/1.1\r\nHost: x\r\n", r->method, r->target);

	r->source = CLIENT_ADDRESS;
	if (r->anonymous) {
		r->user = CLIENT_ADDRESS;
		r->groups[0] = "system:unauthenticated";
		r->groups[1] = NULL;
	} else {
		n += snprintf(text + n, size - n, "X-Remote-User: %s\r\n", r->user);
		for (int i = 0; i < 4 && r->groups[i]; i++)
			n += snprintf(text + n, size - n, "X-Remote-Group: %s\r\n", r->groups[i]);
	}
	snprintf(text + n, size - n, "\r\n");
}

static void server_with_proxy(void)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 65536 };
	struct datapath_cidr proxy = { .address = { [10] = 0xff, 0xff, 127, 0, 0, 9 }, .bits = 128 };

	weir_reading_default(&server.reading);
	weir_groups_add(&server.groups.unauthenticated, group_bit(NULL, "system:unauthenticated"));
	done(datapath_groups_set(dp, 0, known, n_known, &error));
	done(datapath_server_set(dp, 0, &server, &listen, 1, &proxy, 1, &error));
}

/* The limits that are charged for random requests under random rules are those that the rules, as written, say. */
static void test_random(void **state)
{
	struct rule rules[LIMITS][3];
	struct rules_entry entries[LIMITS];
	unsigned int met = 0;
	char text[1024];

	(void)state;
	for (__u32 i = 0; i < LIMITS; i++) {
		struct datapath_limit limit = rate_of(0, 0, 1000000);

		done(datapath_limit_set(dp, 0, SLOT + i, &limit, &error));
	}
	for (unsigned int seed = 1; seed <= 12; seed++) {
		random_start(seed);
		for (__u16 i = 0; i < LIMITS; i++) {
			entries[i] = (struct rules_entry){ .rules = rules[i], .n = 3, .limit = SLOT + i };
			for (int j = 0; j < 3; j++)
				rules[i][j] = rule_random(RULE_ALL, 4);
		}
		rules_set(entries, LIMITS);
		server_with_proxy();
		for (int i = 0; i < 60; i++) {
			struct rule_request r = rule_request_random();
			__u64 before[LIMITS], exempt;
			__u16 want[LIMITS_MAX];
			int n;

			request_text(&r, text, sizeof(text));
			n = rules_match_written(entries, LIMITS, &r, want);
			for (__u32 j = 0; j < LIMITS; j++)
				before[j] = counts(SLOT + j).admitted;
			connect_ends(false);
			exempt = counter(WEIR_EXEMPT);
			assert_int_equal(client_says(false, 0, text), PASS);
			if (counter(WEIR_EXEMPT) != exempt) /* it asked for the server's health */
				n = 0;
			for (__u32 j = 0; j < LIMITS; j++) {
				__u64 charged = counts(SLOT + j).admitted - before[j];
				__u64 expected = 0;

				for (int k = 0; k < n; k++)
					expected += want[k] == SLOT + j;
				if (charged != expected)
					fail_msg("seed %u: limit %u charged %d, not %d, for %s", seed, j, (int)charged,
						 (int)expected, text);
				met += expected;
			}
		}
		for (int i = 0; i < LIMITS * 3; i++)
			rule_clear(&rules[i / 3][i % 3]);
	}
	assert_true(met > 100);
}

/* --- requests in flight */

static int in_flight_setup(void **state)
{
	struct datapath_limit limit = places_of(0, 1);

	attached_setup(state);
	slot_set(&limit);
	rule_set("{\"long_running\": false}");
	return 0;
}

static void test_until_the_answer_is_sent(void **state)
{
	(void)state;
	assert_true(passes(false, get));
	assert_int_equal(taken(), 1);
	assert_false(passes(true, get));
	assert_int_equal(counter(WEIR_SHED_IN_FLIGHT), 1);

	assert_int_equal(server_says(false, 0, strlen(get), ACK, ok_head), PASS);
	assert_int_equal(taken(), 1);
	assert_int_equal(server_says(false, strlen(ok_head), strlen(get), ACK, "hi"), PASS);
	assert_int_equal(taken(), 0);
	assert_int_equal(held(), 0);
	/* Said again it frees nothing again. */
	assert_true(passes(true, get));
	server_says(false, strlen(ok_head), strlen(get), ACK, "hi");
	assert_int_equal(taken(), 1);
}

static void test_until_the_server_ends(void **state)
{
	(void)state;
	assert_true(passes(false, get));
	server_says(false, 0, strlen(get), FIN_ACK, "HTTP/1.1 200 OK\r\n\r\nas long as it lasts");
	assert_int_equal(taken(), 0);

	assert_true(passes(false, get));
	server_says(false, 0, strlen(get), WEIR_TCP_RST | ACK, NULL);
	assert_int_equal(taken(), 0);
	assert_int_equal(held(), 0);
}

static void test_until_the_connection_is_forgotten(void **state)
{
	struct weir_forget forget = { .reason = WEIR_CONN_SWEPT };

	(void)state;
	assert_true(passes(false, get));
	packet_flow(false, &forget.flow);
	assert_int_equal(datapath_run(bpf_program__fd(dp->skeleton->progs.weir_forget), &forget, sizeof(forget)), 0);
	assert_int_equal(taken(), 0);
	assert_int_equal(held(), 0);
}

static void test_an_upgrade_holds_on(void **state)
{
	static const char upgrade[] = "GET /x HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
	static const char switching[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
	struct weir_forget forget = { .reason = WEIR_CONN_SWEPT };

	(void)state;
	assert_true(passes(false, upgrade));
	server_says(false, 0, strlen(upgrade), ACK, switching);
	server_says(false, strlen(switching), strlen(upgrade), ACK, "frames");
	assert_int_equal(taken(), 1);
	packet_flow(false, &forget.flow);
	assert_int_equal(datapath_run(bpf_program__fd(dp->skeleton->progs.weir_forget), &forget, sizeof(forget)), 0);
	assert_int_equal(taken(), 0);
}

static void test_pipelined_ones_hold_one_each(void **state)
{
	struct datapath_limit limit = places_of(0, 2);
	char both[2 * sizeof(get)];

	(void)state;
	slot_set(&limit);
	connect_ends(false);
	snprintf(both, sizeof(both), "%s%s", get, get);
	assert_int_equal(client_says(false, 0, both), PASS);
	assert_int_equal(taken(), 2);
	/* A third one waits: it is neither passed nor answered, and holds nothing. */
	client_says(false, 2 * strlen(get), get);
	assert_int_equal(counter(WEIR_PASSED), 2);
	assert_int_equal(taken(), 2);
	server_says(false, 0, 2 * strlen(get), ACK, ok);
	assert_int_equal(taken(), 1);
	client_says(false, 2 * strlen(get), get);
	assert_int_equal(counter(WEIR_PASSED), 3);
	assert_int_equal(taken(), 2);
}

static void test_another_limit_refuses(void **state)
{
	(void)state;
	limit(WEIR_LIMIT_TOTAL, "0", 0);
	assert_false(passes(false, get));
	assert_int_equal(taken(), 0);
	assert_int_equal(held(), 0);
	assert_int_equal(counts(SLOT).admitted, 0);
}

static void test_long_running_is_not_counted(void **state)
{
	(void)state;
	assert_true(passes(false, "GET /api/v1/pods?watch=1 HTTP/1.1\r\n\r\n"));
	assert_int_equal(taken(), 0);
}

static void test_lists_take_seats(void **state)
{
	struct datapath_limit limit = places_of(0, 30);

	(void)state;
	limit.flags = WEIR_LIMIT_SEATS;
	limit.reason = WEIR_SHED_LEVEL;
	slot_set(&limit);
	assert_true(passes(false, "GET /api/v1/pods?limit=450 HTTP/1.1\r\n\r\n"));
	assert_int_equal(taken(), 5);
	assert_true(passes(true, list));
	assert_int_equal(taken(), 15);
	connect_ends(false); /* what the first one holds is lost with its entry: of this test alone */
	assert_int_equal(client_says(false, 0, "GET /api/v1/pods?resourceVersion=0&limit=1 HTTP/1.1\r\n\r\n"), PASS);
	assert_int_equal(counter(WEIR_PASSED), 3);
}

/* Subjects that are always new leave nothing behind. */
static void test_subjects_go_with_their_last_place(void **state)
{
	struct datapath_limit limit = places_of(WEIR_KEY_NAMESPACE, 1);
	struct weir_in_flight_key key;
	char text[128];

	(void)state;
	slot_set(&limit);
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "GET /api/v1/namespaces/n%d/pods HTTP/1.1\r\n\r\n", i);
		assert_true(passes(false, text));
		server_says(false, 0, strlen(text), ACK, ok);
	}
	assert_int_equal(bpf_map_get_next_key(dp->maps.in_flight, NULL, &key), -ENOENT);
	assert_int_equal(counts(SLOT).highest, 1);
}

static void test_a_limit_that_goes(void **state)
{
	struct datapath_limit limit = places_of(0, 1);

	(void)state;
	assert_true(passes(false, get));
	done(datapath_limit_delete(dp, 0, SLOT, &error));
	limit.epoch++;
	slot_set(&limit);
	assert_true(passes(true, get));
	/* The answer to a request that the old limit admitted frees no place of the new one. */
	server_says(false, 0, strlen(get), ACK, ok);
	assert_int_equal(taken(), 1);
	server_says(true, 0, strlen(get), ACK, ok);
	assert_int_equal(taken(), 0);
}

/* --- penalties */

#define PENALTY_S 100

static struct weir_kept kept(void)
{
	__u32 index = weir_limit_index(0, SLOT), id;
	struct weir_kept value = {};
	__u64 subject = 0;

	assert_int_equal(bpf_map_lookup_elem(dp->maps.buckets, &index, &id), 0);
	CLEANUP_CLOSE int fd = bpf_map_get_fd_by_id(id);
	assert_int_equal(bpf_map_lookup_elem(fd, &subject, &value), 0);
	return value;
}

/* As if so much time had passed that the penalty is over, and a token there or not. */
static void time_passes(bool token)
{
	__u32 index = weir_limit_index(0, SLOT), id;
	struct weir_kept value = kept();
	__u64 subject = 0;

	value.penalty.until_ns = 1;
	if (token)
		value.bucket = (struct weir_bucket){};
	assert_int_equal(bpf_map_lookup_elem(dp->maps.buckets, &index, &id), 0);
	CLEANUP_CLOSE int fd = bpf_map_get_fd_by_id(id);
	assert_int_equal(bpf_map_update_elem(fd, &subject, &value, BPF_ANY), 0);
}

static int penalty_setup(void **state)
{
	struct datapath_limit limit = rate_of(0, WEIR_QPS / 1000, 1);

	attached_setup(state);
	limit.penalty = (struct weir_backoff){ .parts = WEIR_BACKOFF_EXPONENTIAL,
					       .base_ns = 2000 * WEIR_NS_PER_S,
					       .max_ns = 3000 * WEIR_NS_PER_S };
	slot_set(&limit);
	rule_set("{}");
	return 0;
}

static void assert_retry_after(int seconds)
{
	struct seen seen;
	char text[32];

	packet_see(&packet, &seen);
	snprintf(text, sizeof(text), "Retry-After: %d\r\n", seconds);
	if (!memmem(seen.text, seen.n_text, text, strlen(text)))
		fail_msg("not %s: %.*s", text, (int)seen.n_text, seen.text);
}

static void test_who_does_not_wait(void **state)
{
	(void)state;
	limit(WEIR_LIMIT_TOTAL, "0", 1000);
	assert_true(passes(false, get));
	assert_false(passes(false, get));
	assert_retry_after(2000);
	assert_int_equal(kept().penalty.failures, 1);

	/* No limit is asked, and no failure counted. */
	assert_false(passes(false, get));
	assert_int_equal(kept().penalty.failures, 1);
	assert_int_equal(counter(WEIR_SHED_PENALTY), 1);
	assert_int_equal(counter(WEIR_SHED_COMBINED), 1);
	assert_int_equal(counts(WEIR_LIMIT_TOTAL).admitted, 1);

	time_passes(false);
	assert_false(passes(false, get));
	assert_retry_after(3000);
	assert_int_equal(kept().penalty.failures, 2);

	time_passes(true);
	assert_true(passes(false, get));
	assert_int_equal(kept().penalty.failures, 0);
}

/* A refused request that must wait for its turn is decided anew then. */
static void test_who_waits_has_not_failed(void **state)
{
	(void)state;
	assert_true(passes(false, get));
	client_says(false, strlen(get), get); /* pipelined */
	assert_int_equal(counter(WEIR_SHED), 0);
	assert_int_equal(kept().penalty.failures, 0);
	assert_int_equal(counts(SLOT).refused, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, attached_setup, datapath_teardown)
#define TEST_PLACES(name) cmocka_unit_test_setup_teardown(name, in_flight_setup, datapath_teardown)
#define TEST_PENALTY(name) cmocka_unit_test_setup_teardown(name, penalty_setup, datapath_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_only_what_matches),
		TEST(test_a_change_keeps_the_buckets),
		TEST(test_exempt),
		TEST(test_dry_run),
		TEST(test_combined_key),
		TEST(test_random),
		TEST_PLACES(test_until_the_answer_is_sent),
		TEST_PLACES(test_until_the_server_ends),
		TEST_PLACES(test_until_the_connection_is_forgotten),
		TEST_PLACES(test_an_upgrade_holds_on),
		TEST_PLACES(test_pipelined_ones_hold_one_each),
		TEST_PLACES(test_another_limit_refuses),
		TEST_PLACES(test_long_running_is_not_counted),
		TEST_PLACES(test_lists_take_seats),
		TEST_PLACES(test_subjects_go_with_their_last_place),
		TEST_PLACES(test_a_limit_that_goes),
		TEST_PENALTY(test_who_does_not_wait),
		TEST_PENALTY(test_who_waits_has_not_failed),
	};

	return cmocka_run_group_tests_name("engine", tests, namespaces_setup, NULL);
}
