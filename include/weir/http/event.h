/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a Kubernetes Event is about, from its JSON, a byte at a time: who reports it (component, host) and the object
 * (kind, namespace, name, UID, apiVersion), the seven fields by which the API server's admission plugin EventRateLimit
 * tells events of type SourceAndObject apart. They come in any order and become one subject.
 *
 *   weir_event_start(e, schema)      before the body's first byte
 *   weir_event_byte(e, seed, c)      while it says WEIR_EVENT_MORE
 *   weir_event_subject(e, seed)      after WEIR_EVENT_WHOLE
 *
 * Names are compared with their case, of a repeated member the last one counts, objects that come in parts are one
 * object, and what is missing is empty: as the API server reads it. Where its versions differ (a null behind a value, a
 * string that is not UTF-8), and where the server will refuse the event, it is lost.
 */
#ifndef WEIR_HTTP_EVENT_H
#define WEIR_HTTP_EVENT_H

#include "weir/abi/abi.h"
#include "weir/base/subject.h"
#include "weir/base/types.h"
#include "weir/http/json.h"

#define WEIR_EVENT_BODY_MAX 4096 /* bytes of a body that are looked at */

enum weir_event_outcome {
	WEIR_EVENT_MORE,
	WEIR_EVENT_WHOLE,
	WEIR_EVENT_LOST, /* not JSON, no event, or too long */
};

/* What the members are called. */
enum weir_event_schema {
	WEIR_EVENT_CORE,   /* involvedObject, source: core/v1 */
	WEIR_EVENT_EVENTS, /* regarding, deprecatedSource: every version of events.k8s.io */
};

/* Which member of the event a value belongs to. */
enum weir_event_part {
	WEIR_EVENT_OTHER,
	WEIR_EVENT_SOURCE,
	WEIR_EVENT_OBJECT,
};

enum weir_event_field {
	WEIR_EVENT_COMPONENT,
	WEIR_EVENT_HOST,
	WEIR_EVENT_KIND,
	WEIR_EVENT_NAMESPACE,
	WEIR_EVENT_NAME,
	WEIR_EVENT_UID,
	WEIR_EVENT_API_VERSION,
	WEIR_EVENT_NO_FIELD,
	WEIR_EVENT_FIELDS = 8, /* a power of two, so that a field needs no check to be an index */
};

struct weir_event {
	struct weir_json json;
	struct weir_subject_hash hash;	   /* of the string that is being read */
	__u64 subjects[WEIR_EVENT_FIELDS]; /* of each field's text, 0: empty */
	__u16 offsets[WEIR_EVENT_FIELDS];  /* of its first byte in the body */
	__u16 lengths[WEIR_EVENT_FIELDS];  /* in bytes, escapes as they stand there */
	__u16 position;			   /* bytes so far */
	__u8 schema;			   /* enum weir_event_schema */
	__u8 part;			   /* enum weir_event_part */
	__u8 field;			   /* enum weir_event_field: of the value that follows, or is being read */
	__u8 pad[3];
};

WEIR_INLINE void weir_event_start(struct weir_event *e, enum weir_event_schema schema)
{
	__builtin_memset(e, 0, sizeof(*e));
	e->schema = schema;
	e->field = WEIR_EVENT_NO_FIELD;
}

WEIR_INLINE enum weir_event_part weir_event_part_of_name(const struct weir_event *e)
{
	const struct weir_json *j = &e->json;

	if (e->schema == WEIR_EVENT_CORE) {
		if (WEIR_JSON_NAME_IS(j, "source"))
			return WEIR_EVENT_SOURCE;
		return WEIR_JSON_NAME_IS(j, "involvedObject") ? WEIR_EVENT_OBJECT : WEIR_EVENT_OTHER;
	}
	if (WEIR_JSON_NAME_IS(j, "deprecatedSource"))
		return WEIR_EVENT_SOURCE;
	return WEIR_JSON_NAME_IS(j, "regarding") ? WEIR_EVENT_OBJECT : WEIR_EVENT_OTHER;
}

WEIR_INLINE enum weir_event_field weir_event_field_of_name(const struct weir_event *e)
{
	const struct weir_json *j = &e->json;

	if (e->part == WEIR_EVENT_SOURCE) {
		if (WEIR_JSON_NAME_IS(j, "component"))
			return WEIR_EVENT_COMPONENT;
		if (WEIR_JSON_NAME_IS(j, "host"))
			return WEIR_EVENT_HOST;
	} else if (e->part == WEIR_EVENT_OBJECT) {
		if (WEIR_JSON_NAME_IS(j, "kind"))
			return WEIR_EVENT_KIND;
		if (WEIR_JSON_NAME_IS(j, "namespace"))
			return WEIR_EVENT_NAMESPACE;
		if (WEIR_JSON_NAME_IS(j, "name"))
			return WEIR_EVENT_NAME;
		if (WEIR_JSON_NAME_IS(j, "uid"))
			return WEIR_EVENT_UID;
		if (WEIR_JSON_NAME_IS(j, "apiVersion"))
			return WEIR_EVENT_API_VERSION;
	}
	return WEIR_EVENT_NO_FIELD;
}

WEIR_INLINE void weir_event_name(struct weir_event *e)
{
	if (e->json.depth == 1)
		e->part = weir_event_part_of_name(e);
	else if (e->json.depth == 2)
		e->field = weir_event_field_of_name(e);
}

/* The event and its parts are objects; fields are none. */
WEIR_INLINE enum weir_event_outcome weir_event_open(const struct weir_event *e)
{
	bool object_due = e->json.depth == 1 || (e->json.depth == 2 && e->part != WEIR_EVENT_OTHER);

	if (e->field != WEIR_EVENT_NO_FIELD || (object_due && weir_json_in_array(&e->json)))
		return WEIR_EVENT_LOST;
	return WEIR_EVENT_MORE;
}

/* Does the value that begins belong to a part that has to be an object? */
WEIR_INLINE bool weir_event_instead_of_part(const struct weir_event *e)
{
	return e->json.depth == 1 && e->part != WEIR_EVENT_OTHER;
}

WEIR_INLINE enum weir_event_outcome weir_event_string(struct weir_event *e, const __u64 seed[2])
{
	if (weir_event_instead_of_part(e))
		return WEIR_EVENT_LOST;
	if (e->field != WEIR_EVENT_NO_FIELD) {
		weir_subject_start(&e->hash, seed, WEIR_NAME_OBJECT);
		e->offsets[e->field & (WEIR_EVENT_FIELDS - 1)] = e->position;
	}
	return WEIR_EVENT_MORE;
}

WEIR_INLINE void weir_event_string_end(struct weir_event *e)
{
	__u32 field = e->field & (WEIR_EVENT_FIELDS - 1);

	if (field == WEIR_EVENT_NO_FIELD)
		return;
	e->lengths[field] = e->position - 1 - e->offsets[field];
	e->subjects[field] = e->lengths[field] ? weir_subject_end(&e->hash) : 0;
	e->field = WEIR_EVENT_NO_FIELD;
}

/* A null says nothing, but what it does to a value before it depends on the server's version. */
WEIR_INLINE enum weir_event_outcome weir_event_null(struct weir_event *e)
{
	if (e->subjects[e->field & (WEIR_EVENT_FIELDS - 1)])
		return WEIR_EVENT_LOST;
	e->field = WEIR_EVENT_NO_FIELD;
	return WEIR_EVENT_MORE;
}

WEIR_INLINE enum weir_event_outcome weir_event_byte(struct weir_event *e, const __u64 seed[2], __u8 c)
{
	if (e->position++ >= WEIR_EVENT_BODY_MAX)
		return WEIR_EVENT_LOST;
	switch (weir_json_byte(&e->json, c)) {
	case WEIR_JSON_NAME:
		weir_event_name(e);
		return WEIR_EVENT_MORE;
	case WEIR_JSON_OPEN:
		return weir_event_open(e);
	case WEIR_JSON_STRING:
		return weir_event_string(e, seed);
	case WEIR_JSON_CHARACTER:
		if (e->field != WEIR_EVENT_NO_FIELD)
			weir_subject_character(&e->hash, e->json.code);
		return WEIR_EVENT_MORE;
	case WEIR_JSON_STRING_END:
		weir_event_string_end(e);
		return WEIR_EVENT_MORE;
	case WEIR_JSON_NULL:
		return weir_event_null(e);
	case WEIR_JSON_OTHER:
		return weir_event_instead_of_part(e) || e->field != WEIR_EVENT_NO_FIELD ? WEIR_EVENT_LOST :
											  WEIR_EVENT_MORE;
	case WEIR_JSON_END:
		return WEIR_EVENT_WHOLE;
	case WEIR_JSON_BAD:
		return WEIR_EVENT_LOST;
	default:
		return WEIR_EVENT_MORE;
	}
}

/* Each field's hash has its place, so that no two events have one subject because their texts run together. */
WEIR_INLINE __u64 weir_event_subject(const struct weir_event *e, const __u64 seed[2])
{
	struct weir_subject_hash h;
	__u32 field;

	weir_subject_start(&h, seed, WEIR_NAME_OBJECT);
#pragma GCC unroll 8
	for (field = 0; field < WEIR_EVENT_NO_FIELD; field++)
		weir_subject_bytes(&h, e->subjects[field], sizeof(e->subjects[field]));
	return weir_subject_end(&h);
}

#endif
