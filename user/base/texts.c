/* SPDX-License-Identifier: GPL-2.0 */
#include "base/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void texts_clear(struct texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		free(texts->items[i]);
	free(texts->items);
	*texts = (struct texts){ 0 };
}

bool texts_have(const struct texts *texts, const char *text)
{
	for (size_t i = 0; i < texts->n; i++)
		if (strcmp(texts->items[i], text) == 0)
			return true;
	return false;
}

bool texts_equal(const struct texts *a, const struct texts *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}

unsigned int words_find(const char *const *words, unsigned int n, const char *word)
{
	unsigned int i = 0;

	while (i < n && !(words[i] && strcmp(word, words[i]) == 0))
		i++;
	return i;
}

json_t *texts_to_json(const struct texts *texts)
{
	json_t *array = json_array();

	for (size_t i = 0; i < texts->n; i++)
		json_array_append_new(array, json_string(texts->items[i]));
	return array;
}

int copy_text(const char *text, char **out, struct error *err)
{
	*out = strdup(text);
	return *out ? 0 : error_set(err, -ENOMEM, "out of memory");
}

int texts_from_json(json_t *array, const char *key, make_text *make, struct texts *out, struct error *err)
{
	struct error why = { 0 };
	json_t *item;
	size_t i;

	if (!json_is_array(array))
		return error_set(err, -EINVAL, "%s: must be a list", key);
	if (json_array_size(array) == 0)
		return 0;
	out->items = calloc(json_array_size(array), sizeof(*out->items));
	if (!out->items)
		return error_set(err, -ENOMEM, "out of memory");
	json_array_foreach (array, i, item) {
		if (!json_is_string(item))
			return error_set(err, -EINVAL, "%s: must be a list of strings", key);
		if (make(json_string_value(item), &out->items[out->n], &why))
			return error_set(err, -EINVAL, "%s: %s", key, why.text);
		out->n++;
	}
	return 0;
}
