/* SPDX-License-Identifier: GPL-2.0 */
/* Events of JSON of the plainest kind, as libyaml would have them, so that tree_yaml.c makes the same tree of them. */
#include <string.h>

#include "policy/tree_yaml.h"

bool reading_plain(struct reading *r, yaml_event_t *event)
{
	static const yaml_event_type_t types[PLAIN_CLOSE + 1] = {
		[PLAIN_KEY] = YAML_SCALAR_EVENT,	  [PLAIN_TEXT] = YAML_SCALAR_EVENT,
		[PLAIN_WORD] = YAML_SCALAR_EVENT,	  [PLAIN_OBJECT] = YAML_MAPPING_START_EVENT,
		[PLAIN_LIST] = YAML_SEQUENCE_START_EVENT,
	};
	bool object = r->plain.depth && r->plain.object[r->plain.depth - 1];
	struct plain_token token;

	plain_next(&r->plain, &token);
	*event = (yaml_event_t){ .type = types[token.kind],
				 .start_mark = { .line = token.line, .column = token.column } };
	if (token.kind == PLAIN_CLOSE)
		event->type = object ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
	if (event->type != YAML_SCALAR_EVENT)
		return true;
	memcpy(r->plain_text, token.text, token.length);
	r->plain_text[token.length] = '\0';
	event->data.scalar.value = (yaml_char_t *)r->plain_text;
	event->data.scalar.length = token.length;
	event->data.scalar.style = token.kind == PLAIN_WORD ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
	return true;
}
