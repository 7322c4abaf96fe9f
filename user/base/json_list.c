/* SPDX-License-Identifier: GPL-2.0 */
#include "base/json_list.h"

#include <string.h>

static const char *name_of(const json_t *item)
{
	return json_string_value(json_object_get(item, "name")) ?: "";
}

json_t *list_named(json_t *list, const char *name)
{
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (json_object_get(item, "name") && strcmp(name_of(item), name) == 0)
			return item;
	return NULL;
}

void list_insert_named(json_t *list, json_t *item)
{
	size_t at = json_array_size(list);

	while (at && strcmp(name_of(json_array_get(list, at - 1)), name_of(item)) > 0)
		at--;
	json_array_insert_new(list, at, item);
}

void list_append(json_t *object, const char *key, json_t *item)
{
	json_t *list = json_object_get(object, key);

	if (!list) {
		list = json_array();
		json_object_set_new(object, key, list);
	}
	json_array_append_new(list, item);
}
