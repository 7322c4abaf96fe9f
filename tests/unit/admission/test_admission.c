/* SPDX-License-Identifier: GPL-2.0 */
/* What a segment is to the admission of connections, and the word of an entry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/admission/admission.h"

static void which_segments_open(void **state)
{
	(void)state;
	for (unsigned int flags = 0; flags < 256; flags++) {
		const struct weir_segment g = { .flags = flags };
		bool opens = (flags & (WEIR_TCP_SYN | WEIR_TCP_ACK | WEIR_TCP_RST | WEIR_TCP_FIN)) == WEIR_TCP_SYN;
		bool completes = (flags & WEIR_TCP_ACK) && !(flags & WEIR_TCP_RST);

		assert_int_equal(weir_segment_opens(&g), opens);
		assert_int_equal(weir_segment_completes(&g), completes);
	}
}

static void sockets(void **state)
{
	(void)state;
	assert_true(weir_socket_begins_another(WEIR_SOCKET_LISTENS));
	assert_true(weir_socket_begins_another(WEIR_SOCKET_COOKIES));
	assert_true(weir_socket_begins_another(WEIR_SOCKET_ENDED));
	assert_false(weir_socket_begins_another(WEIR_SOCKET_NONE));
	assert_false(weir_socket_begins_another(WEIR_SOCKET_BEGINS));
	assert_false(weir_socket_begins_another(WEIR_SOCKET_THERE));
}

/* One entry for each handshake: the server's number tells. */
static void entries(void **state)
{
	struct weir_admitted there = { .word = weir_admitted_word(1, WEIR_ADMITTED_EMBRYO), .isn = 0xffffffff };
	struct weir_segment g = { .seq = 5, .ack = 0, .flags = WEIR_TCP_ACK };

	(void)state;
	assert_true(weir_admitted_by(&there, &g));
	there.word = weir_admitted_become(there.word, WEIR_ADMITTED_OPEN);
	assert_true(weir_admitted_by(&there, &g));
	there.word = weir_admitted_become(there.word, WEIR_ADMITTED_GONE);
	assert_false(weir_admitted_by(&there, &g));
	there.word = weir_admitted_become(there.word, WEIR_ADMITTED_EMBRYO);
	g.ack = 1;
	assert_false(weir_admitted_by(&there, &g));
	g.ack = 0xffffffff;
	assert_false(weir_admitted_by(&there, &g));
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_segments_open),
		cmocka_unit_test(sockets),
		cmocka_unit_test(entries),
		cmocka_unit_test(words),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
