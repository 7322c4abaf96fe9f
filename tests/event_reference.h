/* SPDX-License-Identifier: GPL-2.0 */
/* A Kubernetes Event as a JSON library reads it: what include/weir/http/event.h is compared with. */
#ifndef EVENT_REFERENCE_H
#define EVENT_REFERENCE_H

#include "weir/http/event.h"

#include <jansson.h>
#include <string.h>

enum event_reading {
	EVENT_UNREADABLE, /* the library refuses it: a number, a repeated name or nesting may be the only reason */
	EVENT_REFUSED,
	EVENT_READ,
};

/* texts: point into `document`; empty where a field is missing */
struct event_reference {
	json_t *document;
	const char *texts[WEIR_EVENT_NO_FIELD];
	size_t lengths[WEIR_EVENT_NO_FIELD];
};

static inline size_t event_depth(json_t *value)
{
	size_t deepest = 0, depth, i;
	const char *name;
	json_t *member;

	json_object_foreach (value, name, member) {
		depth = event_depth(member);
		deepest = depth > deepest ? depth : deepest;
	}
	json_array_foreach (value, i, member) {
		depth = event_depth(member);
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest + (json_is_object(value) || json_is_array(value));
}

static inline bool event_part(struct event_reference *ref, const char *part, const char *const names[], size_t count,
			      enum weir_event_field first)
{
	json_t *object = json_object_get(ref->document, part);

	if (object && !json_is_null(object) && !json_is_object(object))
		return false;
	for (size_t i = 0; i < count; i++) {
		json_t *value = json_object_get(object, names[i]);

		if (value && !json_is_null(value) && !json_is_string(value))
			return false;
		ref->texts[first + i] = json_is_string(value) ? json_string_value(value) : "";
		ref->lengths[first + i] = json_is_string(value) ? json_string_length(value) : 0;
	}
	return true;
}

/* Whatever comes out of it, ref->document is the caller's to release. */
static inline enum event_reading event_reference_read(struct event_reference *ref, enum weir_event_schema schema,
						      const void *data, size_t size)
{
	static const char *const source[] = { "component", "host" };
	static const char *const object[] = { "kind", "namespace", "name", "uid", "apiVersion" };
	const size_t flags = JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK;
	bool core = schema == WEIR_EVENT_CORE;
	json_error_t error;

	/* The library passes over a NUL, which no JSON holds. */
	*ref = (struct event_reference){};
	if (memchr(data, 0, size))
		return EVENT_UNREADABLE;
	ref->document = json_loadb(data, size, flags, &error);
	if (!ref->document)
		return EVENT_UNREADABLE;
	if (!json_is_object(ref->document) || error.position > WEIR_EVENT_BODY_MAX ||
	    event_depth(ref->document) > WEIR_JSON_DEPTH ||
	    !event_part(ref, core ? "source" : "deprecatedSource", source, 2, WEIR_EVENT_COMPONENT) ||
	    !event_part(ref, core ? "involvedObject" : "regarding", object, 5, WEIR_EVENT_KIND))
		return EVENT_REFUSED;
	return EVENT_READ;
}

/* What a field's text should be hashed to. */
static inline __u64 event_reference_subject(const struct event_reference *ref, size_t field, const __u64 seed[2])
{
	struct weir_subject_hash h;

	if (!ref->lengths[field])
		return 0;
	weir_subject_start(&h, seed, WEIR_NAME_OBJECT);
	for (size_t i = 0; i < ref->lengths[field]; i++)
		weir_subject_byte(&h, ref->texts[field][i]);
	return weir_subject_end(&h);
}

#endif
