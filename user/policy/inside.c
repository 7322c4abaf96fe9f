/* SPDX-License-Identifier: GPL-2.0 */
/* What of a Throttle does nothing, by how requests inside its server are limited. */
#include "policy/inside.h"

#include <string.h>
#include <strings.h>

#include "model/rule.h"
#include "policy/policy.h"

/* What is for the server's answers, and what is for connections that are held. The command line refuses both. */
static void warn_unused(struct policy *policy, const struct policy_object *throttle, const struct server *server)
{
	const struct node *share = node_find(throttle->node, "spec.insideShare");
	const struct node *write = node_find(throttle->node, "spec.writeMemory");
	const struct node *longest = node_find(throttle->node, "spec.holdMax");
	bool answers = server->inside != INSIDE_OFF && server->inside != INSIDE_HOLD;

	if (share && !answers)
		warn_node(&policy->problems, share,
			  "does nothing here: it is the share of connections on which a server answers "
			  "(inside: answer)");
	if (write && !answers)
		warn_node(&policy->problems, write, "does nothing here: it is how a server answers (inside: answer)");
	if (longest && server->inside != INSIDE_HOLD)
		warn_node(&policy->problems, longest, "does nothing here: it is for inside: hold");
}

/* Settings that are for requests in packets. usual: what they are where nobody has asked for anything, as `export` has it. */
static const struct {
	const char *path, *usual, *why;
} of_packets[] = {
	{ "spec.trustedProxies", NULL, "the server itself says who its users are" },
	{ "spec.identity.userHeader", "X-Remote-User", "the server itself says who its users are" },
	{ "spec.identity.groupHeader", "X-Remote-Group", "the server itself says who its users are" },
	{ "spec.identity.tokenFile", NULL, "the server itself says who its users are" },
	{ "spec.identity.addressFile", NULL, "the server itself says who its users are" },
	{ "spec.identity.addresses", NULL, "the server itself says who its users are" },
	{ "spec.paths", "kubernetes", "paths are not read there" },
	{ "spec.namespaceFrom", "path", "the server itself says what is asked for" },
	{ "spec.refusals", "named", "the server writes its answers" },
	{ "spec.maxRetryAfter", NULL, "the server writes its answers" },
};

static bool is_any(const struct node *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		if (!strcmp(node_text(paths->items[i]), RULE_ANY))
			return true;
	return false;
}

static void warn_rules(struct policy *policy, const struct node *rules)
{
	for (size_t i = 0; rules && i < rules->n; i++) {
		const struct node *paths = node_member(rules->items[i], "paths");

		if (paths && !is_any(paths))
			warn_node(&policy->problems, paths,
				  "inside the server no request matches: paths are not read there");
	}
}

/* Events that are counted by what they are about. */
static void warn_events(struct policy *policy, const struct policy_object *events)
{
	const struct node *limits = node_find(events->node, "limits");

	for (size_t i = 0; limits && i < limits->n; i++)
		if (!strcmp(node_text(node_member(limits->items[i], "type")), "SourceAndObject"))
			warn_node(&policy->problems, limits->items[i],
				  "inside the server it is for no request: Events are not read there");
}

/* What `auto` chooses is known only where the server runs. */
bool policy_asks_inside(const struct server *server)
{
	return server->inside != INSIDE_OFF && server->inside != INSIDE_AUTO;
}

void warn_inside(struct policy *policy, const struct policy_object *throttle, const struct server *server)
{
	const struct node *schemas = node_find(throttle->node, "spec.flowSchemas");

	warn_unused(policy, throttle, server);
	if (!policy_asks_inside(server))
		return;
	for (size_t i = 0; i < sizeof(of_packets) / sizeof(*of_packets); i++) {
		const struct node *node = node_find(throttle->node, of_packets[i].path);
		const char *usual = of_packets[i].usual;

		if (node && (!usual || strcasecmp(node_text(node), usual) != 0))
			warn_node(&policy->problems, node, "inside the server it does nothing: %s", of_packets[i].why);
	}
	warn_rules(policy, node_find(throttle->node, "spec.exempt"));
	for (size_t i = 0; schemas && i < schemas->n; i++)
		warn_rules(policy, node_member(schemas->items[i], "rules"));
	for (size_t i = 0; i < policy->n; i++)
		if (policy->objects[i].kind->id == POLICY_EVENT_RATE_LIMIT)
			warn_events(policy, &policy->objects[i]);
}
