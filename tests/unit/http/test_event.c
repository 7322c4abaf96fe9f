/* SPDX-License-Identifier: GPL-2.0 */
#include "../../array_size.h"
#include "../../event_reference.h"
#include "../../random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BODY_MAX 8192
#define RANDOM_EVENTS 20000

static const __u64 seed[2] = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL };

static enum weir_event_outcome read_body(struct weir_event *e, enum weir_event_schema schema, const char *body,
					 size_t length)
{
	enum weir_event_outcome outcome = WEIR_EVENT_MORE;

	weir_event_start(e, schema);
	for (size_t i = 0; i < length && outcome == WEIR_EVENT_MORE; i++)
		outcome = weir_event_byte(e, seed, body[i]);
	return outcome;
}

static __u64 subject_of(enum weir_event_schema schema, const char *body)
{
	struct weir_event e;

	assert_int_equal(read_body(&e, schema, body, strlen(body)), WEIR_EVENT_WHOLE);
	return weir_event_subject(&e, seed);
}

static const char core_event[] =
	"{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-1.17\",\"namespace\":\"shop\"},"
	"\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web-1\",\"uid\":\"u-1\","
	"\"apiVersion\":\"v1\",\"resourceVersion\":\"9\",\"fieldPath\":\"spec.containers{web}\"},\"reason\":\"BackOff\","
	"\"message\":\"Back-off restarting\",\"source\":{\"component\":\"kubelet\",\"host\":\"node-3\"},"
	"\"firstTimestamp\":null,\"count\":3,\"type\":\"Warning\"}\n";

static const char events_event[] =
	"{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"x\",\"namespace\":\"shop\"},"
	"\"deprecatedSource\":{\"component\":\"kubelet\",\"host\":\"node-3\"},\"reportingController\":\"kubelet\","
	"\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"u-1\"}}";

static void check_text(const struct weir_event *e, enum weir_event_field field, const char *body, const char *text)
{
	assert_int_equal(e->lengths[field], strlen(text));
	assert_memory_equal(body + e->offsets[field], text, strlen(text));
}

static void test_where_the_fields_are(void **state)
{
	struct weir_event e;

	(void)state;
	assert_int_equal(read_body(&e, WEIR_EVENT_CORE, core_event, strlen(core_event)), WEIR_EVENT_WHOLE);
	check_text(&e, WEIR_EVENT_COMPONENT, core_event, "kubelet");
	check_text(&e, WEIR_EVENT_HOST, core_event, "node-3");
	check_text(&e, WEIR_EVENT_KIND, core_event, "Pod");
	check_text(&e, WEIR_EVENT_NAMESPACE, core_event, "shop");
	check_text(&e, WEIR_EVENT_NAME, core_event, "web-1");
	check_text(&e, WEIR_EVENT_UID, core_event, "u-1");
	check_text(&e, WEIR_EVENT_API_VERSION, core_event, "v1");
}

static void test_both_schemas_are_one_event(void **state)
{
	(void)state;
	assert_int_equal(subject_of(WEIR_EVENT_CORE, core_event), subject_of(WEIR_EVENT_EVENTS, events_event));
	/* and what the one calls them the other does not know */
	assert_int_equal(subject_of(WEIR_EVENT_CORE, events_event), subject_of(WEIR_EVENT_CORE, "{}"));
	assert_int_equal(subject_of(WEIR_EVENT_EVENTS, core_event), subject_of(WEIR_EVENT_EVENTS, "{}"));
}

/* Incomplete wherever it is cut; the machine may be copied there. */
static void test_every_cut(void **state)
{
	size_t length = strlen(core_event);

	(void)state;
	for (size_t cut = 0; cut + 1 < length; cut++) {
		enum weir_event_outcome outcome = WEIR_EVENT_MORE;
		struct weir_event e, rest;

		assert_int_equal(read_body(&e, WEIR_EVENT_CORE, core_event, cut), WEIR_EVENT_MORE);
		rest = e;
		memset(&e, 0xa5, sizeof(e));
		for (size_t i = cut; i < length && outcome == WEIR_EVENT_MORE; i++)
			outcome = weir_event_byte(&rest, seed, core_event[i]);
		assert_int_equal(outcome, WEIR_EVENT_WHOLE);
		assert_int_equal(weir_event_subject(&rest, seed), subject_of(WEIR_EVENT_CORE, core_event));
	}
}

#define SAME "{\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\"}}"

static void test_same_event(void **state)
{
	static const char *const bodies[] = {
		SAME,
		"{\"involvedObject\":{\"name\":\"n\",\"kind\":\"K\"},\"source\":{\"host\":\"h\",\"component\":\"c\"}}",
		" {\n\"source\" : { \"component\" : \"c\" , \"host\" : \"h\" } ,\n"
		"\"involvedObject\":{\t\"kind\": \"K\",\r\n\"name\": \"n\" }\n}",
		/* escaped, names of members too */
		"{\"s\\u006furce\":{\"component\":\"\\u0063\",\"host\":\"h\"},\"involvedObject\":{\"k\\u0069nd\":\"K\","
		"\"name\":\"\\u006E\"}}",
		/* the last one counts, of whole objects what it says */
		"{\"source\":{\"component\":\"x\",\"host\":\"h\",\"component\":\"c\"},\"involvedObject\":"
		"{\"name\":\"n\",\"kind\":\"k\",\"kind\":\"K\"}}",
		"{\"source\":{\"component\":\"c\",\"host\":\"x\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\"},"
		"\"source\":{\"host\":\"h\"},\"source\":{}}",
		/* missing, empty and null are one */
		"{\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\","
		"\"uid\":\"\",\"namespace\":null}}",
		"{\"source\":null,\"source\":{\"component\":\"c\",\"host\":null,\"host\":\"h\"},"
		"\"involvedObject\":{\"kind\":\"\",\"kind\":null,\"kind\":\"K\",\"name\":\"n\"},\"source\":null}",
		/* other members, of every kind, and the same names elsewhere */
		"{\"source\":{\"component\":\"c\",\"host\":\"h\",\"name\":\"x\",\"deep\":{\"host\":\"x\"},\"list\":[\"x\"]},"
		"\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\",\"host\":\"x\",\"deep\":[{\"name\":\"x\"}]}}",
		"{\"Source\":{\"component\":\"x\"},\"source\":{\"component\":\"c\",\"host\":\"h\",\"Host\":\"x\"},"
		"\"involvedobject\":{\"kind\":\"x\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\",\"NAME\":\"x\"}}",
		"{\"a\":1,\"b\":[{\"source\":{\"component\":\"x\"}},{}],\"component\":\"x\",\"name\":\"x\",\"metadata\":"
		"{\"name\":\"x\",\"source\":{\"host\":\"x\"}},\"related\":{\"kind\":\"x\",\"name\":\"x\"},"
		"\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\"},"
		"\"regarding\":{\"name\":\"x\"},\"deprecatedSource\":{\"host\":\"x\"},\"sourcesource\":\"x\"}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		assert_int_equal(subject_of(WEIR_EVENT_CORE, bodies[i]), subject_of(WEIR_EVENT_CORE, SAME));
}

/* Every field counts, with its case, and none is taken for another one. */
static void test_other_events(void **state)
{
	static const char *const bodies[] = {
		SAME,
		"{}",
		"{\"source\":{\"component\":\"c\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\"}}",
		"{\"source\":{\"component\":\"ch\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\"}}",
		"{\"source\":{\"component\":\"h\",\"host\":\"c\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\"}}",
		"{\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"N\"}}",
		"{\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"Kn\"}}",
		"{\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"K\",\"namespace\":\"n\"}}",
		"{\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"K\",\"uid\":\"n\"}}",
		"{\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"K\",\"apiVersion\":\"n\"}}",
		"{\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n\\u0000\"}}",
		"{\"source\":{\"component\":\"c\",\"host\":\"h\"},\"involvedObject\":{\"kind\":\"K\",\"name\":\"n \"}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(subject_of(WEIR_EVENT_CORE, bodies[i]),
					     subject_of(WEIR_EVENT_CORE, bodies[j]));
}

/* The last byte of each tells that there is no key to be had. */
static void test_lost(void **state)
{
	static const char *const bodies[] = {
		"k",
		"[",
		"{\"a\":1]",
		"{\"source\":1",
		"{\"source\":\"",
		"{\"source\":[",
		"{\"source\":t",
		"{\"involvedObject\":[",
		"{\"source\":{\"host\":1",
		"{\"source\":{\"host\":f",
		"{\"source\":{\"host\":{",
		"{\"source\":{\"host\":[",
		"{\"source\":{\"host\":\"x\",\"host\":n",
		"{\"source\":{\"host\":\"x\"},\"source\":{\"host\":n",
		"{\"source\":{\"host\":\"\xff",
		"{\"source\":{\"host\":\"\\ud800\"",
	};
	struct weir_event e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		size_t length = strlen(bodies[i]);

		assert_int_equal(read_body(&e, WEIR_EVENT_CORE, bodies[i], length - 1), WEIR_EVENT_MORE);
		assert_int_equal(weir_event_byte(&e, seed, bodies[i][length - 1]), WEIR_EVENT_LOST);
	}
}

static void test_no_longer_than_that(void **state)
{
	static char body[WEIR_EVENT_BODY_MAX + 2];
	struct weir_event e;

	(void)state;
	memset(body, ' ', sizeof(body));
	body[0] = '{';
	body[WEIR_EVENT_BODY_MAX - 1] = '}';
	assert_int_equal(read_body(&e, WEIR_EVENT_CORE, body, sizeof(body)), WEIR_EVENT_WHOLE);
	body[WEIR_EVENT_BODY_MAX - 1] = ' ';
	body[WEIR_EVENT_BODY_MAX] = '}';
	assert_int_equal(read_body(&e, WEIR_EVENT_CORE, body, WEIR_EVENT_BODY_MAX), WEIR_EVENT_MORE);
	assert_int_equal(read_body(&e, WEIR_EVENT_CORE, body, sizeof(body)), WEIR_EVENT_LOST);
}

static const char *one_of(struct random *random, const char *const texts[], size_t count)
{
	return texts[random_below(random, count)];
}

static void put(char *body, const char *text)
{
	size_t length = strlen(body);

	assert_true(length + strlen(text) < BODY_MAX);
	strcpy(body + length, text);
}

static void put_space(struct random *random, char *body)
{
	static const char *const spaces[] = { "", "", "", "", " ", "\n\t", "\r\n  " };

	put(body, one_of(random, spaces, ARRAY_SIZE(spaces)));
}

static void put_string(struct random *random, char *body, const char *text)
{
	char escaped[8];

	put(body, "\"");
	for (; *text; text++) {
		sprintf(escaped, random_chance(random, 50) && *text > 0 ? "\\u%04x" : "%c", *text);
		put(body, escaped);
	}
	put(body, "\"");
}

static void put_value(struct random *random, char *body)
{
	static const char *const values[] = {
		"0",
		"-12.5e3",
		"true",
		"null",
		"\"text\"",
		"\"\\\"{\"",
		"[]",
		"{}",
		"[1,[{\"name\":\"x\"}],\"]\"]",
		"{\"name\":\"x\",\"source\":{\"host\":\"x\"},\"deep\":{\"kind\":\"x\"}}",
	};

	put(body, one_of(random, values, ARRAY_SIZE(values)));
}

/* Few enough texts that events meet, and such as run into each other. */
static void put_text(struct random *random, char *body)
{
	static const char *const texts[] = { "", "a", "b", "ab", "aa", "A", "\xc3\xa9", "\xf0\x9f\x98\x80" };

	if (random_chance(random, 60))
		put(body, random_chance(random, 800) ? "null" : "17");
	else
		put_string(random, body, one_of(random, texts, ARRAY_SIZE(texts)));
}

static void shuffle(struct random *random, const char **names, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t other = random_below(random, i);
		const char *name = names[i - 1];

		names[i - 1] = names[other];
		names[other] = name;
	}
}

static void put_name(struct random *random, char *body, const char *name)
{
	if (body[strlen(body) - 1] != '{')
		put(body, ",");
	put_space(random, body);
	put_string(random, body, name);
	put_space(random, body);
	put(body, ":");
	put_space(random, body);
}

/* Members whose names start with a capital are strangers. */
static void put_part(struct random *random, char *body, const char **names, size_t count)
{
	shuffle(random, names, count);
	put(body, "{");
	for (size_t i = 0; i < count; i++) {
		if (random_chance(random, 200))
			continue;
		put_name(random, body, names[i]);
		if (names[i][0] >= 'a')
			put_text(random, body);
		else
			put_value(random, body);
	}
	put_space(random, body);
	put(body, "}");
}

static void put_event(struct random *random, char *body, enum weir_event_schema schema)
{
	const char *source[] = { "component", "host", "Host", "Name" };
	const char *object[] = { "kind", "namespace", "name", "uid", "apiVersion", "FieldPath", "Name" };
	bool core = schema == WEIR_EVENT_CORE;
	const char *members[] = { core ? "source" : "deprecatedSource", core ? "involvedObject" : "regarding",
				  "Metadata", core ? "Regarding" : "Source" };

	shuffle(random, members, ARRAY_SIZE(members));
	body[0] = 0;
	put_space(random, body);
	put(body, "{");
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		if (random_chance(random, 100))
			continue;
		put_name(random, body, members[i]);
		if (members[i][0] < 'a' || random_chance(random, 20))
			put_value(random, body);
		else if (members[i][0] == 's' || members[i][0] == 'd')
			put_part(random, body, source, ARRAY_SIZE(source));
		else
			put_part(random, body, object, ARRAY_SIZE(object));
	}
	put(body, "}");
}

static void damage(struct random *random, char *body, size_t length)
{
	static const char bytes[] = "{}[]:,\"\\ \nu0ntf\x80\xff";

	if (random_chance(random, 700))
		return;
	body[random_below(random, length)] = bytes[random_below(random, sizeof(bytes) - 1)];
}

struct sample {
	char key[256]; /* the fields as the library has them, a byte that no text holds behind each */
	__u64 subject;
};

/* The seven hashes, each with its lowest byte first. */
static __u64 together(const __u64 subjects[])
{
	struct weir_subject_hash h;

	weir_subject_start(&h, seed, WEIR_NAME_OBJECT);
	for (size_t i = 0; i < WEIR_EVENT_NO_FIELD * 8; i++)
		weir_subject_byte(&h, subjects[i / 8] >> (i % 8 * 8));
	return weir_subject_end(&h);
}

static void sample_take(struct sample *sample, const struct event_reference *ref, const struct weir_event *e)
{
	size_t length = 0;

	for (size_t field = 0; field < WEIR_EVENT_NO_FIELD; field++) {
		assert_int_equal(e->subjects[field], event_reference_subject(ref, field, seed));
		assert_true(length + ref->lengths[field] + 1 < sizeof(sample->key));
		memcpy(sample->key + length, ref->texts[field], ref->lengths[field]);
		length += ref->lengths[field];
		sample->key[length++] = '\xff';
	}
	sample->subject = weir_event_subject(e, seed);
	assert_int_equal(sample->subject, together(e->subjects));
}

static int by_key(const void *one, const void *other)
{
	return memcmp(((const struct sample *)one)->key, ((const struct sample *)other)->key,
		      sizeof(((struct sample *)0)->key));
}

static int by_subject(const void *one, const void *other)
{
	const struct sample *a = one, *b = other;

	return a->subject < b->subject ? -1 : a->subject > b->subject;
}

/* Sorted by key and by subject: neighbours are equal in the one when they are in the other. */
static void check_classes(struct sample *samples, size_t count)
{
	size_t same = 0;

	qsort(samples, count, sizeof(*samples), by_key);
	for (size_t i = 1; i < count; i++) {
		bool equal = !by_key(&samples[i - 1], &samples[i]);

		assert_int_equal(equal, samples[i - 1].subject == samples[i].subject);
		same += equal;
	}
	qsort(samples, count, sizeof(*samples), by_subject);
	for (size_t i = 1; i < count; i++)
		assert_int_equal(!by_key(&samples[i - 1], &samples[i]), samples[i - 1].subject == samples[i].subject);
	assert_true(same > count / 20 && count - same > count / 20);
}

/* Random events, some of them damaged: whatever a JSON library can read has the same fields here. */
static void test_random_events(void **state)
{
	struct sample *samples = calloc(RANDOM_EVENTS, sizeof(*samples));
	struct random random = { 1 };
	static char body[BODY_MAX];
	size_t count = 0, refused = 0;

	(void)state;
	for (size_t i = 0; i < RANDOM_EVENTS; i++) {
		enum weir_event_schema schema = i % 2 ? WEIR_EVENT_CORE : WEIR_EVENT_EVENTS;
		enum weir_event_outcome outcome;
		struct event_reference ref;
		enum event_reading reading;
		struct weir_event e;
		size_t length;

		put_event(&random, body, schema);
		length = strlen(body);
		damage(&random, body, length);
		outcome = read_body(&e, schema, body, length);
		reading = event_reference_read(&ref, schema, body, length);
		if (reading == EVENT_READ) {
			assert_int_equal(outcome, WEIR_EVENT_WHOLE);
			sample_take(&samples[count++], &ref, &e);
		} else if (reading == EVENT_REFUSED) {
			assert_int_equal(outcome, WEIR_EVENT_LOST);
			refused++;
		}
		json_decref(ref.document);
	}
	assert_true(count > RANDOM_EVENTS / 2 && refused > RANDOM_EVENTS / 100);
	check_classes(samples, count);
	free(samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_the_fields_are),
		cmocka_unit_test(test_both_schemas_are_one_event),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_same_event),
		cmocka_unit_test(test_other_events),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_no_longer_than_that),
		cmocka_unit_test(test_random_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
