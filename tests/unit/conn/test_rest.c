/* SPDX-License-Identifier: GPL-2.0 */
/* Which connections can rest, and that they are the same when they wake. The packet player has them rest whenever they can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "weir/conn/rest.h"

#define CLIENT_NEXT 0xfffffff0U
#define SERVER_NEXT 0x7fffffffU
#define NOW_NS (100 * WEIR_NS_PER_S)

static struct weir_conn idle(enum weir_phase phase)
{
	struct weir_conn c = {};

	weir_conn_open(&c, 63, phase, CLIENT_NEXT, SERVER_NEXT, 501);
	c.splice.told = SERVER_NEXT;
	c.response_began = SERVER_NEXT;
	c.id = 1234567890123;
	c.last_ns = NOW_NS - WEIR_REST_NS;
	c.requests = c.responses = c.seats_end = 0xffffffff;
	c.request_place = c.response_place = WEIR_PLACE_ENDED;
	c.server_isn = SERVER_NEXT - 1;
	c.holder = 65536;
	c.bare = WEIR_BARE_BODY;
	c.pipelines = 1;
	c.preamble.given = 1;
	memset(c.preamble.address, 0xfe, sizeof(c.preamble.address));
	c.splice.has_ts = c.splice.client_has_ts = 1;
	c.splice.client_tsval = 17;
	c.splice.server_tsval = 18;
	c.splice.server_scale = 14;
	return c;
}

static struct weir_conn idle_opaque(void)
{
	struct weir_conn c = idle(WEIR_PHASE_OPAQUE);

	weir_conn_opaque(&c, CLIENT_NEXT, WEIR_TLS);
	c.hold.next = CLIENT_NEXT + 16000;
	c.hold.record =
		(struct weir_record){ .length = 16384, .left = 16000, .type = WEIR_RECORD_DATA, .overhead = 17 };
	c.hold.answers = 1;
	c.version = c.hold.version = 0;
	return c;
}

/* After a request was refused, and one behind it was answered. */
static struct weir_conn idle_cut(void)
{
	struct weir_conn c = idle(WEIR_PHASE_FOLLOWED);
	struct weir_splice *s = &c.splice;

	s->cuts = 1;
	s->in_off = 200;
	s->out_off = 300;
	s->cut_start = CLIENT_NEXT - 150;
	s->cut_end = CLIENT_NEXT - 50;
	s->server_acked = CLIENT_NEXT - 200;
	s->client_acked = SERVER_NEXT + 300;
	s->answer_start = SERVER_NEXT + 100;
	s->answer_length = 150;
	c.answer = (struct weir_answer_choice){ .retry_s = 9, .length = 150, .kind = WEIR_ANSWER_KEEP, .limit = 3 };
	return c;
}

static void assert_same_when_it_wakes(const struct weir_conn *c)
{
	struct weir_conn woken = {};
	struct weir_resting r;

	assert_true(weir_conn_may_rest(c, NOW_NS));
	memset(&r, 0xa5, sizeof(r));
	weir_resting_note(&r, c);
	weir_resting_wake(&r, &woken);
	assert_memory_equal(&woken, c, sizeof(woken));
}

static void test_followed(void **state)
{
	struct weir_conn c = idle(WEIR_PHASE_FOLLOWED);

	(void)state;
	assert_same_when_it_wakes(&c);
}

static void test_opaque(void **state)
{
	struct weir_conn c = idle_opaque();

	(void)state;
	assert_same_when_it_wakes(&c);
}

static void test_cut(void **state)
{
	struct weir_conn c = idle_cut();

	(void)state;
	assert_same_when_it_wakes(&c);
}

static void test_what_cannot_rest(void **state)
{
	const struct weir_conn followed = idle(WEIR_PHASE_FOLLOWED), opaque = idle_opaque(), cut = idle_cut();
	struct weir_conn c;

	(void)state;
#define CANNOT(from, change)                          \
	do {                                          \
		c = from;                             \
		change;                               \
		assert_false(weir_conn_can_rest(&c)); \
	} while (0)
	CANNOT(followed, c.id = WEIR_CONN_FORGOTTEN);
	CANNOT(followed, c.phase = WEIR_PHASE_HUNTING);
	CANNOT(followed, c.phase = WEIR_PHASE_CLOSED);
	CANNOT(followed, c.dying = 1);
	CANNOT(followed, c.ended = WEIR_ENDED_ANSWERS);
	CANNOT(followed, c.gives_way = 1);
	CANNOT(followed, c.client_reset = 1);
	CANNOT(followed, c.strays = 1);
	CANNOT(followed, c.asks = 1);
	CANNOT(followed, c.requests++);
	CANNOT(followed, c.seats_end++);
	CANNOT(followed, c.request_place = WEIR_PLACE_BLANK);
	CANNOT(followed, c.request_place = WEIR_PLACE_LOST);
	CANNOT(followed, c.response_place = WEIR_PLACE_BODY);
	CANNOT(followed, c.request_next++);
	CANNOT(followed, c.response_next++);
	CANNOT(followed, weir_preamble_start(&c.preamble));
	CANNOT(followed, c.hold.since_ns = 1);
	CANNOT(followed, c.hold.decided = 1);
	CANNOT(followed, c.splice.fins = WEIR_SPLICE_CLIENT_FIN);
	CANNOT(followed, c.splice.server_reset = 1);
	CANNOT(followed, c.splice.client_acked--);
	CANNOT(followed, c.splice.told--);
	CANNOT(followed, c.splice.server_acked--);
	CANNOT(followed, c.splice.client_end++);
	CANNOT(followed, c.splice.passed_end++);
	CANNOT(opaque, c.requests++);
	CANNOT(opaque, c.splice.cuts = 1);
	CANNOT(cut, c.splice.owed = 1);
#undef CANNOT
}

static void test_silence(void **state)
{
	struct weir_conn c = idle(WEIR_PHASE_FOLLOWED);

	(void)state;
	assert_true(weir_conn_may_rest(&c, NOW_NS));
	assert_false(weir_conn_may_rest(&c, NOW_NS - 1));
	c.hold.departs_ns = NOW_NS;
	assert_true(weir_conn_may_rest(&c, NOW_NS));
	c.hold.departs_ns = NOW_NS + 1;
	assert_false(weir_conn_may_rest(&c, NOW_NS));
}

/* Of what cannot be read the time is not known: it goes by. */
static void test_moving(void **state)
{
	struct weir_conn c = idle(WEIR_PHASE_FOLLOWED);

	(void)state;
	assert_false(weir_conn_has_moved(&c));
	c = idle_opaque();
	assert_true(weir_conn_has_moved(&c));
	c.stood = weir_conn_ends(&c);
	assert_false(weir_conn_has_moved(&c));
	c.splice.server_end++;
	assert_true(weir_conn_has_moved(&c));
	c.splice.client_end++;
	assert_true(weir_conn_has_moved(&c));
}

static void test_what_it_sleeps_through(void **state)
{
	const struct weir_resting plain = {}, cut = { .flags = WEIR_RESTING_CUT };
	struct weir_segment g = { .flags = WEIR_TCP_ACK };

	(void)state;
	assert_true(weir_resting_ignores(&plain, &g));
	assert_false(weir_resting_ignores(&cut, &g));
	g.len = 1;
	assert_false(weir_resting_ignores(&plain, &g));
	g.len = 0;
	for (__u8 flag = 1; flag; flag <<= 1) {
		bool means_something = flag & (WEIR_TCP_SYN | WEIR_TCP_FIN | WEIR_TCP_RST | WEIR_TCP_URG);

		g.flags = WEIR_TCP_ACK | flag;
		assert_int_equal(weir_resting_ignores(&plain, &g), !means_something);
	}
	g.flags = 0;
	assert_false(weir_resting_ignores(&plain, &g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_followed),
		cmocka_unit_test(test_opaque),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_what_cannot_rest),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_moving),
		cmocka_unit_test(test_what_it_sleeps_through),
	};

	return cmocka_run_group_tests_name("rest", tests, NULL, NULL);
}
