/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/rate.h"
#include "model/backoff_text.h"
#include "model/parse.h"

/* Cuts `text` at the first `separator`; what is behind it, or NULL without one. */
static char *cut(char *text, const char *separator)
{
	char *found = strstr(text, separator);

	if (!found)
		return NULL;
	*found = '\0';
	return found + strlen(separator);
}

static int parse_exponential(char *base, struct weir_backoff *policy, struct error *err)
{
	char *max = cut(base, "..");

	if (!max)
		return error_set(err, -EINVAL, "the first delay and the longest are missing, like 5ms..1000s");
	if (duration_parse(base, &policy->base_ns, err) || duration_parse(max, &policy->max_ns, err))
		return -EINVAL;
	if (!policy->base_ns)
		return error_set(err, -EINVAL, "the first delay must be longer than 0");
	if (policy->base_ns > policy->max_ns)
		return error_set(err, -EINVAL, "the first delay, %s, is longer than the longest, %s", base, max);
	return 0;
}

static int parse_fast_slow(char *fast, struct weir_backoff *policy, struct error *err)
{
	char *slow = cut(fast, ","), *attempts = slow ? cut(slow, ",") : NULL;
	__u64 count;

	if (!attempts)
		return error_set(err, -EINVAL, "two delays and a number of failures are needed, like 1s,30s,3");
	if (duration_parse(fast, &policy->fast_ns, err) || duration_parse(slow, &policy->slow_ns, err) ||
	    parse_number(attempts, ~0U, &count, err))
		return -EINVAL;
	policy->attempts = count;
	return 0;
}

static int parse_bucket(char *qps, struct weir_backoff *policy, struct error *err)
{
	char *tokens = cut(qps, "/");
	__u64 per_ns, burst;

	if (!tokens)
		return error_set(err, -EINVAL, "a rate and a burst are needed, like 10/100");
	if (weir_qps_parse(qps, &per_ns) || !per_ns)
		return error_set(
			err, -EINVAL,
			"\"%s\" is not a rate a second (more than 0, up to 1000000000, at most 9 digits after the point)",
			qps);
	if (weir_burst_parse(tokens, &burst) || !burst)
		return error_set(err, -EINVAL, "\"%s\" is not a burst (a whole number, 1 to 1000000000)", tokens);
	policy->bucket = weir_rate_always(per_ns, burst);
	return 0;
}

static int parse_max_wait(char *wait, struct weir_backoff *policy, struct error *err)
{
	if (duration_parse(wait, &policy->max_wait_ns, err))
		return -EINVAL;
	if (!policy->max_wait_ns)
		return error_set(err, -EINVAL, "the longest wait is 0: use off");
	return 0;
}

/* In the order in which they are printed. */
static const struct part {
	const char *name;
	enum weir_backoff_parts bit;
	int (*parse)(char *text, struct weir_backoff *policy, struct error *err);
} parts[] = {
	{ "exponential", WEIR_BACKOFF_EXPONENTIAL, parse_exponential },
	{ "fast-slow", WEIR_BACKOFF_FAST_SLOW, parse_fast_slow },
	{ "bucket", WEIR_BACKOFF_BUCKET, parse_bucket },
	{ "max-wait", WEIR_BACKOFF_MAX_WAIT, parse_max_wait },
};
#define PARTS (sizeof(parts) / sizeof(*parts))

static const struct part *find_part(const char *name)
{
	for (size_t i = 0; i < PARTS; i++)
		if (strcmp(parts[i].name, name) == 0)
			return &parts[i];
	return NULL;
}

static int parse_part(char *name, struct weir_backoff *policy, struct error *err)
{
	char *value = cut(name, ":");
	const struct part *part = find_part(name);
	struct error why;

	if (!part || !value)
		return error_set(
			err, -EINVAL,
			"\"%s\" is not a back-off: exponential:BASE..MAX, fast-slow:FAST,SLOW,ATTEMPTS, bucket:QPS/BURST, "
			"max-wait:TIME, several joined by +, or off",
			name);
	if (policy->parts & part->bit)
		return error_set(err, -EINVAL, "%s is there twice", name);
	if (part->parse(value, policy, &why))
		return error_set(err, -EINVAL, "%s: %s", name, why.text);
	policy->parts |= part->bit;
	return 0;
}

int backoff_parse(const char *text, struct weir_backoff *policy, struct error *err)
{
	CLEANUP_FREE char *copy = strdup(text);
	struct weir_backoff parsed = {};

	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	if (strcmp(text, "off") != 0) {
		for (char *part = copy, *rest; part; part = rest) {
			rest = cut(part, "+");
			if (parse_part(part, &parsed, err))
				return -EINVAL;
		}
		if (parsed.parts == WEIR_BACKOFF_MAX_WAIT)
			return error_set(err, -EINVAL, "max-wait needs another part");
	}
	*policy = parsed;
	return 0;
}

static int format_part(const struct weir_backoff *policy, enum weir_backoff_parts part, char *text, size_t n)
{
	char one[DURATION_TEXT], other[DURATION_TEXT];

	switch (part) {
	case WEIR_BACKOFF_EXPONENTIAL:
		duration_format(policy->base_ns, one);
		duration_format(policy->max_ns, other);
		return snprintf(text, n, "exponential:%s..%s", one, other);
	case WEIR_BACKOFF_FAST_SLOW:
		duration_format(policy->fast_ns, one);
		duration_format(policy->slow_ns, other);
		return snprintf(text, n, "fast-slow:%s,%s,%u", one, other, policy->attempts);
	case WEIR_BACKOFF_BUCKET:
		weir_qps_format(policy->bucket.rates[0].per_ns, one, sizeof(one));
		return snprintf(text, n, "bucket:%s/%llu", one, policy->bucket.rates[0].burst);
	case WEIR_BACKOFF_MAX_WAIT:
		duration_format(policy->max_wait_ns, one);
		return snprintf(text, n, "max-wait:%s", one);
	}
	return 0;
}

void backoff_format(const struct weir_backoff *policy, char text[static BACKOFF_TEXT])
{
	size_t length = 0;

	snprintf(text, BACKOFF_TEXT, "off");
	for (size_t i = 0; i < PARTS; i++) {
		if (!(policy->parts & parts[i].bit))
			continue;
		if (length)
			text[length++] = '+';
		length += format_part(policy, parts[i].bit, text + length, BACKOFF_TEXT - length);
	}
}
