/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/rate.h"

#define FRACTION_DIGITS 9 /* of WEIR_QPS */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads digits up to the first other character, which *end points to. The value stops growing above `max`. */
static __u64 parse_digits(const char *text, __u64 max, const char **end)
{
	__u64 value = 0;

	for (; is_digit(*text); text++) {
		if (value <= max)
			value = value * 10 + (*text - '0');
	}
	*end = text;
	return value;
}

/* k or M behind a number, which *end is moved behind. */
static __u64 parse_thousands(const char **end)
{
	if (**end != 'k' && **end != 'M')
		return 1;
	return *(*end)++ == 'k' ? 1000 : 1000000;
}

/* /s, /m or /h behind a number: its seconds. 0: neither that nor the end. */
static __u64 parse_per(const char *end)
{
	if (!*end)
		return 1;
	if (end[0] != '/' || !end[1] || end[2])
		return 0;
	return end[1] == 's' ? 1 : end[1] == 'm' ? 60 : end[1] == 'h' ? 3600 : 0;
}

int weir_burst_parse(const char *text, __u64 *burst)
{
	const char *end;
	__u64 value = parse_digits(text, WEIR_BURST_MAX, &end);

	if (end == text)
		return -EINVAL;
	value *= parse_thousands(&end);
	if (*end)
		return -EINVAL;
	if (value > WEIR_BURST_MAX)
		return -ERANGE;
	*burst = value;
	return 0;
}

int weir_qps_parse(const char *text, __u64 *per_ns)
{
	const char *end;
	__u64 whole = parse_digits(text, (__u64)WEIR_QPS_MAX * 3600, &end), fraction = 0, seconds;
	unsigned __int128 value;

	if (end == text)
		return -EINVAL;
	if (*end == '.') {
		const char *digits = end + 1;
		ptrdiff_t count;

		fraction = parse_digits(digits, WEIR_QPS, &end);
		count = end - digits;
		if (count < 1 || count > FRACTION_DIGITS)
			return -EINVAL;
		for (; count < FRACTION_DIGITS; count++)
			fraction *= 10;
	}
	value = ((unsigned __int128)whole * WEIR_QPS + fraction) * parse_thousands(&end);
	seconds = parse_per(end);
	if (!seconds || (value && value < seconds))
		return -EINVAL;
	if (value / seconds > (unsigned __int128)WEIR_QPS_MAX * WEIR_QPS)
		return -ERANGE;
	*per_ns = value / seconds;
	return 0;
}

void weir_qps_format(__u64 per_ns, char *buf, size_t n)
{
	__u64 fraction = per_ns % WEIR_QPS;
	int digits = FRACTION_DIGITS;

	if (!fraction) {
		snprintf(buf, n, "%llu", per_ns / WEIR_QPS);
		return;
	}
	for (; fraction % 10 == 0; fraction /= 10)
		digits--;
	snprintf(buf, n, "%llu.%0*llu", per_ns / WEIR_QPS, digits, fraction);
}
