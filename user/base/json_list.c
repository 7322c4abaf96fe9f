/* SPDX-License-Identifier: GPL-2.0 */
#include "base/json_list.h"

#include <string.h>

json_t *list_named(json_t *list, const char *name)
{
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		const char *other = json_string_value(json_object_get(item, "name"));

		if (other && strcmp(other, name) == 0)
			return item;
	}
	return NULL;
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
