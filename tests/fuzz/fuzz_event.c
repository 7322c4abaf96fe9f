/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The body of a Kubernetes Event, against a JSON library: where the library reads it, the same seven fields must come
 * out. The input's first byte tells the schema (bit 0).
 */
#include "../event_reference.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static const __u64 seed[2] = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL };

static void check_whole(const struct weir_event *e, const struct event_reference *ref, const uint8_t *body)
{
	for (size_t field = 0; field < WEIR_EVENT_NO_FIELD; field++) {
		assert(e->subjects[field] == event_reference_subject(ref, field, seed));
		assert(!e->subjects[field] == !e->lengths[field]);
		if (e->lengths[field] && !memchr(body + e->offsets[field], '\\', e->lengths[field])) {
			assert(e->lengths[field] == ref->lengths[field]);
			assert(!memcmp(body + e->offsets[field], ref->texts[field], ref->lengths[field]));
		}
	}
}

/* The machine is copied between any two bytes, and what it was copied from is spoilt. */
static enum weir_event_outcome run(struct weir_event *e, const uint8_t *body, size_t size, size_t *used)
{
	enum weir_event_outcome outcome = WEIR_EVENT_MORE;
	struct weir_event copy;

	for (*used = 0; *used < size && outcome == WEIR_EVENT_MORE; ++*used) {
		copy = *e;
		memset(e, 0xa5, sizeof(*e));
		outcome = weir_event_byte(&copy, seed, body[*used]);
		*e = copy;
		assert(e->json.depth <= WEIR_JSON_DEPTH);
		assert(e->position <= WEIR_EVENT_BODY_MAX + 1);
	}
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum weir_event_outcome outcome;
	enum weir_event_schema schema;
	struct event_reference ref;
	enum event_reading reading;
	struct weir_event e;
	size_t used;

	if (!size)
		return 0;
	schema = data[0] & 1 ? WEIR_EVENT_EVENTS : WEIR_EVENT_CORE;
	weir_event_start(&e, schema);
	outcome = run(&e, data + 1, size - 1, &used);
	reading = event_reference_read(&ref, schema, data + 1, size - 1);
	if (reading == EVENT_READ) {
		assert(outcome == WEIR_EVENT_WHOLE);
		check_whole(&e, &ref, data + 1);
	} else if (reading == EVENT_REFUSED) {
		assert(outcome == WEIR_EVENT_LOST);
	}
	if (outcome == WEIR_EVENT_WHOLE)
		assert(data[used] == '}' && !e.json.depth);
	json_decref(ref.document);
	return 0;
}
