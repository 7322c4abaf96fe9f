/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"

static const struct unit {
	const char *name;
	__u64 ns;
} units[] = {
	{ "h", 3600 * WEIR_NS_PER_S },
	{ "m", 60 * WEIR_NS_PER_S },
	{ "s", WEIR_NS_PER_S },
	{ "ms", 1000000 },
	{ "us", 1000 },
	{ "ns", 1 },
};
#define UNITS (sizeof(units) / sizeof(*units))
#define SECONDS 2 /* their index */

/* Reads digits, and says how many there were. The value stops growing above DURATION_MAX_NS. */
static size_t read_number(const char *text, __u64 *value)
{
	size_t n = 0;

	for (*value = 0; text[n] >= '0' && text[n] <= '9'; n++) {
		if (*value <= DURATION_MAX_NS / 10)
			*value = *value * 10 + (text[n] - '0');
		else
			*value = DURATION_MAX_NS + 1;
	}
	return n;
}

/* The index of the unit whose name is the whole word at `text`, or UNITS. */
static size_t find_unit(const char *text, size_t *length)
{
	size_t i = 0;

	*length = strspn(text, "abcdefghijklmnopqrstuvwxyz");
	while (i < UNITS && (strlen(units[i].name) != *length || memcmp(units[i].name, text, *length) != 0))
		i++;
	return i;
}

static bool add(__u64 *sum, __u64 count, __u64 unit_ns)
{
	if (count > (DURATION_MAX_NS - *sum) / unit_ns)
		return false;
	*sum += count * unit_ns;
	return true;
}

/* What has no unit is in `plain`, if that is a unit. */
static int parse(const char *text, size_t plain, __u64 *ns, struct error *err)
{
	const char *p = text;
	size_t next = 0; /* the largest unit that may still come */
	bool fits = true;
	__u64 sum = 0;

	do {
		__u64 count;
		size_t length, digits = read_number(p, &count), unit = find_unit(p + digits, &length);

		if (p == text && !p[digits])
			unit = plain;
		if (!digits || unit == UNITS || unit < next)
			return error_set(
				err, -EINVAL,
				"\"%s\" is not a duration: whole numbers with h, m, s, ms, us or ns, like 5ms or "
				"1h30m",
				text);
		fits = fits && add(&sum, count, units[unit].ns);
		next = unit + 1;
		p += digits + length;
	} while (*p);
	if (!fits)
		return error_set(err, -EINVAL, "\"%s\" is too long (at most 292 years)", text);
	*ns = sum;
	return 0;
}

int duration_parse(const char *text, __u64 *ns, struct error *err)
{
	return parse(text, strcmp(text, "0") == 0 ? SECONDS : UNITS, ns, err);
}

int duration_parse_seconds(const char *text, __u64 *ns, struct error *err)
{
	return parse(text, SECONDS, ns, err);
}

void duration_format(__u64 ns, char text[static DURATION_TEXT])
{
	const struct unit *unit = ns ? units : &units[SECONDS];

	while (ns % unit->ns)
		unit++;
	snprintf(text, DURATION_TEXT, "%llu%s", ns / unit->ns, unit->name);
}
