/* SPDX-License-Identifier: GPL-2.0 */
/* What is taken off a client's SYN: options, however many and in whatever order, and its data. */
#include "attached.h"

#include <string.h>

static void test_mptcp_is_taken_off_the_syn(void **state)
{
	static const __u8 even[] = { 30, 4, 1, 0, 2, 4, 5, 0xb4 }, odd[] = { 1, 30, 4, 1, 0, 2, 4, 5, 0xb4, 1, 1, 1 };
	struct seen seen;

	(void)state;
	assert_int_equal(
		run(ingress, &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = even, .n_options = 8 }), PASS);
	packet_see(&packet, &seen);
	assert_memory_equal(seen.options, "\1\1\1\1\2\4\5\xb4", 8);
	assert_int_equal(
		run(ingress, &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = odd, .n_options = 12 }), PASS);
	packet_see(&packet, &seen);
	assert_memory_equal(seen.options, "\1\1\1\1\1\2\4\5\xb4\1\1\1", 12);
	assert_int_equal(counter(WEIR_MPTCP_REMOVED), 2);
}

static void test_fast_open_is_taken_off_the_syn(void **state)
{
	static const __u8 both[] = { 30, 4, 1, 0, 34, 2, 1, 1 };
	struct seen seen;

	(void)state;
	assert_int_equal(
		run(ingress, &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = both, .n_options = 8 }), PASS);
	packet_see(&packet, &seen);
	assert_memory_equal(seen.options, "\1\1\1\1\1\1\1\1", 8);
	assert_int_equal(counter(WEIR_TFO_REMOVED), 1);
	assert_int_equal(counter(WEIR_MPTCP_REMOVED), 1);
}

struct options {
	const char *before, *after;
	size_t n;
	unsigned int mptcp, tfo; /* removed */
};

/* The kernel takes the last of them, or the first: none may stay. What is not one of them stays as it is. */
static void test_every_option_is_taken_off(void **state)
{
	static const struct options cases[] = {
		{ "\42\2\42\2", "\1\1\1\1", 4, 0, 1 },
		{ "\36\4\1\0\2\4\5\xb4\36\4\1\0", "\1\1\1\1\2\4\5\xb4\1\1\1\1", 12, 1, 0 },
		{ "\1\42\6abcd\42\6efgh\36\3\0", "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1", 16, 1, 1 },
		{ "\xfe\4\xf9\x89\xfe\x8\xf9\x89"
		  "abcd",
		  "\1\1\1\1\1\1\1\1\1\1\1\1", 12, 0, 1 },
		{ "\xfe\4\xf9\x88\2\4\5\xb4", "\xfe\4\xf9\x88\2\4\5\xb4", 8, 0, 0 }, /* another experiment */
		{ "\xfe\3\xf9\x89\2\4\5\xb4", "\xfe\3\xf9\x89\2\4\5\xb4", 8, 0, 0 }, /* too short for one */
		{ "\0\42\2\0", "\0\42\2\0", 4, 0, 0 },				     /* behind the end */
	};
	struct seen seen;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct options *c = &cases[i];
		__u64 mptcp = counter(WEIR_MPTCP_REMOVED), tfo = counter(WEIR_TFO_REMOVED);

		assert_int_equal(run(ingress, &(struct spec){ .ipv6 = i % 2,
							      .seq = 1,
							      .flags = WEIR_TCP_SYN,
							      .options = (const __u8 *)c->before,
							      .n_options = c->n }),
				 PASS);
		packet_see(&packet, &seen);
		assert_memory_equal(seen.options, c->after, c->n);
		assert_int_equal(counter(WEIR_MPTCP_REMOVED) - mptcp, c->mptcp);
		assert_int_equal(counter(WEIR_TFO_REMOVED) - tfo, c->tfo);
	}
}

/* As many as there is room for. */
static void test_options_to_the_last_byte(void **state)
{
	__u8 options[40], nops[40];
	struct seen seen;

	(void)state;
	memset(nops, 1, sizeof(nops));
	for (size_t i = 0; i < sizeof(options); i += 2)
		memcpy(options + i, "\42\2", 2);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = options, .n_options = 40 }),
			 PASS);
	packet_see(&packet, &seen);
	assert_memory_equal(seen.options, nops, sizeof(nops));
	memset(options, 7, sizeof(options));
	memcpy(options, "\42\50", 2);
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = options, .n_options = 40 }),
			 PASS);
	packet_see(&packet, &seen);
	assert_memory_equal(seen.options, nops, sizeof(nops));
}

/* Servers may do without any option: data is cut off because it is there. */
static void test_data_is_cut_off(void **state)
{
	static const __u8 flags[] = { WEIR_TCP_SYN, WEIR_TCP_SYN | ACK, WEIR_TCP_SYN | PSH_ACK };
	static const __u8 mss[] = { 2, 4, 5, 0xb4 };
	struct seen seen;
	__u64 n = 0;

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (size_t i = 0; i < sizeof(flags); i++) {
			assert_int_equal(run(ingress, &(struct spec){ .ipv6 = ipv6,
								      .seq = CLIENT_NEXT - 1,
								      .flags = flags[i],
								      .options = mss,
								      .n_options = 4,
								      .text = get_a }),
					 PASS);
			packet_see(&packet, &seen);
			assert_int_equal(seen.n_text, 0);
			assert_int_equal(seen.flags, flags[i]);
			assert_int_equal(seen.seq, CLIENT_NEXT - 1);
			assert_memory_equal(seen.options, mss, 4);
			assert_int_equal(counter(WEIR_SYN_DATA), ++n);
		}
	}
	assert_untouched(ingress, &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = mss, .n_options = 4 });
	assert_int_equal(counter(WEIR_SYN_DATA), n);
}

/* Its checksum is not made right by that. */
static void test_data_with_a_bad_checksum(void **state)
{
	(void)state;
	assert_int_equal(run(ingress,
			     &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .text = get_a, .bad_checksum = true }),
			 DROP);
	assert_int_equal(counter(WEIR_BAD_CHECKSUM), 1);
	assert_int_equal(counter(WEIR_SYN_DATA), 0);
}

/* A signature would not bear that its data is taken off. */
static void test_signed_data_is_dropped(void **state)
{
	static const __u8 md5[20] = { 1, 1, 19, 18 };

	(void)state;
	assert_untouched(ingress, &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = md5, .n_options = 20 });
	assert_int_equal(
		run(ingress,
		    &(struct spec){ .seq = 1, .flags = WEIR_TCP_SYN, .options = md5, .n_options = 20, .text = get_a }),
		DROP);
	assert_int_equal(counter(WEIR_SYN_DATA), 1);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(mptcp_is_taken_off_the_syn),
		TEST(fast_open_is_taken_off_the_syn),
		TEST(every_option_is_taken_off),
		TEST(options_to_the_last_byte),
		TEST(data_is_cut_off),
		TEST(data_with_a_bad_checksum),
		TEST(signed_data_is_dropped),
	};

	return cmocka_run_group_tests_name("syn", tests, attached_open, attached_close);
}
