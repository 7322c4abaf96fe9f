/* SPDX-License-Identifier: GPL-2.0 */
/* The priority levels and flow schemas of a Throttle, as priority.h has them: for APIs that are not Kubernetes'. */
#include "model/priority.h"
#include "base/cleanup.h"
#include "policy/kinds.h"

/* schema: NULL for none. */
static int check(json_t *level, json_t *schema, struct error *err)
{
	CLEANUP_JSON json_t *levels = json_pack("[O]", level), *schemas = json_pack("[O*]", schema);
	struct priorities priorities = { 0 };
	int ret = priorities_from_json(levels, schemas, &priorities, err);

	priorities_clear(&priorities);
	return ret;
}

static int check_level(json_t *level, struct error *err)
{
	return check(level, NULL, err);
}

/* Whether its level is there is the whole server's to say. */
static int check_schema(json_t *schema, struct error *err)
{
	CLEANUP_JSON json_t *level = json_pack("{s:O, s:b}", "name", json_object_get(schema, "level"), "exempt", 1);

	return check(level, schema, err);
}

static const struct field level_fields[] = {
	{ .name = "name", .type = FIELD_TEXT, .required = true, .help = "Name of the level." },
	{ .name = "exempt", .type = FIELD_FLAG, .help = "true: its requests need no seats." },
	{ .name = "shares",
	  .type = FIELD_NUMBER,
	  .max = PRIORITY_SHARES_MAX,
	  .help = "Share of the server's concurrency, relative to the other levels." },
	{ 0 },
};
const struct shape policy_own_level_shape = { .fields = level_fields, .check = check_level };

static const char *const distinguishers[] = { "ByUser", "ByNamespace", NULL };

static const struct field schema_fields[] = {
	{ .name = "name", .type = FIELD_TEXT, .required = true, .help = "Name of the schema." },
	{ .name = "level", .type = FIELD_TEXT, .required = true, .help = "Priority level of its requests." },
	{ .name = "precedence",
	  .type = FIELD_NUMBER,
	  .min = 1,
	  .max = PRIORITY_PRECEDENCE_MAX,
	  .help = "Of the schemas that match a request, the one with the lowest precedence counts. Default: 1000." },
	{ .name = "distinguisher", .type = FIELD_TEXT, .words = distinguishers, .help = "What separates flows." },
	{ .name = "rules",
	  .type = FIELD_OBJECT,
	  .list = true,
	  .shape = &policy_own_rule_shape,
	  .help = "Requests that belong to it: one rule must match." },
	{ 0 },
};
const struct shape policy_own_schema_shape = { .fields = schema_fields, .check = check_schema };
