/* SPDX-License-Identifier: GPL-2.0 */
#include "model/amount_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/rate.h"

void amount_to_json(const struct datapath_amount *amount, enum weir_limit_kind kind, json_t *object)
{
	char qps[WEIR_QPS_TEXT];

	if (!amount->set)
		return;
	if (amount->deny) {
		json_object_set_new(object, "deny", json_true());
		return;
	}
	if (weir_limit_has_seats(kind)) {
		json_object_set_new(object, kind == WEIR_LIMIT_OPEN ? "open" : "in_flight",
				    json_integer(amount->seats));
		return;
	}
	weir_qps_format(amount->per_ns, qps, sizeof(qps));
	json_object_set_new(object, "qps", json_string(qps));
	json_object_set_new(object, "burst", json_integer(amount->burst));
}

/* A number that is not the whole text of a rate is one that a number cannot hold: it has to be written as a text. */
static int qps_from_json(json_t *json, __u64 *per_ns, struct error *err)
{
	char number[64] = "";
	const char *text = number;

	/* Most often it is one, and there may be very many. */
	if (json_is_integer(json) && json_integer_value(json) >= 0 && json_integer_value(json) <= WEIR_QPS_MAX) {
		*per_ns = json_integer_value(json) * WEIR_QPS;
		return 0;
	}
	if (json_is_integer(json))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(json));
	else if (json_is_real(json))
		snprintf(number, sizeof(number), "%.9f", json_real_value(json));
	else if (json_is_string(json))
		text = json_string_value(json);
	if (weir_qps_parse(text, per_ns) || (json_is_real(json) && strtod(text, NULL) != json_real_value(json)))
		return error_set(err, -EINVAL, "qps: \"%s\" is not a rate (" WEIR_QPS_FORM ")", text, WEIR_QPS_MAX);
	return 0;
}

struct amount_members {
	json_t *qps, *burst, *in_flight, *open, *deny;
};

/* There may be very many amounts, each with few members: these are passed once, and none is looked for. */
static struct amount_members amount_members(json_t *json)
{
	struct amount_members m = { 0 };
	const struct {
		const char *name;
		json_t **member;
	} all[] = {
		{ "qps", &m.qps },   { "burst", &m.burst }, { "in_flight", &m.in_flight },
		{ "open", &m.open }, { "deny", &m.deny },
	};
	const char *key;
	json_t *value;

	json_object_foreach (json, key, value) {
		size_t i = 0;

		while (i < sizeof(all) / sizeof(*all) && strcmp(key, all[i].name) != 0)
			i++;
		if (i < sizeof(all) / sizeof(*all))
			*all[i].member = value;
	}
	return m;
}

static int amount_check(const struct amount_members *m, enum weir_limit_kind kind, struct error *err)
{
	if (m->in_flight && (m->qps || m->burst))
		return error_set(err, -EINVAL, "in_flight: use either in_flight, or qps and burst");
	if (m->open && (m->qps || m->burst || m->in_flight))
		return error_set(err, -EINVAL, "open: use it without in_flight, qps and burst");
	if (m->in_flight && weir_limit_is_of_connections(kind))
		return error_set(err, -EINVAL, "in_flight: a limit on connections needs open, or qps and burst");
	if (!m->in_flight && !m->open && (!m->qps || !m->burst))
		return error_set(err, -EINVAL, "%s is missing: a rate has qps and burst%s", m->qps ? "burst" : "qps",
				 m->qps ? ", the most at once (for a start: twice the rate)" : "");
	return 0;
}

static enum weir_limit_kind amount_kind(const struct amount_members *m, enum weir_limit_kind kind)
{
	if (m->in_flight || m->open)
		return m->open ? WEIR_LIMIT_OPEN : WEIR_LIMIT_IN_FLIGHT;
	return weir_limit_is_of_connections(kind) ? WEIR_LIMIT_CONNECTION_RATE : WEIR_LIMIT_RATE;
}

int amount_from_json(json_t *object, struct datapath_amount *amount, enum weir_limit_kind *kind, struct error *err)
{
	struct amount_members m = amount_members(object);
	struct datapath_amount read = { .set = true };
	__u32 burst = 0;
	int ret;

	ret = flag_from_json(m.deny, "deny", &read.deny, err);
	if (ret || (!m.qps && !m.burst && !m.in_flight && !m.open && !read.deny))
		return ret;
	if (read.deny && (m.qps || m.burst || m.in_flight || m.open))
		return error_set(err, -EINVAL, "deny: use it without qps, burst, in_flight and open");
	if (read.deny) {
		*amount = read;
		return 0;
	}
	ret = amount_check(&m, *kind, err)							   ?:
		      number_from_json(m.in_flight, "in_flight", WEIR_BURST_MAX, &read.seats, err) ?:
		      number_from_json(m.open, "open", WEIR_BURST_MAX, &read.seats, err)	   ?:
		      number_from_json(m.burst, "burst", WEIR_BURST_MAX, &burst, err);
	if (!ret && m.qps)
		ret = qps_from_json(m.qps, &read.per_ns, err);
	if (ret)
		return ret;
	read.burst = burst;
	*amount = read;
	*kind = amount_kind(&m, *kind);
	return 0;
}
