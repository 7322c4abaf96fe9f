/* SPDX-License-Identifier: GPL-2.0 */
/* A JSON value as a YAML document. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/output.h"

/* May a string stand without quotes? Only where no reader of YAML 1.1 or 1.2 takes it for anything else. */
static int stands_plain(const char *text)
{
	static const char *const taken[] = { "null", "true", "false", "yes", "no", "on", "off", "y", "n" };

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (strcasecmp(text, taken[i]) == 0)
			return 0;
	return (isalpha((unsigned char)*text) || *text == '/') && !strchr(text, '\n');
}

static int emit(yaml_emitter_t *emitter, yaml_event_t *event, int made)
{
	return made && yaml_emitter_emit(emitter, event) ? 0 : error_errno();
}

static int emit_scalar(yaml_emitter_t *emitter, const char *text, int plain)
{
	yaml_event_t event;
	int made;

	made = yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, strlen(text), plain, 1,
					    plain ? YAML_ANY_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
	return emit(emitter, &event, made);
}

static int emit_value(yaml_emitter_t *emitter, json_t *value);

static int emit_object(yaml_emitter_t *emitter, json_t *object)
{
	yaml_event_t event;
	const char *key;
	json_t *value;
	int made, ret;

	made = yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_MAPPING_STYLE);
	ret = emit(emitter, &event, made);
	json_object_foreach (object, key, value) {
		if (!ret)
			ret = emit_scalar(emitter, key, stands_plain(key));
		if (!ret)
			ret = emit_value(emitter, value);
	}
	return ret ? ret : emit(emitter, &event, yaml_mapping_end_event_initialize(&event));
}

static int emit_array(yaml_emitter_t *emitter, json_t *array)
{
	yaml_event_t event;
	json_t *value;
	size_t i;
	int made, ret;

	made = yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_SEQUENCE_STYLE);
	ret = emit(emitter, &event, made);
	json_array_foreach (array, i, value)
		if (!ret)
			ret = emit_value(emitter, value);
	return ret ? ret : emit(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

static int emit_number(yaml_emitter_t *emitter, json_t *value)
{
	char text[64];

	if (json_is_integer(value))
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		snprintf(text, sizeof(text), "%.15g", json_real_value(value));
	return emit_scalar(emitter, text, 1);
}

static int emit_value(yaml_emitter_t *emitter, json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return emit_object(emitter, value);
	case JSON_ARRAY:
		return emit_array(emitter, value);
	case JSON_STRING:
		return emit_scalar(emitter, json_string_value(value), stands_plain(json_string_value(value)));
	case JSON_INTEGER:
	case JSON_REAL:
		return emit_number(emitter, value);
	case JSON_TRUE:
		return emit_scalar(emitter, "true", 1);
	case JSON_FALSE:
		return emit_scalar(emitter, "false", 1);
	case JSON_NULL:
		return emit_scalar(emitter, "null", 1);
	}
	return -EINVAL;
}

static int emit_document(yaml_emitter_t *emitter, json_t *value)
{
	yaml_event_t event;
	int ret;

	ret = emit(emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
	if (!ret)
		ret = emit(emitter, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
	if (!ret)
		ret = emit_value(emitter, value);
	if (!ret)
		ret = emit(emitter, &event, yaml_document_end_event_initialize(&event, 1));
	if (!ret)
		ret = emit(emitter, &event, yaml_stream_end_event_initialize(&event));
	return ret;
}

int output_yaml(FILE *file, json_t *value)
{
	yaml_emitter_t emitter;
	int ret;

	if (!yaml_emitter_initialize(&emitter))
		return -ENOMEM;
	yaml_emitter_set_output_file(&emitter, file);
	yaml_emitter_set_unicode(&emitter, 1);
	yaml_emitter_set_width(&emitter, -1);
	errno = 0;
	ret = emit_document(&emitter, value);
	yaml_emitter_delete(&emitter);
	return ret;
}

int output_yaml_more(FILE *file, json_t *value)
{
	errno = 0;
	if (fputs("---\n", file) == EOF)
		return error_errno();
	return output_yaml(file, value) ?: output_flush(file);
}
