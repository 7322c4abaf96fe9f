/* SPDX-License-Identifier: GPL-2.0 */
/* What a segment is to the admission of connections, and the word of an entry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/admission/admission.h"

#define ISN 7000U

static void which_segments_open(void **state)
{
	(void)state;
	for (unsigned int flags = 0; flags < 256; flags++) {
		const struct weir_segment g = { .flags = flags };
		bool opens = (flags & (WEIR_TCP_SYN | WEIR_TCP_ACK | WEIR_TCP_RST | WEIR_TCP_FIN)) == WEIR_TCP_SYN;
		bool completes = (flags & WEIR_TCP_ACK) && !(flags & (WEIR_TCP_SYN | WEIR_TCP_RST));

		assert_int_equal(weir_segment_opens(&g), opens);
		assert_int_equal(weir_segment_completes(&g), completes);
	}
}

static void syns(void **state)
{
	static const struct {
		enum weir_admission_socket socket;
		enum weir_admission fresh, repeated, another,
			begun; /* no entry; one of this SYN; of another; one that is open */
	} cases[] = {
		{ WEIR_SOCKET_NONE, WEIR_ASKS_NOTHING, WEIR_ASKS_NOTHING, WEIR_ASKS_NOTHING, WEIR_ASKS_NOTHING },
		{ WEIR_SOCKET_LISTENS, WEIR_ASKS_NOW, WEIR_ASKS_AGAIN, WEIR_ASKS_NOW, WEIR_ASKS_NOW },
		{ WEIR_SOCKET_COOKIES, WEIR_ASKS_LATER, WEIR_ASKS_AGAIN, WEIR_ASKS_LATER, WEIR_ASKS_LATER },
		{ WEIR_SOCKET_ENDED, WEIR_ASKS_NOW, WEIR_ASKS_AGAIN, WEIR_ASKS_NOW, WEIR_ASKS_NOW },
		{ WEIR_SOCKET_THERE, WEIR_ASKS_NOTHING, WEIR_ASKS_AGAIN, WEIR_ASKS_NOTHING, WEIR_ASKS_NOTHING },
	};
	const struct weir_segment g = { .seq = ISN, .flags = WEIR_TCP_SYN };
	const struct weir_admitted repeated = { .word = weir_admitted_word(1, WEIR_ADMITTED_EMBRYO), .isn = ISN };
	const struct weir_admitted another = { .word = weir_admitted_word(1, WEIR_ADMITTED_EMBRYO), .isn = ISN + 1 };
	const struct weir_admitted begun = { .word = weir_admitted_word(1, WEIR_ADMITTED_OPEN), .isn = ISN };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(weir_admission_of_syn(&g, cases[i].socket, NULL), cases[i].fresh);
		assert_int_equal(weir_admission_of_syn(&g, cases[i].socket, &repeated), cases[i].repeated);
		assert_int_equal(weir_admission_of_syn(&g, cases[i].socket, &another), cases[i].another);
		assert_int_equal(weir_admission_of_syn(&g, cases[i].socket, &begun), cases[i].begun);
	}
}

static void resets(void **state)
{
	struct weir_admitted embryo = { .word = weir_admitted_word(1, WEIR_ADMITTED_EMBRYO), .isn = 0xffffffff };
	struct weir_segment g = { .seq = 0, .flags = WEIR_TCP_RST };

	(void)state;
	assert_true(weir_admission_ended_by(&g, &embryo));
	g.flags = WEIR_TCP_RST | WEIR_TCP_ACK;
	assert_true(weir_admission_ended_by(&g, &embryo));
	g.seq = 1;
	assert_false(weir_admission_ended_by(&g, &embryo));
	g.seq = 0;
	g.flags = WEIR_TCP_FIN | WEIR_TCP_ACK;
	assert_false(weir_admission_ended_by(&g, &embryo));
	g.flags = WEIR_TCP_RST;
	embryo.word = weir_admitted_become(embryo.word, WEIR_ADMITTED_OPEN);
	assert_false(weir_admission_ended_by(&g, &embryo));
}

static void words(void **state)
{
	static const __u64 times[] = { 0, 1, 1ULL << 40, (1ULL << 62) - 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		__u64 word = weir_admitted_word(times[i], WEIR_ADMITTED_EMBRYO);

		assert_int_equal(weir_admitted_state(word), WEIR_ADMITTED_EMBRYO);
		assert_int_equal(weir_admitted_age_ns(word, times[i] + 5), 5);
		word = weir_admitted_become(word, WEIR_ADMITTED_GONE);
		assert_int_equal(weir_admitted_state(word), WEIR_ADMITTED_GONE);
		assert_int_equal(weir_admitted_age_ns(word, times[i]), 0);
		assert_true(word == weir_admitted_word(times[i], WEIR_ADMITTED_GONE));
	}
}

/* As the kernel answers where nobody listens. */
static void refusals(void **state)
{
	const struct weir_segment syn = { .seq = 0xffffffff, .flags = WEIR_TCP_SYN, .len = 3 };
	const struct weir_segment ack = { .seq = 9, .ack = 77, .flags = WEIR_TCP_ACK, .len = 3, .has_ts = 1 };
	struct weir_segment reply;

	(void)state;
	weir_admission_refuse(&syn, &reply);
	assert_int_equal(reply.flags, WEIR_TCP_RST | WEIR_TCP_ACK);
	assert_int_equal(reply.seq, 0);
	assert_int_equal(reply.ack, 3);
	weir_admission_refuse(&ack, &reply);
	assert_int_equal(reply.flags, WEIR_TCP_RST);
	assert_int_equal(reply.seq, 77);
	assert_false(reply.has_ts);
	assert_int_equal(weir_segment_isn(&syn), 0xffffffff);
	assert_int_equal(weir_segment_isn(&ack), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_segments_open),
		cmocka_unit_test(syns),
		cmocka_unit_test(resets),
		cmocka_unit_test(words),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
