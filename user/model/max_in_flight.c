/* SPDX-License-Identifier: GPL-2.0 */
#include "model/max_in_flight.h"

#include "model/rule.h"

const char *max_in_flight_name(bool read_only)
{
	return read_only ? "read-only-in-flight" : "mutating-in-flight";
}

static bool reads_only(enum weir_verb verb)
{
	return verb == WEIR_VERB_GET || verb == WEIR_VERB_LIST || verb == WEIR_VERB_WATCH;
}

static json_t *verbs(bool read_only)
{
	json_t *array = json_array();

	for (enum weir_verb verb = WEIR_VERB_NONE + 1; verb < WEIR_VERB_COUNT; verb++)
		if (reads_only(verb) == read_only)
			json_array_append_new(array, json_string(rule_verb_name(verb)));
	return array;
}

json_t *max_in_flight_limit(bool read_only, __u32 seats)
{
	return json_pack("{s:s, s:s, s:I, s:[{s:o, s:b}]}", "name", max_in_flight_name(read_only), "key", "total",
			 "in_flight", (json_int_t)seats, "rules", "verbs", verbs(read_only), "long_running", 0);
}
