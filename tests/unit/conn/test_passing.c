/* SPDX-License-Identifier: GPL-2.0 */
/* What passes at a glance, against what decides on all segments, on connections and segments of any kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../passing_check.h"
#include "../../random.h"
#include "weir/conn/hold.h"

#define ROUNDS 200000
#define NEAR 6U
#define CLIENT 0xfffffffcU /* the streams wrap around */
#define SERVER 0x7ffffffdU

struct counts {
	unsigned int bare, body, opaque, asked, bare_by, bytes_by;
};

static __u32 near(struct random *r, __u32 number)
{
	return number + (__u32)random_below(r, 2 * NEAR) - NEAR;
}

static void any_splice(struct random *r, struct weir_splice *s)
{
	weir_splice_open(s, near(r, CLIENT), near(r, SERVER), random_below(r, 4) ? 500 : random_below(r, NEAR));
	s->client_acked = near(r, SERVER);
	s->client_end = near(r, CLIENT);
	s->passed_end = near(r, CLIENT);
	s->server_end = near(r, SERVER);
	s->server_acked = near(r, CLIENT);
	s->told = near(r, SERVER);
	s->client_has_ts = random_chance(r, 500);
	s->client_tsval = near(r, 0);
	s->has_ts = random_chance(r, 500);
	s->server_tsval = near(r, 0);
	s->cuts = random_chance(r, 100);
	s->in_off = s->cuts ? random_below(r, NEAR) : 0;
	s->owed = s->cuts && random_chance(r, 300);
	s->fins = random_chance(r, 100) ? random_below(r, 4) : 0;
	s->client_fin = near(r, CLIENT);
	s->server_fin = near(r, SERVER);
	s->server_reset = random_chance(r, 50);
}

static void any_reads(struct random *r, struct weir_unconfirmed *u)
{
	__u32 at = near(r, CLIENT);

	u->n = random_chance(r, 500) ? random_below(r, 4) : 0;
	for (unsigned int i = 0; i < u->n; i++) {
		u->read[i].start = at;
		at += random_below(r, 4);
		u->read[i].end = u->end = at;
		at += random_below(r, 3);
	}
}

static void any_conn(struct random *r, struct weir_conn *c)
{
	memset(c, 0, sizeof(*c));
	weir_conn_open(c, 0, random_below(r, 10) ? random_below(r, 3) : WEIR_PHASE_CLOSED, near(r, CLIENT),
		       near(r, SERVER), 0);
	any_splice(r, &c->splice);
	any_reads(r, &c->unconfirmed);
	c->requests = random_below(r, 3);
	c->responses = c->requests ? random_below(r, c->requests + 1) : 0;
	c->seats_end = random_below(r, 3);
	c->strays = random_below(r, 3);
	c->dying = random_chance(r, 100);
	c->opaque_why = c->phase == WEIR_PHASE_OPAQUE ? WEIR_TLS : 0;
	c->last_ns = WEIR_NS_PER_S + random_below(r, WEIR_NS_PER_S);
}

static struct weir_segment any_segment(struct random *r, __u32 seq, __u32 ack)
{
	struct weir_segment g = {
		.seq = near(r, seq),
		.ack = near(r, ack),
		.len = random_chance(r, 500) ? random_below(r, NEAR) : 0,
		.window = random_below(r, 3) * 100,
		.flags = random_chance(r, 800) ? WEIR_TCP_ACK : random_below(r, 0x40),
		.has_ts = random_chance(r, 500),
		.tsval = near(r, 0),
	};

	return g;
}

static void count_passed(struct counts *n, const struct weir_conn *c, const struct weir_segment *g, bool passed,
			 bool by)
{
	n->bare += passed && !g->len;
	n->bare_by += by && !g->len;
	n->bytes_by += by && g->len;
	n->body += passed && g->len && c->phase == WEIR_PHASE_FOLLOWED;
	n->opaque += passed && g->len && c->phase == WEIR_PHASE_OPAQUE;
	n->asked += !passed;
}

static void check_counts(const struct counts *n)
{
	assert_true(n->bare > ROUNDS / 100);
	assert_in_range(n->bare_by, ROUNDS / 100, n->bare);
	assert_in_range(n->bytes_by, ROUNDS / 1000, n->body + n->opaque);
	assert_true(n->body > ROUNDS / 1000);
	assert_true(n->opaque > ROUNDS / 1000);
	assert_true(n->asked > ROUNDS / 10);
}

static void test_client(void **state)
{
	struct random random = { 18 };
	struct weir_busy under_way = { 0 };
	struct counts n = { 0 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		enum weir_reason why = WEIR_REASON_NONE;
		const struct weir_socket nobody = { 0 };
		struct weir_request_reader r;
		struct weir_segment g = any_segment(&random, CLIENT, SERVER);
		struct weir_conn c, bare;
		bool passed, by;

		any_conn(&random, &c);
		memcpy(&bare, &c, sizeof(c));
		by = weir_conn_client_goes_by(&bare, &g);
		checked_begin_client(&c, &under_way, &nobody, &g, &r, &why, &passed);
		count_passed(&n, &c, &g, passed, by);
	}
	check_counts(&n);
}

static void test_server(void **state)
{
	struct random random = { 81 };
	struct weir_busy under_way = { 0 };
	struct counts n = { 0 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		enum weir_reason why = WEIR_REASON_NONE;
		struct weir_response_reader r;
		struct weir_segment g = any_segment(&random, SERVER, CLIENT);
		struct weir_conn c, bare;
		bool passed, by;

		any_conn(&random, &c);
		memcpy(&bare, &c, sizeof(c));
		by = weir_conn_server_goes_by(&bare, &g);
		checked_begin_server(&c, &under_way, &g, &r, &why, &passed);
		count_passed(&n, &c, &g, passed, by);
	}
	check_counts(&n);
}

/* What bears the badge and was read: the hold has nothing to say, and changes nothing. */
static void test_hold(void **state)
{
	struct random random = { 188 };
	unsigned int passed = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		const struct weir_socket k = { .next = near(&random, CLIENT), .edge = near(&random, CLIENT) };
		struct weir_segment g = any_segment(&random, CLIENT, SERVER);
		enum weir_reason why = WEIR_REASON_NONE;
		struct weir_hold_reader r;
		struct weir_conn c, before;

		any_conn(&random, &c);
		if (!weir_hold_passes(&c, &g))
			continue;
		passed++;
		memcpy(&before, &c, sizeof(c));
		assert_int_equal(weir_hold_meet(&c, &k, &g, true, true), WEIR_REASON_NONE);
		assert_int_equal(weir_hold_begin(&c, &k, &g, &r, &why), WEIR_PASS);
		assert_memory_equal(&before, &c, sizeof(c));
	}
	assert_in_range(passed, ROUNDS / 100, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_client),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
