/* SPDX-License-Identifier: GPL-2.0 */
#include "policy/kinds.h"

#include <string.h>

static const char *const weir_versions[] = { "weir/v1", NULL };
static const char *const event_versions[] = { "eventratelimit.admission.k8s.io/v1alpha1", NULL };
static const char *const flow_versions[] = { "flowcontrol.apiserver.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1beta3",
					     "flowcontrol.apiserver.k8s.io/v1beta2",
					     "flowcontrol.apiserver.k8s.io/v1beta1", NULL };
static const char *const admission_versions[] = { "apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1",
						  "apiserver.k8s.io/v1alpha1", NULL };

const struct policy_kind policy_kinds[] = {
	{ POLICY_THROTTLE, "Throttle", weir_versions, &policy_throttle_shape },
	{ POLICY_EVENT_RATE_LIMIT, "Configuration", event_versions, &policy_event_rate_limit_shape },
	{ POLICY_FLOW_SCHEMA, "FlowSchema", flow_versions, &policy_flow_schema_shape },
	{ POLICY_PRIORITY_LEVEL, "PriorityLevelConfiguration", flow_versions, &policy_priority_level_shape },
	{ POLICY_ADMISSION, "AdmissionConfiguration", admission_versions, &policy_admission_shape },
	{ 0 },
};

static bool has_version(const struct policy_kind *kind, const char *version)
{
	for (const char *const *known = kind->versions; *known; known++)
		if (strcmp(*known, version) == 0)
			return true;
	return false;
}

static const struct policy_kind *kind_named(const char *name)
{
	for (const struct policy_kind *kind = policy_kinds; kind->kind; kind++)
		if (strcmp(kind->kind, name) == 0)
			return kind;
	return NULL;
}

/* The member as a text, or NULL when a problem says what it is instead. */
static const struct node *text_member(const struct node *document, const char *name, struct problems *problems)
{
	const struct node *node = node_member(document, name);

	if (node && node->type == NODE_TEXT)
		return node;
	if (node)
		problem_node(problems, node, "must be a text, not %s", node_type_name(node->type));
	else
		problem_node(problems, document, "%s is missing", name);
	return NULL;
}

const struct policy_kind *policy_kind_of(const struct node *document, struct problems *problems)
{
	const struct node *version, *name;
	const struct policy_kind *kind;

	if (document->type != NODE_OBJECT) {
		problem_node(problems, document, "a document must be an object with apiVersion and kind, not %s",
			     node_type_name(document->type));
		return NULL;
	}
	version = text_member(document, "apiVersion", problems);
	name = text_member(document, "kind", problems);
	if (!version || !name)
		return NULL;
	kind = kind_named(name->text);
	if (kind && has_version(kind, version->text))
		return kind;
	if (kind)
		problem_node(problems, version, "\"%s\" has no %s that is known here: %s has", version->text,
			     kind->kind, kind->versions[0]);
	else
		problem_node(problems, name,
			     "\"%s\" is not a kind that is known here: Throttle, Configuration (of "
			     "EventRateLimit), AdmissionConfiguration, FlowSchema, PriorityLevelConfiguration or List",
			     name->text);
	return NULL;
}
