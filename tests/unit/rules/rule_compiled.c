/* SPDX-License-Identifier: GPL-2.0 */
/* Compiled rules, against what the request machine and the look-ups of the kernel make of a request's bytes. */
#include "rule_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "weir/http/match_path.h"

#include "../../array_size.h"
#include "../http/request_trace.h"
#include "model/parse.h"
#include "rules/sources.h"

static __u64 name_subject(void *context, enum weir_name_kind kind, const void *bytes, size_t length)
{
	(void)context;
	return request_subject(kind, bytes, length);
}

static int group_bit(void *context, const char *name)
{
	(void)context;
	for (size_t i = 0; i < RULE_GROUPS; i++)
		if (strcmp(rule_groups[i], name) == 0)
			return i == 0 ? 0 : (int)i + 62; /* in both words */
	return -1;
}

const struct rules_names rule_names = { .subject = name_subject, .group = group_bit };

static __u64 user_subject(const struct rule_request *r)
{
	struct subject subject;

	assert_int_equal(parse_subject(WEIR_KEY_USER, r->user, &subject, NULL), 0);
	if (subject.kind == WEIR_NAME_ADDRESS)
		return request_subject(subject.kind, (const char *)subject.address, sizeof(subject.address));
	return request_subject(subject.kind, subject.text, strlen(subject.text));
}

/* Only where a rule asks, as the kernel does. */
static void meet(const struct rules *rules, struct weir_vector *set, enum weir_dimension dimension, __u64 value)
{
	if (rules->value.dimensions >> dimension & 1)
		weir_vector_meet(set, rules_find(rules, dimension, value));
}

static void meet_subject(const struct rules *rules, struct weir_vector *set, const struct rule_request *r)
{
	struct weir_vector either;

	if (!(rules->value.dimensions >> WEIR_DIMENSION_SUBJECT & 1))
		return;
	either = *rules_find(rules, WEIR_DIMENSION_SUBJECT, user_subject(r));
	for (size_t i = 0; i < ARRAY_SIZE(r->groups) && r->groups[i]; i++) {
		int bit = group_bit(NULL, r->groups[i]);
		const struct weir_vector *v = rules_find(rules, WEIR_DIMENSION_GROUP, bit);

		if (v)
			weir_vector_join(&either, v);
	}
	weir_vector_meet(set, &either);
}

static void meet_path(const struct rules *rules, struct weir_vector *set, const struct weir_path *p)
{
	struct weir_vector either = rules->value.any[WEIR_DIMENSION_PATH];
	__u32 depth = weir_path_depth(p, (enum weir_paths)request_reading.paths);
	__u64 path = 0;

	if (!(rules->value.dimensions >> WEIR_DIMENSION_PATH & 1))
		return;
	for (__u32 n = 0; n <= depth && n <= WEIR_PATH_SEGMENTS; n++) {
		if (weir_path_is_below(p, depth, n) && rules->value.prefixes >> n & 1)
			weir_vector_join(&either, rules_find(rules, WEIR_DIMENSION_PATH, weir_path_below(path)));
		if (n < depth)
			path = weir_path_further(path, weir_path_subject(p, n));
	}
	if (depth <= WEIR_PATH_SEGMENTS)
		weir_vector_join(&either, rules_find(rules, WEIR_DIMENSION_PATH,
						     weir_path_exact(path, weir_path_is_open(p, depth))));
	weir_vector_meet(set, &either);
}

static void meet_source(const struct rules *rules, struct weir_vector *set, const char *source)
{
	struct datapath_cidr cidr;
	const struct weir_vector *v;

	if (!(rules->value.dimensions >> WEIR_DIMENSION_SOURCE & 1))
		return;
	assert_int_equal(parse_cidr(source, &cidr, NULL), 0);
	v = rules_source_find(rules, cidr.address);
	weir_vector_meet(set, v ?: &rules->value.any[WEIR_DIMENSION_SOURCE]);
}

static void parse_request(const struct rule_request *from, struct weir_request *r, struct weir_attributes *a)
{
	enum weir_frame_event event = WEIR_FRAME_MORE;
	char head[512];
	int length = snprintf(head, sizeof(head), "%s %s" V11, from->method, from->target);

	weir_request_start(r);
	for (int i = 0; i < length && event == WEIR_FRAME_MORE; i++)
		event = weir_request_byte(r, &request_reading, head[i]);
	assert_int_equal(event, WEIR_FRAME_HEAD);
	weir_attributes_of(r, &request_reading, a);
}

int rules_match_compiled(const struct rules *rules, const struct rule_request *from, __u16 limits[static LIMITS_MAX])
{
	struct weir_attributes a;
	struct weir_vector set;
	struct weir_request r;
	__u32 at = 0;
	int n = 0;

	parse_request(from, &r, &a);
	set = r.path.odd ? rules->value.odd : rules->value.all;
	meet_subject(rules, &set, from);
	meet(rules, &set, WEIR_DIMENSION_CALL,
	     weir_call(a.verb, a.flags & WEIR_ATTRIBUTE_LONG_RUNNING, a.flags & WEIR_ATTRIBUTE_RESOURCE));
	meet(rules, &set, WEIR_DIMENSION_API_GROUP, a.group);
	meet(rules, &set, WEIR_DIMENSION_RESOURCE, weir_pair(a.resource, a.subresource));
	meet(rules, &set, WEIR_DIMENSION_SUBRESOURCE, a.subresource);
	meet(rules, &set, WEIR_DIMENSION_NAMESPACE, a.namespace);
	meet_path(rules, &set, &r.path);
	meet_source(rules, &set, from->source);
	for (int step = 0; at < WEIR_RULES_MAX; step++) {
		__u16 limit = weir_match_step(&set, rules->value.rules, &at);

		assert_true(step < WEIR_MATCH_STEPS);
		if (limit == WEIR_RULE_EXEMPT)
			return -1;
		if (limit != WEIR_RULE_NOTHING)
			limits[n++] = limit;
	}
	return n;
}
