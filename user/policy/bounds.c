/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What libyaml would take very long to load, long before anyone can look at it: its time grows with the square of how many
 * collections are within each other, and of how many anchors a document has. So its events are counted first, one by one.
 */
#include "policy/bounds.h"

#include <errno.h>
#include <stdbool.h>
#include <yaml.h>

struct bounds {
	unsigned int depth, anchors;
};

static const char *too_much(struct bounds *bounds, const yaml_event_t *event)
{
	const unsigned char *anchor = NULL;

	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		*bounds = (struct bounds){ 0 };
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		bounds->depth++;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		bounds->depth++;
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		bounds->depth--;
		break;
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		break;
	default:
		break;
	}
	bounds->anchors += anchor != NULL;
	if (bounds->depth > POLICY_DEPTH_MAX)
		return "more than " POLICY_TEXT_OF(POLICY_DEPTH_MAX) " levels of nesting";
	if (bounds->anchors > POLICY_ANCHORS_MAX)
		return "more than " POLICY_TEXT_OF(POLICY_ANCHORS_MAX) " anchors in one document";
	return NULL;
}

/* What is no YAML is for who loads it to say. */
int policy_bounds_check(const char *file, const char *text, size_t length, struct problems *problems)
{
	struct bounds bounds = { 0 };
	yaml_parser_t parser;
	yaml_event_t event;
	const char *wrong = NULL;

	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	for (bool more = true; more && !wrong && yaml_parser_parse(&parser, &event);) {
		more = event.type != YAML_STREAM_END_EVENT;
		wrong = too_much(&bounds, &event);
		if (wrong)
			problem_at(problems, file, event.start_mark.line + 1, event.start_mark.column + 1, "%s", wrong);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return wrong ? -E2BIG : 0;
}
