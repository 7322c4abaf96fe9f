/* SPDX-License-Identifier: GPL-2.0 */
#include "base/json_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int text_from_json(json_t *json, const char *key, char **out, struct error *err)
{
	char *text;

	if (!json || json_is_null(json))
		return 0;
	if (!json_is_string(json))
		return error_set_field(err, -EINVAL, key, NULL, "must be a string");
	text = strdup(json_string_value(json));
	if (!text)
		return error_set(err, -ENOMEM, "out of memory");
	free(*out);
	*out = text;
	return 0;
}

int flag_from_json(json_t *json, const char *key, bool *out, struct error *err)
{
	if (!json)
		return 0;
	if (!json_is_boolean(json))
		return error_set_field(err, -EINVAL, key, NULL, "must be true or false");
	*out = json_is_true(json);
	return 0;
}

int number_from_json(json_t *json, const char *key, __u32 max, __u32 *out, struct error *err)
{
	json_int_t value = json_integer_value(json);

	if (!json)
		return 0;
	if (!json_is_integer(json) || value < 0 || value > max)
		return error_set_field(err, -EINVAL, key, NULL, "must be a whole number up to %u", max);
	*out = value;
	return 0;
}

int list_from_json(json_t *array, const char *key, read_item *read, size_t size, void *out, size_t *n,
		   struct error *err)
{
	char **items = out;
	json_t *item;
	size_t i;

	if (!array || json_is_null(array))
		return 0;
	if (!json_is_array(array))
		return error_set_field(err, -EINVAL, key, NULL, "must be a list");
	json_array_foreach (array, i, item) {
		struct error why = { 0 };
		char *grown = array_grow(*items, i, size);
		int ret;

		if (!grown)
			return error_set(err, -ENOMEM, "out of memory");
		*items = grown;
		ret = read(item, grown + i * size, &why);
		if (ret)
			return error_set_field(err, ret, key, NULL, "%s", why.text);
		*n = i + 1;
	}
	return 0;
}

static bool is_known(const char *key, const char *const *known)
{
	for (; *known; known++)
		if (strcmp(key, *known) == 0)
			return true;
	return false;
}

int members_check(json_t *object, const char *what, const char *const *known, struct error *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return error_set(err, -EINVAL, "%s: must be an object", what);
	json_object_foreach (object, key, value) {
		if (!is_known(key, known))
			return error_set(err, -EINVAL, "%s: there is no \"%s\"", what, key);
	}
	return 0;
}
