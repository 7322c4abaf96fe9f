/* SPDX-License-Identifier: GPL-2.0 */
/* What a limit that has no token says of a request, and what becomes of the request, in each lane. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weir/inside/turn.h"

#include "base/cleanup.h"
#include "show/explain.h"

static char *no_name(void *arg, __u64 subject)
{
	(void)arg;
	(void)subject;
	return NULL;
}

/* The request is one that its only limit refuses, or would refuse, for so long. */
static void check(const char *lane, bool dry_run, __u32 flags, __u64 wait_ns, const char *says, const char *decision)
{
	bool passes = dry_run || strcmp(lane, "see") == 0 || strcmp(lane, "hold") == 0;
	CLEANUP_JSON json_t *request = json_object(), *object = NULL;
	struct server server = { .name = "web", .dry_run = dry_run };
	struct weir_explained explained = { .n_limits = 1, .event_key = WEIR_REASON_COUNT };
	const struct explain_context context = {
		.server = &server, .about = "request", .lane = lane, .request = request, .name = no_name
	};
	json_t *limit;

	explained.trace.decision = passes ? WEIR_DRY_RUN_SHED : WEIR_SHED;
	explained.trace.retry_s = 7;
	explained.limits[0] = (struct weir_explained_limit){ .flags = WEIR_EXPLAINED_ASKED | flags,
							     .wait_ns = wait_ns };
	object = explain_json(&explained, &context);
	limit = json_array_get(json_object_get(object, "limits"), 0);
	assert_string_equal(json_string_value(json_object_get(limit, "says")), says);
	assert_string_equal(json_string_value(json_object_get(object, "decision")), decision);
	assert_int_equal(!json_object_get(object, "owed"), strcmp(says, "owes") != 0);
	assert_int_equal(!json_object_get(object, "retry_after"), strcmp(says, "owes") == 0);
}

static void lanes(void **state)
{
	const __u64 soon = WEIR_NS_PER_S, late = WEIR_TURN_DEBT_NS + 1;
	const __u32 refused = WEIR_EXPLAINED_REFUSED;

	(void)state;
	check("wire", false, refused, soon, "refuses", "shed");
	check("answer", false, refused, soon, "refuses", "shed");
	check("answer", false, refused | WEIR_EXPLAINED_DENY, WEIR_NEVER_NS, "denies", "shed");
	check("see", false, refused, soon, "would_refuse", "dry_run_shed");
	check("hold", false, refused, soon, "owes", "passed");
	check("hold", false, refused, late, "would_refuse", "dry_run_shed");
	check("hold", false, refused | WEIR_EXPLAINED_SEATS, soon, "would_refuse", "dry_run_shed");
	check("hold", false, refused | WEIR_EXPLAINED_DENY, WEIR_NEVER_NS, "would_refuse", "dry_run_shed");
	check("hold", false, refused | WEIR_EXPLAINED_PENALISED, soon, "penalised", "dry_run_shed");
	check("hold", false, WEIR_EXPLAINED_DRY_RUN, soon, "would_refuse", "dry_run_shed");
	check("hold", true, refused, soon, "would_refuse", "dry_run_shed");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(lanes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
