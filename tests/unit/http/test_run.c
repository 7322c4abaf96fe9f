/* SPDX-License-Identifier: GPL-2.0 */
/* Eight bytes at once come to what they come to one by one. */
#include "weir/http/field.h"
#include "weir/http/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../random.h"

#define ROUNDS 200000

static struct random random_state = { .state = 1 };

static __u32 below(__u32 n)
{
	return random_below(&random_state, n);
}

/* Mostly common bytes, and all others. */
static __u8 some_byte(void)
{
	static const char common[] = "aZ09-az \t\r\n:;_@[`{/\x7f\x80\xff";

	return below(4) ? (__u8)common[below(sizeof(common) - 1)] : below(256);
}

static bool is_of_name(__u8 c)
{
	return weir_is_digit(c) || c == '-' || (weir_lower(c) >= 'a' && weir_lower(c) <= 'z');
}

static void test_every_byte_in_every_place(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		for (__u32 place = 0; place < 8; place++) {
			__u8 bytes[8];
			__u64 lower;

			memset(bytes, 'q', sizeof(bytes));
			bytes[place] = c;
			assert_int_equal(weir_run_text(weir_run_word(bytes, 8)),
					 weir_is_text(c) && c != '\t' ? 8 : place);
			assert_int_equal(weir_run_is_text(weir_run_word(bytes, 8)), weir_is_text(c) && c != '\t');
			assert_int_equal(weir_run_name(weir_run_word(bytes, 8), &lower), is_of_name(c) ? 8 : place);
			if (is_of_name(c))
				assert_int_equal(lower >> 8 * place & 0xff, weir_lower(c));
		}
	}
}

/* Of the first mark alone, whatever is behind it. */
static void test_first_mark(void **state)
{
	(void)state;
	for (__u32 marked = 1; marked < 256; marked++) {
		__u64 marks = 0;

		for (__u32 n = 0; n < 8; n++)
			marks |= (__u64)(marked >> n & 1) << (8 * n + 7);
		assert_int_equal(weir_run_first_mark(marks), __builtin_ctz(marked));
		assert_int_equal(weir_run_first_mark(marks), weir_run_length(marks));
	}
}

static void test_short_words(void **state)
{
	static const __u8 text[] = "abcdefgh";
	__u64 lower;

	(void)state;
	for (__u32 n = 0; n <= 8; n++) {
		assert_int_equal(weir_run_text(weir_run_word(text, n)), n);
		assert_int_equal(weir_run_name(weir_run_word(text, n), &lower), n);
	}
}

static void test_any_word(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		__u32 text = 0, name = 0;
		__u8 bytes[8];
		__u64 lower;

		for (int n = 0; n < 8; n++)
			bytes[n] = some_byte();
		while (text < 8 && weir_is_text(bytes[text]) && bytes[text] != '\t')
			text++;
		while (name < 8 && is_of_name(bytes[name]))
			name++;
		assert_int_equal(weir_run_text(weir_run_word(bytes, 8)), text);
		assert_int_equal(weir_run_name(weir_run_word(bytes, 8), &lower), name);
	}
}

static void test_tokens(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct weir_framing one = {}, other = {};

		for (int runs = 1 + below(6); runs; runs--) {
			__u32 n = 1 + below(8), at = 0;
			__u8 bytes[8];

			do {
				bytes[at] = 1 + below(255);
				weir_token_byte(&one, bytes[at]);
			} while (++at < n);
			weir_token_bytes(&other, weir_run_word(bytes, n), n);
			assert_memory_equal(&one, &other, sizeof(one));
			one.gap = other.gap = below(20) == 0;
		}
	}
}

/* Whole lines: a field's name, its value, their end, the next name. */
static void test_heads(void **state)
{
	static const char head[] = "Connection: keep-alive, Upgrade\r\nX-Very-Long-Name-That-Is-No-Token: \x80 v\r\n"
				   "Expect:  100-continue \r\nA:\r\nContent-Length: 12\r\n\r\n";

	(void)state;
	for (size_t most = 1; most <= 8; most++) {
		struct weir_framing one = { .state = WEIR_AT_LINE }, other = one;
		size_t at = 0, taken = 0;

		while (at < sizeof(head) - 1) {
			size_t left = sizeof(head) - 1 - at;
			__u32 n = weir_framing_take(&other,
						    weir_run_word((const __u8 *)head + at, left < most ? left : most));

			taken += n;
			if (!n) {
				other.position++;
				assert_true(weir_field_byte(&other, head[at]) >= 0);
			}
			for (n = n ? n : 1; n; n--) {
				one.position++;
				assert_true(weir_field_byte(&one, head[at++]) >= 0);
			}
			assert_memory_equal(&one, &other, sizeof(one));
		}
		assert_true(taken > 60);
		assert_int_equal(one.left, 12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_in_every_place),
		cmocka_unit_test(test_first_mark),
		cmocka_unit_test(test_short_words),
		cmocka_unit_test(test_any_word),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
