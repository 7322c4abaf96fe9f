/* SPDX-License-Identifier: GPL-2.0 */
/* Durations and back-off policies as text, and back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "model/backoff_text.h"

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		__u64 ns;
		const char *canonical;
	} good[] = {
		{ "0", 0, "0s" },
		{ "0s", 0, "0s" },
		{ "0h0m", 0, "0s" },
		{ "7ns", 7, "7ns" },
		{ "5us", 5000, "5us" },
		{ "1500us", 1500000, "1500us" },
		{ "5ms", 5000000, "5ms" },
		{ "1000ms", 1000000000, "1s" },
		{ "60s", 60000000000, "1m" },
		{ "90s", 90000000000, "90s" },
		{ "1000s", 1000000000000, "1000s" },
		{ "1m30s", 90000000000, "90s" },
		{ "1h30m", 5400000000000, "90m" },
		{ "024h", 86400000000000, "24h" },
		{ "1h1ns", 3600000000001, "3600000000001ns" },
		{ "2562047h47m16s854ms775us807ns", DURATION_MAX_NS, "9223372036854775807ns" },
	};
	static const char *const bad[] = {
		"",
		"s",
		"5",
		"5 s",
		"5sec",
		"5S",
		"-5s",
		"+5s",
		"1.5s",
		" 5s",
		"5s ",
		"1s1m",
		"1s1s",
		"5ms3",
		"1d",
		"0x5s",
		"00",
		"1h,30m",
		"5µs",
		"1m30s1",
		"9223372036854775808ns",
		"inf",
		"2562048h",
		"99999999999999999999999999s",
		"2562047h47m16s854ms775us808ns",
	};
	char text[DURATION_TEXT];
	struct error err;
	__u64 ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(duration_parse(good[i].text, &ns, &err), 0);
		assert_int_equal(ns, good[i].ns);
		duration_format(ns, text);
		assert_string_equal(text, good[i].canonical);
		assert_int_equal(duration_parse(text, &ns, &err), 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ns = 42;
		if (!duration_parse(bad[i], &ns, &err))
			fail_msg("\"%s\" is no duration", bad[i]);
		assert_non_null(strstr(err.text, bad[i]));
		assert_int_equal(ns, 42);
	}
	assert_int_equal(duration_parse("2562048h", &ns, NULL), -EINVAL);
	assert_int_equal(duration_parse("90", &ns, NULL), -EINVAL);
	assert_int_equal(duration_parse_seconds("90", &ns, NULL), 0);
	assert_int_equal(ns, 90 * WEIR_NS_PER_S);
	assert_int_equal(duration_parse_seconds("1m30s", &ns, NULL), 0);
	assert_int_equal(ns, 90 * WEIR_NS_PER_S);
	assert_int_equal(duration_parse_seconds("1m30", &ns, NULL), -EINVAL);
	assert_int_equal(duration_parse_seconds("", &ns, NULL), -EINVAL);
	assert_int_equal(duration_parse_seconds("9223372037", &ns, NULL), -EINVAL);
	duration_format(~0ULL, text);
	assert_string_equal(text, "18446744073709551615ns");
}

static void test_policies(void **state)
{
	static const struct {
		const char *text, *canonical;
	} good[] = {
		{ "off", "off" },
		{ "exponential:5ms..1000s", "exponential:5ms..1000s" },
		{ "exponential:1s..1s", "exponential:1s..1s" },
		{ "fast-slow:1s,30s,3", "fast-slow:1s,30s,3" },
		{ "fast-slow:0,0,0", "fast-slow:0s,0s,0" },
		{ "bucket:10/100", "bucket:10/100" },
		{ "bucket:0.50/1", "bucket:0.5/1" },
		{ "bucket:10/100+exponential:5ms..1000s", "exponential:5ms..1000s+bucket:10/100" },
		{ "max-wait:60s+bucket:1/1", "bucket:1/1+max-wait:1m" },
		{ "max-wait:9223372036854775807ns+bucket:999999999.999999999/1000000000+"
		  "fast-slow:9223372036854775807ns,9223372036854775807ns,4294967295+"
		  "exponential:9223372036854775807ns..9223372036854775807ns",
		  "exponential:9223372036854775807ns..9223372036854775807ns+"
		  "fast-slow:9223372036854775807ns,9223372036854775807ns,4294967295+"
		  "bucket:999999999.999999999/1000000000+max-wait:9223372036854775807ns" },
	};
	struct weir_backoff policy, again;
	char text[BACKOFF_TEXT];
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(backoff_parse(good[i].text, &policy, &err), 0);
		backoff_format(&policy, text);
		assert_string_equal(text, good[i].canonical);
		assert_int_equal(backoff_parse(text, &again, &err), 0);
		assert_memory_equal(&again, &policy, sizeof(policy));
	}
}

static void test_policy_values(void **state)
{
	const struct weir_backoff expected = {
		.parts = WEIR_BACKOFF_BUCKET | WEIR_BACKOFF_EXPONENTIAL | WEIR_BACKOFF_FAST_SLOW |
			 WEIR_BACKOFF_MAX_WAIT,
		.attempts = 3,
		.base_ns = 5000000,
		.max_ns = 1000 * WEIR_NS_PER_S,
		.fast_ns = WEIR_NS_PER_S,
		.slow_ns = 30 * WEIR_NS_PER_S,
		.max_wait_ns = 60 * WEIR_NS_PER_S,
		.bucket = weir_rate_always(10 * WEIR_QPS, 100),
	};
	struct weir_backoff policy;
	struct error err;

	(void)state;
	assert_int_equal(backoff_parse("exponential:5ms..1000s+fast-slow:1s,30s,3+bucket:10/100+max-wait:60s", &policy,
				       &err),
			 0);
	assert_memory_equal(&policy, &expected, sizeof(policy));
}

static void test_bad_policies(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "\"\" is not a back-off: exponential:BASE..MAX, fast-slow:FAST,SLOW,ATTEMPTS, bucket:QPS/BURST, "
		      "max-wait:TIME, several joined by +, or off" },
		{ "on", "\"on\" is not a back-off" },
		{ "linear:5ms", "\"linear\" is not a back-off" },
		{ "exponential", "\"exponential\" is not a back-off" },
		{ "Exponential:5ms..1s", "\"Exponential\" is not a back-off" },
		{ "off+bucket:1/1", "\"off\" is not a back-off" },
		{ "bucket:1/1+", "\"\" is not a back-off" },
		{ "+bucket:1/1", "\"\" is not a back-off" },
		{ " bucket:1/1", "\" bucket\" is not a back-off" },
		{ "bucket:1/1+bucket:2/2", "bucket is there twice" },
		{ "exponential:", "exponential: the first delay and the longest are missing, like 5ms..1000s" },
		{ "exponential:5ms-1s", "exponential: the first delay and the longest are missing" },
		{ "exponential:5..1s", "exponential: \"5\" is not a duration" },
		{ "exponential:5ms..", "exponential: \"\" is not a duration" },
		{ "exponential:5ms..1s..2s", "exponential: \"1s..2s\" is not a duration" },
		{ "exponential:0s..1s", "exponential: the first delay must be longer than 0" },
		{ "exponential:2s..1s", "exponential: the first delay, 2s, is longer than the longest, 1s" },
		{ "fast-slow:1s,30s", "fast-slow: two delays and a number of failures are needed, like 1s,30s,3" },
		{ "fast-slow:1s,30s,", "fast-slow: \"\" is not a whole number" },
		{ "fast-slow:1s,30s,3,4", "fast-slow: \"3,4\" is not a whole number" },
		{ "fast-slow:1s,x,3", "fast-slow: \"x\" is not a duration" },
		{ "fast-slow:1s,30s,-1", "fast-slow: \"-1\" is not a whole number" },
		{ "fast-slow:1s,30s,4294967296", "fast-slow: \"4294967296\" is too large (at most 4294967295)" },
		{ "bucket:10", "bucket: a rate and a burst are needed, like 10/100" },
		{ "bucket:0/5", "bucket: \"0\" is not a rate a second" },
		{ "bucket:ten/5", "bucket: \"ten\" is not a rate a second" },
		{ "bucket:5/0", "bucket: \"0\" is not a burst (a whole number, 1 to 1000000000)" },
		{ "bucket:5/1/1", "bucket: \"1/1\" is not a burst" },
		{ "max-wait:0s+bucket:1/1", "max-wait: the longest wait is 0: use off" },
		{ "max-wait:60s", "max-wait needs another part" },
		{ "max-wait:+bucket:1/1", "max-wait: \"\" is not a duration" },
	};
	struct weir_backoff policy, untouched;
	struct error err;

	(void)state;
	memset(&untouched, 0x5a, sizeof(untouched));
	policy = untouched;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (backoff_parse(bad[i].text, &policy, &err) != -EINVAL)
			fail_msg("\"%s\" is no policy", bad[i].text);
		if (strncmp(err.text, bad[i].why, strlen(bad[i].why)) != 0)
			fail_msg("\"%s\": %s", bad[i].text, err.text);
		assert_memory_equal(&policy, &untouched, sizeof(policy));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_policy_values),
		cmocka_unit_test(test_bad_policies),
	};

	return cmocka_run_group_tests_name("backoff_text", tests, NULL, NULL);
}
