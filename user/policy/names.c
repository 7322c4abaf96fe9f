/* SPDX-License-Identifier: GPL-2.0 */
#include "policy/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Another way to write keys: whether a key is another one then, and which. */
struct spelling {
	bool (*differs)(const char *name);
	char *(*spell)(const char *name);
};

static bool own_name_differs(const char *name)
{
	for (; *name; name++)
		if (isupper((unsigned char)*name))
			return true;
	return false;
}

static char *own_name(const char *name)
{
	char *own = malloc(2 * strlen(name) + 1), *out = own;

	for (; own && *name; name++) {
		if (isupper((unsigned char)*name))
			*out++ = '_';
		*out++ = tolower((unsigned char)*name);
	}
	if (own)
		*out = '\0';
	return own;
}

static bool yaml_name_differs(const char *name)
{
	const char *mark = strchr(name, '_');

	return mark && mark[1];
}

static char *yaml_name(const char *name)
{
	char *yaml = malloc(strlen(name) + 1), *out = yaml;

	for (; yaml && *name; name++)
		*out++ = *name == '_' && name[1] ? toupper((unsigned char)*++name) : *name;
	if (yaml)
		*out = '\0';
	return yaml;
}

static bool any_differs(json_t *json, const struct spelling *spelling)
{
	const char *key;
	json_t *value;
	size_t i;

	json_array_foreach (json, i, value)
		if (any_differs(value, spelling))
			return true;
	json_object_foreach (json, key, value)
		if (spelling->differs(key) || any_differs(value, spelling))
			return true;
	return false;
}

/* Lists may be long, so a list in which nothing is renamed is shared and not copied. */
static json_t *rename_all(json_t *json, const struct spelling *spelling)
{
	const char *key;
	json_t *value, *made;
	size_t i;

	if (json_is_array(json) && any_differs(json, spelling)) {
		made = json_array();
		json_array_foreach (json, i, value)
			json_array_append_new(made, rename_all(value, spelling));
		return made;
	}
	if (!json_is_object(json))
		return json_incref(json);
	made = json_object();
	json_object_foreach (json, key, value) {
		CLEANUP_FREE char *name = spelling->spell(key);

		if (name)
			json_object_set_new(made, name, rename_all(value, spelling));
	}
	return made;
}

json_t *policy_own_names(json_t *json)
{
	return rename_all(json, &(struct spelling){ own_name_differs, own_name });
}

json_t *policy_yaml_names(json_t *json)
{
	return rename_all(json, &(struct spelling){ yaml_name_differs, yaml_name });
}

/* A word ends where a key would: a file's name goes on. */
void policy_yaml_words(char *text)
{
	char *out = text;
	bool quoted = false;

	while (*text) {
		size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
		bool key = !quoted && strchr(": ,", text[n]);

		for (size_t i = 0; i < n; i++) {
			bool joins = key && i && text[i] == '_' && i + 1 < n;

			i += joins;
			*out++ = joins ? toupper((unsigned char)text[i]) : text[i];
		}
		text += n;
		for (bool more = true; *text && more; text++) {
			more = *text != ' ';
			quoted ^= *text == '"';
			*out++ = *text;
		}
	}
	*out = '\0';
}
