/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Looks for a request that meets too many limits: axis by axis, the rules that are left after each choice; a choice that
 * leaves few enough is not followed further.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/axes.h"

#define STEPS_MAX (1 << 18)

/* How many limits a set of rules is of. */
struct count {
	size_t limits, in_flight;
};

struct search {
	const struct rules *rules;
	bool in_flight[WEIR_SERVER_LIMITS]; /* by slot */
	struct rules_axis axes[RULES_AXES];
	const struct rules_place *chosen[RULES_AXES]; /* up to where the search stopped */
	size_t steps;
	struct weir_vector found; /* rules that are met together */
	bool sure;		  /* by some request, as far as the rules go; else it could not be ruled out */
};

static bool is_too_many(const struct count *count)
{
	return count->limits > WEIR_NAMED_MAX || count->in_flight > WEIR_SEAT_SLOTS;
}

static void count_limit(const struct search *s, __u16 limit, struct count *count)
{
	if (limit >= WEIR_SERVER_LIMITS)
		return;
	count->limits++;
	count->in_flight += s->in_flight[limit];
}

/* No request that meets some of these rules is charged to more limits than this. */
static struct count count_at_most(const struct search *s, const struct weir_vector *set)
{
	const struct weir_rule *rules = s->rules->value.rules;
	struct count count = { 0 };
	__u32 at = 0;
	bool found;

	while (at < WEIR_RULES_MAX && !is_too_many(&count)) {
		__u32 number = weir_vector_next(set, at, &found);

		at = number;
		if (!found)
			continue;
		count_limit(s, rules[number].limit, &count);
		at = rules[number].limit < WEIR_SERVER_LIMITS ? rules[number].next : number + 1;
	}
	return count;
}

/* A request that meets all of these rules is charged to just so many. */
static struct count count_exactly(const struct search *s, const struct weir_vector *set)
{
	struct count count = { 0 };
	__u32 at = 0;

	while (at < WEIR_RULES_MAX) {
		__u16 limit = weir_match_step(set, s->rules->value.rules, &at);

		if (limit == WEIR_RULE_EXEMPT)
			return (struct count){ 0 };
		count_limit(s, limit, &count);
	}
	return count;
}

/* Of the axes from this one on. True: s->found is set. */
static bool search(struct search *s, size_t axis, const struct weir_vector *set)
{
	struct count count = axis < RULES_AXES ? count_at_most(s, set) : count_exactly(s, set);
	bool enough = false;

	if (!is_too_many(&count))
		return false;
	if (axis == RULES_AXES || s->steps >= STEPS_MAX) {
		s->found = *set;
		s->sure = axis == RULES_AXES;
		return true;
	}
	for (size_t i = 0; i < s->axes[axis].n && !enough; i++) {
		struct weir_vector left = *set;

		s->steps++;
		s->chosen[axis] = &s->axes[axis].places[i];
		weir_vector_meet(&left, &s->chosen[axis]->vector);
		enough = search(s, axis + 1, &left);
	}
	return enough;
}

/* --- what is found, in words */

struct text {
	char bytes[sizeof(((struct error *)0)->text)];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
	size_t room = sizeof(text->bytes) - text->length;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->bytes + text->length, room, format, args);
	va_end(args);
	text->length += (size_t)n < room ? (size_t)n : room - 1;
}

/* "list, pods, user alice" */
static void say_request(const struct search *s, struct text *text)
{
	static const char *const words[RULES_AXES] = {
		[RULES_AXIS_SUBJECT] = "user ",	       [RULES_AXIS_CALL] = "",
		[RULES_AXIS_API_GROUP] = "API group ", [RULES_AXIS_RESOURCE] = "resource ",
		[RULES_AXIS_NAMESPACE] = "namespace ", [RULES_AXIS_PATH] = "path ",
		[RULES_AXIS_SOURCE] = "from ",
	};

	for (size_t i = 0; i < RULES_AXES && s->chosen[i]; i++)
		if (s->chosen[i]->what && *s->chosen[i]->what)
			say(text, "%s%s%s", text->length ? ", " : "", words[s->axes[i].id], s->chosen[i]->what);
}

/* The labels of the entries whose limits are met: of flow schemas the first alone. */
static void say_limits(const struct search *s, const struct rules_entry *entries, size_t n, struct text *text)
{
	const struct weir_rules *rules = &s->rules->value;
	bool schema = false;
	__u32 number = 0;

	for (size_t i = 0; i < n; i++) {
		__u32 end = number + rules_count(&entries[i]);
		bool met = false;

		for (; number < end; number++)
			met |= weir_vector_has(&s->found, number) && rules->rules[number].limit < WEIR_SERVER_LIMITS;
		if (!met || (schema && entries[i].schema))
			continue;
		schema |= entries[i].schema;
		say(text, "%s%s", text->length ? ", " : "", entries[i].label);
	}
}

static int complain(const struct search *s, const struct rules_entry *entries, size_t n, struct error *err)
{
	struct count count = s->sure ? count_exactly(s, &s->found) : count_at_most(s, &s->found);
	bool in_flight = count.limits <= WEIR_NAMED_MAX;
	struct text request = { 0 }, limits = { 0 };

	say_request(s, &request);
	say_limits(s, entries, n, &limits);
	return error_set(err, -E2BIG, "one request %s more than %d limits%s%s%s%s: %s",
			 s->sure ? "meets" : "could meet", in_flight ? WEIR_SEAT_SLOTS : WEIR_NAMED_MAX,
			 in_flight ? " of requests in flight" : "", request.length ? " (" : "", request.bytes,
			 request.length ? ")" : "", limits.bytes);
}

/* --- all of it */

/* Those that leave least come first. */
static int compare(const void *a, const void *b)
{
	const struct rules_axis *x = a, *y = b;

	return (x->most > y->most) - (x->most < y->most);
}

static int search_make(struct search *s, const struct rules_entry *entries, size_t n, const struct rules_names *names)
{
	for (size_t i = 0; i < RULES_AXES; i++)
		if (rules_axis_make(&s->axes[i], i, s->rules, entries, n, names))
			return -ENOMEM;
	qsort(s->axes, RULES_AXES, sizeof(*s->axes), compare);
	return 0;
}

int rules_check(const struct rules *rules, const struct rules_entry *entries, size_t n, const struct rules_names *names,
		struct error *err)
{
	struct search s = { .rules = rules };
	struct count count;
	int ret = 0;

	for (size_t i = 0; i < n; i++)
		if (entries[i].limit < WEIR_SERVER_LIMITS)
			s.in_flight[entries[i].limit] = entries[i].in_flight;
	count = count_at_most(&s, &rules->value.all);
	if (!is_too_many(&count))
		return 0;
	if (search_make(&s, entries, n, names))
		ret = error_set(err, -ENOMEM, "out of memory");
	else if (search(&s, 0, &rules->value.all))
		ret = complain(&s, entries, n, err);
	for (size_t i = 0; i < RULES_AXES; i++)
		free(s.axes[i].places);
	return ret;
}
