/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>

#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "commands/commands.h"
#include "commands/limits.h"
#include "model/max_in_flight.h"

/* Requests at once; 0: there is no such limit. */
static int set_seats(struct agent *agent, int slot, bool reading, __u32 seats, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct limit *there = server_limit(server, max_in_flight_name(reading));
	CLEANUP_JSON json_t *limit = NULL;

	if (!seats && there && limit_check_file(server, there, err))
		return -EBUSY;
	if (!seats)
		return there ? limit_remove(agent, slot, there, err) : 0;
	limit = max_in_flight_limit(reading, seats);
	return limit_set(agent, slot, limit, NULL, err);
}

static __u32 seats_of(const struct server *server, bool reading)
{
	const struct limit *there = server_limit(server, max_in_flight_name(reading));

	return there ? there->amount.seats : 0;
}

/* Negative: not given. */
static int set_both(struct agent *agent, int slot, json_int_t reading, json_int_t mutating, struct error *err)
{
	__u32 before = seats_of(agent->state.servers[slot], true);
	int ret = reading < 0 ? 0 : set_seats(agent, slot, true, reading, err);
	struct error failed, why;

	if (ret || mutating < 0)
		return ret;
	ret = set_seats(agent, slot, false, mutating, &failed);
	if (!ret)
		return 0;
	error_set(err, ret, "%s", failed.text);
	if (reading >= 0 && set_seats(agent, slot, true, before, &why))
		error_set(err, ret, "%s; that of requests that only read is %u now, all the same: %s", failed.text,
			  (unsigned int)reading, why.text);
	return ret;
}

int agent_max_in_flight(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	json_int_t reading = -1, mutating = -1;
	const struct server *server;
	const char *name = NULL;
	json_error_t why;
	int slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s?I, s?I !}", "server", &name, "read_only", &reading, "mutating",
			   &mutating))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	if (reading > WEIR_BURST_MAX || mutating > WEIR_BURST_MAX)
		return error_set(err, -EINVAL, "at most %u requests can be in flight", WEIR_BURST_MAX);
	slot = server_named(agent, name, err);
	if (slot < 0)
		return slot;
	server = agent->state.servers[slot];
	ret = set_both(agent, slot, reading, mutating, err);
	if (ret)
		return ret;
	log_info("server \"%s\": max-in-flight is set", server->name);
	*result = json_pack("{s:s, s:I, s:I}", "server", server->name, "read_only", (json_int_t)seats_of(server, true),
			    "mutating", (json_int_t)seats_of(server, false));
	server_tell_failed(agent, slot, *result);
	return 0;
}
