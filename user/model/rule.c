/* SPDX-License-Identifier: GPL-2.0 */
#include "model/rule.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "weir/http/path.h"

#include "base/cleanup.h"
#include "base/json_read.h"
#include "model/parse.h"

/* Kubernetes' names for the anonymous user and its group. */
#define ANONYMOUS "system:anonymous"
#define UNAUTHENTICATED "system:unauthenticated"

#define RESOURCE_MAX 63	  /* bytes of a resource's name, as Kubernetes has it */
#define API_GROUP_MAX 253 /* of a group's */

static const char *const verbs[WEIR_VERB_COUNT] = {
#define X(name, text) text,
	WEIR_VERBS(X)
#undef X
};

const char *rule_verb_name(enum weir_verb verb)
{
	return verbs[verb];
}

int rule_verb_parse(const char *text, enum weir_verb *verb, struct error *err)
{
	unsigned int found = words_find(verbs, WEIR_VERB_COUNT, text);

	if (found != WEIR_VERB_NONE && found != WEIR_VERB_COUNT) {
		*verb = found;
		return 0;
	}
	return error_set(
		err, -EINVAL,
		"\"%s\" is not a verb (get, list, watch, create, update, patch, delete, deletecollection or proxy "
		"of a resource; of a path get, head, post, put, patch, delete, options, connect or other)",
		text);
}

/* --- one text of each kind: checked, and in its canonical form */

static bool is_any(const char *text)
{
	return strcmp(text, RULE_ANY) == 0;
}

static int verb_text(const char *text, char **out, struct error *err)
{
	enum weir_verb verb;
	int ret = is_any(text) ? 0 : rule_verb_parse(text, &verb, err);

	return ret ?: copy_text(text, out, err);
}

/* Lower-case letters, digits and some more characters inside: a DNS label, or with "-." a subdomain. */
static bool is_label(const char *text, size_t length, const char *inside, size_t max)
{
	if (length == 0 || length > max)
		return false;
	for (size_t i = 0; i < length; i++) {
		bool edge = i == 0 || i == length - 1;

		if (!islower((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) &&
		    (edge || !strchr(inside, text[i])))
			return false;
	}
	return true;
}

static int api_group_text(const char *text, char **out, struct error *err)
{
	if (*text && !is_any(text) && !is_label(text, strlen(text), "-.", API_GROUP_MAX))
		return error_set(
			err, -EINVAL,
			"\"%s\" is not an API group (like \"apps\" or \"batch.example.com\"; \"\" is the core group)",
			text);
	return copy_text(text, out, err);
}

static int resource_text(const char *text, char **out, struct error *err)
{
	const char *slash = strchrnul(text, '/');

	if (strncmp(text, "*/", 2) == 0)
		return error_set(err, -EINVAL, "\"%s\": leave out resources, and use \"%s\" in subresources", text,
				 text + 2);
	if (is_any(text))
		return copy_text(text, out, err);
	if (!is_label(text, slash - text, "-", RESOURCE_MAX) ||
	    (*slash && !is_label(slash + 1, strlen(slash + 1), "-", RESOURCE_MAX)))
		return error_set(err, -EINVAL,
				 "\"%s\" is not a resource (like \"pods\" or \"pods/log\", in lower case)", text);
	return copy_text(text, out, err);
}

static int subresource_text(const char *text, char **out, struct error *err)
{
	if (*text && !is_label(text, strlen(text), "-", RESOURCE_MAX))
		return error_set(err, -EINVAL, "\"%s\" is not a subresource (like \"log\"; \"\" is none)", text);
	return copy_text(text, out, err);
}

static int namespace_text(const char *text, char **out, struct error *err)
{
	struct subject subject;
	int ret = is_any(text) ? 0 : parse_subject(WEIR_KEY_NAMESPACE, text, &subject, err);

	return ret ?: copy_text(text, out, err);
}

static size_t count_segments(const char *path)
{
	size_t n = 0;

	for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
		path += strcspn(path, "/");
		n++;
	}
	return n;
}

static int path_text(const char *text, char **out, struct error *err)
{
	const char *star = strchr(text, '*');

	if (is_any(text))
		return copy_text(text, out, err);
	if (*text != '/')
		return error_set(err, -EINVAL, "\"%s\" is not a path: it must begin with a slash", text);
	if (star && (star[1] || star[-1] != '/'))
		return error_set(err, -EINVAL, "\"%s\": a * may stand only at the end, behind a slash", text);
	if (parse_subject_name(text, NULL) || strpbrk(text, "?#"))
		return error_set(err, -EINVAL, "\"%s\" is not a path: it has no query, and no control characters",
				 text);
	if (strstr(text, "//"))
		return error_set(err, -EINVAL, "\"%s\": a segment of the path is empty", text);
	if (count_segments(text) - !!star > WEIR_PATH_SEGMENTS)
		return error_set(err, -EINVAL, "\"%s\": the path has more than %d segments", text, WEIR_PATH_SEGMENTS);
	return copy_text(text, out, err);
}

static int source_text(const char *text, char **out, struct error *err)
{
	char canonical[PARSE_LISTEN_TEXT];
	struct datapath_cidr cidr;

	if (parse_cidr(text, &cidr, err))
		return -EINVAL;
	format_cidr(&cidr, canonical);
	return copy_text(canonical, out, err);
}

/* --- all of a rule */

static const struct list {
	const char *key;
	size_t offset; /* in struct rule */
	make_text *make;
} lists[] = {
#define LIST(name, make)                                 \
	{                                                \
#name, offsetof(struct rule, name), make \
	}
	LIST(users, user_text),		  LIST(groups, group_text),	  LIST(verbs, verb_text),
	LIST(api_groups, api_group_text), LIST(resources, resource_text), LIST(subresources, subresource_text),
	LIST(namespaces, namespace_text), LIST(paths, path_text),	  LIST(sources, source_text),
#undef LIST
};

#define LISTS (sizeof(lists) / sizeof(*lists))

static struct texts *list_of(const struct rule *rule, const struct list *list)
{
	return (struct texts *)((char *)rule + list->offset);
}

void rule_clear(struct rule *rule)
{
	for (size_t i = 0; i < LISTS; i++)
		texts_clear(list_of(rule, &lists[i]));
	*rule = (struct rule){ 0 };
}

bool rule_equal(const struct rule *a, const struct rule *b)
{
	for (size_t i = 0; i < LISTS; i++)
		if (!texts_equal(list_of(a, &lists[i]), list_of(b, &lists[i])))
			return false;
	return a->long_running == b->long_running && a->cluster_scope == b->cluster_scope &&
	       a->non_resource == b->non_resource;
}

bool rule_of_resource(const struct rule *rule)
{
	return rule->api_groups.n || rule->resources.n || rule->subresources.n;
}

bool rule_of_senders(const struct rule *rule)
{
	const struct rule senders = { .users = rule->users, .groups = rule->groups, .sources = rule->sources };

	return rule_equal(rule, &senders);
}

bool rule_of_peers(const struct rule *rule)
{
	const struct rule peers = {
		.users = rule->users, .groups = rule->groups, .namespaces = rule->namespaces, .sources = rule->sources
	};

	return rule_equal(rule, &peers);
}

bool rule_of_subjects(const struct rule *rule)
{
	return (rule->users.n || rule->groups.n) && !texts_have(&rule->users, RULE_ANY) &&
	       !texts_have(&rule->groups, RULE_ANY);
}

int rule_each_group(const struct rule *rule, int (*each)(void *arg, const char *group), void *arg)
{
	int ret = 0;

	if (!rule_of_subjects(rule))
		return 0;
	if (texts_have(&rule->users, ANONYMOUS))
		ret = each(arg, UNAUTHENTICATED);
	for (size_t i = 0; i < rule->groups.n && !ret; i++)
		ret = each(arg, rule->groups.items[i]);
	return ret;
}

static int is_of_nobody(void *arg, const char *group)
{
	(void)arg;
	return strcmp(group, UNAUTHENTICATED) == 0;
}

bool rule_of_nobody(const struct rule *rule)
{
	struct subject subject;

	for (size_t i = 0; i < rule->users.n; i++)
		if (!parse_subject(WEIR_KEY_USER, rule->users.items[i], &subject, NULL) &&
		    subject.kind == WEIR_NAME_ADDRESS)
			return true;
	return !rule_of_subjects(rule) || rule_each_group(rule, is_of_nobody, NULL);
}

json_t *rule_to_json(const struct rule *rule)
{
	json_t *json = json_object();

	for (size_t i = 0; i < LISTS; i++)
		if (list_of(rule, &lists[i])->n)
			json_object_set_new(json, lists[i].key, texts_to_json(list_of(rule, &lists[i])));
	if (rule->long_running)
		json_object_set_new(json, "long_running", json_boolean(rule->long_running == RULE_YES));
	if (rule->cluster_scope)
		json_object_set_new(json, "cluster_scope", json_true());
	if (rule->non_resource)
		json_object_set_new(json, "non_resource", json_true());
	return json;
}

/* One member of the object. */
static int member_read(const char *key, json_t *value, struct rule *rule, struct error *err)
{
	bool yes = false;
	int ret;

	for (size_t i = 0; i < LISTS; i++)
		if (strcmp(key, lists[i].key) == 0)
			return texts_from_json(value, key, lists[i].make, list_of(rule, &lists[i]), err);
	if (strcmp(key, "long_running") != 0 && strcmp(key, "cluster_scope") != 0 && strcmp(key, "non_resource") != 0)
		return error_set(err, -EINVAL, "\"%s\" is not a condition of a rule", key);
	ret = flag_from_json(value, key, &yes, err);
	if (ret)
		return ret;
	if (strcmp(key, "long_running") == 0)
		rule->long_running = yes ? RULE_YES : RULE_NO;
	else if (strcmp(key, "cluster_scope") == 0)
		rule->cluster_scope = yes;
	else
		rule->non_resource = yes;
	return 0;
}

int rule_check_word(const char *list, const char *text, struct error *err)
{
	CLEANUP_FREE char *canonical = NULL;

	for (size_t i = 0; i < LISTS; i++)
		if (strcmp(list, lists[i].key) == 0)
			return lists[i].make(text, &canonical, err);
	return error_set(err, -EINVAL, "\"%s\" is not a list of a rule", list);
}

/* What no request could meet is a mistake. */
static int check(const struct rule *rule, struct error *err)
{
	const struct texts *resources = &rule->resources;

	if (rule->non_resource && rule_of_resource(rule))
		return error_set_field(err, -EINVAL, "non_resource", NULL, "the rule names resources, too");
	for (size_t i = 0; i < resources->n && rule->subresources.n; i++)
		if (strchr(resources->items[i], '/'))
			return error_set_field(err, -EINVAL, "resources", NULL,
					       "\"%s\" names a subresource, but subresources does, too",
					       resources->items[i]);
	return 0;
}

static int members_read(json_t *json, struct rule *rule, struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach (json, key, value) {
		int ret = member_read(key, value, rule, err);

		if (ret)
			return ret;
	}
	return check(rule, err);
}

int rule_from_json(json_t *json, struct rule *out, struct error *err)
{
	struct rule rule = { 0 };
	int ret;

	if (!json_is_object(json))
		return error_set(err, -EINVAL, "a rule must be an object");
	ret = members_read(json, &rule, err);
	if (ret)
		rule_clear(&rule);
	else
		*out = rule;
	return ret;
}

/* --- several rules */

void rule_list_clear(struct rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rule_clear(&rules[i]);
	free(rules);
}

json_t *rule_list_to_json(const struct rule *rules, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, rule_to_json(&rules[i]));
	return array;
}

static int rule_item(json_t *json, void *place, struct error *err)
{
	return rule_from_json(json, place, err);
}

int rule_list_from_json(json_t *array, const char *key, struct rule **out, size_t *n, struct error *err)
{
	return list_from_json(array, key, rule_item, sizeof(**out), out, n, err);
}
