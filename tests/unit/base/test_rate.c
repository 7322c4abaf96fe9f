/* SPDX-License-Identifier: GPL-2.0 */
/* Rates and bursts as text, and back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rate.h"

static void test_qps_text(void **state)
{
	static const struct {
		const char *text;
		__u64 per_ns;
		const char *shortest;
	} good[] = {
		{ "0", 0, "0" },
		{ "0.0", 0, "0" },
		{ "5", 5 * WEIR_QPS, "5" },
		{ "0.5", WEIR_QPS / 2, "0.5" },
		{ "005.50", 5500000000, "5.5" },
		{ "0.333333333", 333333333, "0.333333333" },
		{ "0.010", 10000000, "0.01" },
		{ "0.000000001", 1, "0.000000001" },
		{ "100", 100 * WEIR_QPS, "100" },
		{ "999999999.999999999", WEIR_TOKEN - 1, "999999999.999999999" },
		{ "1000000000", WEIR_TOKEN, "1000000000" },
		{ "1000000000.000000000", WEIR_TOKEN, "1000000000" },
		{ "10/s", 10 * WEIR_QPS, "10" },
		{ "100/m", 1666666666, "1.666666666" },
		{ "0.5/m", 8333333, "0.008333333" },
		{ "36/h", WEIR_QPS / 100, "0.01" },
		{ "1k", 1000 * WEIR_QPS, "1000" },
		{ "1.5k/m", 25 * WEIR_QPS, "25" },
		{ "0.000000001M", 1000000, "0.001" },
		{ "1000M", WEIR_TOKEN, "1000000000" },
		{ "3600000000k/h", WEIR_TOKEN, "1000000000" },
		{ "0/h", 0, "0" },
	};
	static const struct {
		const char *text;
		int error;
	} bad[] = {
		{ "", -EINVAL },
		{ ".", -EINVAL },
		{ ".5", -EINVAL },
		{ "5.", -EINVAL },
		{ "-1", -EINVAL },
		{ "+1", -EINVAL },
		{ " 1", -EINVAL },
		{ "1 ", -EINVAL },
		{ "1e3", -EINVAL },
		{ "12abc", -EINVAL },
		{ "1.2.3", -EINVAL },
		{ "1,5", -EINVAL },
		{ "0x10", -EINVAL },
		{ "inf", -EINVAL },
		{ "nan", -EINVAL },
		{ "0.0000000001", -EINVAL },
		{ "1000000001", -ERANGE },
		{ "1000000000.000000001", -ERANGE },
		{ "1\n", -EINVAL },
		{ "18446744073709551617", -ERANGE },
		{ "1001M", -ERANGE },
		{ "3600000001k/h", -ERANGE },
		{ "1/", -EINVAL },
		{ "1/d", -EINVAL },
		{ "1/ms", -EINVAL },
		{ "1m", -EINVAL },
		{ "k", -EINVAL },
		{ "1kk", -EINVAL },
		{ "1/sk", -EINVAL },
		{ "1K", -EINVAL },
		{ "0.000000001/m", -EINVAL },
		{ "99999999999999999999999999M", -ERANGE },
	};
	char text[WEIR_QPS_TEXT], cut[4] = "xxx";
	__u64 per_ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(weir_qps_parse(good[i].text, &per_ns), 0);
		assert_int_equal(per_ns, good[i].per_ns);
		weir_qps_format(per_ns, text, sizeof(text));
		assert_string_equal(text, good[i].shortest);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		per_ns = 42;
		assert_int_equal(weir_qps_parse(bad[i].text, &per_ns), bad[i].error);
		assert_int_equal(per_ns, 42);
	}
	weir_qps_format(333333333, cut, sizeof(cut));
	assert_string_equal(cut, "0.3");
}

static void test_qps_text_round_trip(void **state)
{
	__u64 per_ns = 1, back;
	char text[WEIR_QPS_TEXT];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		per_ns = (per_ns * 6364136223846793005ULL + 1442695040888963407ULL) % (WEIR_TOKEN >> i % 60);
		weir_qps_format(per_ns, text, sizeof(text));
		assert_int_equal(weir_qps_parse(text, &back), 0);
		assert_int_equal(back, per_ns);
	}
}

static void test_burst_text(void **state)
{
	static const char *const bad[] = { "", "-1", "+1", "1.0", " 1", "1 ", "1e3", "ten", "0x1" };
	__u64 burst = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(weir_burst_parse(bad[i], &burst), -EINVAL);
	assert_int_equal(weir_burst_parse("1000000001", &burst), -ERANGE);
	assert_int_equal(weir_burst_parse("99999999999999999999999", &burst), -ERANGE);
	assert_int_equal(burst, 42);
	assert_int_equal(weir_burst_parse("1001M", &burst), -ERANGE);
	assert_int_equal(weir_burst_parse("2k", &burst), 0);
	assert_int_equal(burst, 2000);
	assert_int_equal(weir_burst_parse("0", &burst), 0);
	assert_int_equal(burst, 0);
	assert_int_equal(weir_burst_parse("1000000000", &burst), 0);
	assert_int_equal(burst, WEIR_BURST_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_qps_text),
		cmocka_unit_test(test_qps_text_round_trip),
		cmocka_unit_test(test_burst_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
