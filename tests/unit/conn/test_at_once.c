/* SPDX-License-Identifier: GPL-2.0 */
/* What is read at once, against what is begun and then committed, on connections and segments of any kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "any_conn.h"
#include "weir/conn/client_at_once.h"
#include "weir/conn/server.h"

#define ROUNDS 400000

/* Often as they are where such segments come. */
static void likely(struct random *random, struct weir_conn *c)
{
	c->request_place = random_below(random, 2) ? WEIR_PLACE_ENDED : random_below(random, 6);
	c->response_place = random_below(random, 2) ? WEIR_PLACE_ENDED : random_below(random, 6);
	c->asks = random_chance(random, 100);
	c->version = random_below(random, 3);
	c->asked_ns = random_below(random, 2) ? c->last_ns - 7 : 0;
	c->head_bits = (__u64)random_below(random, 1 << 30) << 32 | random_below(random, 1 << 30);
	c->user = 1 + random_below(random, 9);
	if (!random_below(random, 2))
		c->seats_end = 0;
	/* Without a cut, all before the first byte of the server's is acknowledged. */
	c->splice.answer_start = c->splice.client_acked;
}

/* Everything before the segment is acknowledged, so that it may be answered. */
static void settled(struct weir_conn *c, struct weir_segment *g)
{
	c->splice.server_acked = c->splice.passed_end = g->seq;
	c->splice.client_acked = c->splice.answer_start = c->splice.server_end = g->ack = c->response_next;
	c->responses = c->requests;
}

/* What comes of the segment's bytes. */
static void read_client(struct random random, const struct weir_segment *g, struct weir_request_reader *r)
{
	weir_request_reader_begin(r);
	r->next = g->seq + g->len;
	r->heads = random_below(&random, 3);
	r->head_bits = random_below(&random, 4);
	r->lost = random_chance(&random, 100) ? WEIR_BAD_HEADER : WEIR_REASON_NONE;
	r->held = random_chance(&random, 100);
	r->shed = !r->held && r->lost == WEIR_REASON_NONE && r->why_not == WEIR_REASON_NONE &&
		  random_chance(&random, 300);
	r->request.framing.state = random_below(&random, 3) ? WEIR_AT_ENDED : WEIR_AT_BODY;
	r->request.head_length = 30;
	r->digest = random_below(&random, 1 << 30);
}

static void test_client(void **state)
{
	struct random random = { 31 };
	unsigned int at_once = 0, shed = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		enum weir_reason why = WEIR_REASON_NONE, why_then = WEIR_REASON_NONE;
		struct weir_request_reader r = { 0 }, then = { 0 };
		const struct weir_socket nobody = { 0 };
		struct weir_busy busy = { 0 }, busy_then = { 0 };
		struct weir_conn c, before;
		struct weir_segment g;

		any_conn(&random, &c);
		likely(&random, &c);
		g = any_segment(&random, random_below(&random, 2) ? CLIENT : c.request_next, SERVER);
		if (random_below(&random, 2))
			g.seq = c.request_next;
		if (random_below(&random, 2))
			settled(&c, &g);
		if (!weir_conn_reads_client_at_once(&c, &g))
			continue;
		at_once++;
		memcpy(&before, &c, sizeof(c));
		weir_conn_open_reader_at_once(&c, &g, &r);
		assert_memory_equal(&before, &c, sizeof(c));
		assert_int_equal(weir_conn_begin_client(&before, NULL, &nobody, &g, &then, &why_then), WEIR_FRAME);
		assert_memory_equal(&r, &then, sizeof(r));
		read_client(random, &g, &r);
		read_client(random, &g, &then);
		shed += r.shed;
		assert_int_equal(weir_conn_begin_read(&c, &g, &r, &why), WEIR_FRAME);
		assert_int_equal(weir_conn_commit_client(&c, &busy, &g, &r, &why),
				 weir_conn_commit_client(&before, &busy_then, &g, &then, &why_then));
		assert_int_equal(why, why_then);
		assert_memory_equal(&before, &c, sizeof(c));
		assert_memory_equal(&busy, &busy_then, sizeof(busy));
	}
	assert_in_range(at_once, ROUNDS / 400, ROUNDS);
	assert_true(shed > 10);
}

/* A commit in between, or anything that is under way by then: it comes again, and nothing has changed. */
static void test_client_meanwhile(void **state)
{
	struct random random = { 32 };
	unsigned int at_once = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		enum weir_reason why = WEIR_REASON_NONE;
		struct weir_request_reader r;
		struct weir_conn c, before;
		struct weir_segment g;

		any_conn(&random, &c);
		likely(&random, &c);
		g = any_segment(&random, c.request_next, SERVER);
		g.seq = c.request_next;
		if (!weir_conn_reads_client_at_once(&c, &g))
			continue;
		at_once++;
		weir_conn_open_reader_at_once(&c, &g, &r);
		if (i % 3 == 0)
			c.version++;
		else if (i % 3 == 1)
			c.request_next++;
		else
			c.splice.cuts++;
		memcpy(&before, &c, sizeof(c));
		assert_int_equal(weir_conn_begin_read(&c, &g, &r, &why), WEIR_DROP);
		assert_int_equal(why, WEIR_CONTENDED);
		assert_memory_equal(&before, &c, sizeof(c));
	}
	assert_in_range(at_once, ROUNDS / 400, ROUNDS);
}

static void read_server(struct random random, const struct weir_segment *g, struct weir_response_reader *r)
{
	weir_response_reader_begin(r);
	r->next = g->seq + g->len;
	r->responses = random_below(&random, r->outstanding + 1);
	r->lost = random_chance(&random, 100) ? WEIR_BAD_RESPONSE : WEIR_REASON_NONE;
	r->response.framing.state = random_below(&random, 3) ? WEIR_AT_ENDED : WEIR_AT_BODY;
}

static void test_server(void **state)
{
	struct random random = { 33 };
	unsigned int at_once = 0, took = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		enum weir_reason why = WEIR_REASON_NONE, why_then = WEIR_REASON_NONE;
		struct weir_response_reader r = { 0 }, then = { 0 };
		struct weir_busy busy = { 0 }, busy_then = { 0 };
		struct weir_conn c, before;
		struct weir_segment g;

		any_conn(&random, &c);
		likely(&random, &c);
		g = any_segment(&random, c.response_next, CLIENT);
		if (random_below(&random, 2))
			g.seq = c.response_next;
		if (!weir_conn_reads_server_at_once(&c, &g))
			continue;
		at_once++;
		memcpy(&before, &c, sizeof(c));
		weir_response_reader_open(&r, &c, NULL);
		assert_memory_equal(&before, &c, sizeof(c));
		assert_int_equal(weir_conn_begin_server(&before, NULL, &g, &then, &why_then), WEIR_FRAME);
		read_server(random, &g, &r);
		read_server(random, &g, &then);
		assert_int_equal(weir_conn_take_server(&c, &busy, &g, &r, &why), WEIR_PASS);
		assert_memory_equal(&r, &then, sizeof(r));
		took += r.took_ns == 7;
		weir_conn_commit_server(&before, &busy_then, &then, &why_then);
		assert_int_equal(why, why_then);
		assert_memory_equal(&before, &c, sizeof(c));
		assert_memory_equal(&busy, &busy_then, sizeof(busy));
	}
	assert_in_range(at_once, ROUNDS / 50, ROUNDS);
	assert_true(took > 100);
}

static void test_server_meanwhile(void **state)
{
	struct random random = { 34 };
	unsigned int at_once = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		enum weir_reason why = WEIR_REASON_NONE;
		struct weir_response_reader r;
		struct weir_conn c, before;
		struct weir_segment g;

		any_conn(&random, &c);
		likely(&random, &c);
		g = any_segment(&random, c.response_next, CLIENT);
		g.seq = c.response_next;
		if (!weir_conn_reads_server_at_once(&c, &g))
			continue;
		at_once++;
		weir_response_reader_open(&r, &c, NULL);
		if (i % 5 == 0)
			c.requests++;
		else if (i % 5 == 1)
			c.head_bits = ~c.head_bits;
		else if (i % 5 == 2)
			c.phase = WEIR_PHASE_HUNTING;
		else if (i % 5 == 3)
			c.asks = 1;
		else
			c.splice.cuts++;
		memcpy(&before, &c, sizeof(c));
		assert_int_equal(weir_conn_take_server(&c, NULL, &g, &r, &why), WEIR_FRAME);
		assert_int_equal(why, WEIR_REASON_NONE);
		assert_memory_equal(&before, &c, sizeof(c));
	}
	assert_in_range(at_once, ROUNDS / 50, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_client),
		cmocka_unit_test(test_client_meanwhile),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_server_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
