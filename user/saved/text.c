/* SPDX-License-Identifier: GPL-2.0 */
#include "saved/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_text.h"
#include "base/rate.h"

/* The members of an object, to which others are added. */
static int write_open(json_t *object, struct text *out)
{
	CLEANUP_JSON json_t *owned = object;

	if (!object)
		return -ENOMEM;
	text_add_value(out, object);
	out->used -= !out->failed;
	return 0;
}

static void write_number(const char *member, __u64 number, struct text *out)
{
	text_add(out, member);
	text_add_number(out, number);
}

/* There may be very many: no formats are read for them. */
static void write_override(const struct limit *limit, const struct override *override, struct text *out)
{
	__u64 per_ns = override->amount.per_ns;
	char qps[WEIR_QPS_TEXT];

	text_add(out, "{\"subject\":");
	text_add_string(out, override->subject);
	if (override->amount.deny) {
		text_add(out, ",\"deny\":true");
	} else if (weir_limit_has_seats(limit->kind)) {
		write_number(limit->kind == WEIR_LIMIT_OPEN ? ",\"open\":" : ",\"in_flight\":", override->amount.seats,
			     out);
	} else if (per_ns % WEIR_QPS) {
		weir_qps_format(per_ns, qps, sizeof(qps));
		text_add(out, ",\"qps\":\"");
		text_add(out, qps);
		text_add(out, "\"");
		write_number(",\"burst\":", override->amount.burst, out);
	} else {
		write_number(",\"qps\":\"", per_ns / WEIR_QPS, out);
		write_number("\",\"burst\":", override->amount.burst, out);
	}
	text_add(out, "}");
}

static int write_limit(const struct limit *limit, struct text *out)
{
	int ret = write_open(limit_settings_to_json(limit), out);

	if (ret)
		return ret;
	if (limit->n_overrides)
		text_add(out, ",\"overrides\":[");
	for (size_t i = 0; i < limit->n_overrides; i++) {
		if (i)
			text_add(out, ",");
		write_override(limit, &limit->overrides[i], out);
	}
	text_add(out, limit->n_overrides ? "]}" : "}");
	return 0;
}

static int write_limits(const struct server *server, struct text *out)
{
	int ret = 0;

	text_add(out, ",\"limits\":[");
	for (size_t i = 0; i < server->n_limits && !ret; i++) {
		if (i)
			text_add(out, ",");
		ret = write_limit(&server->limits[i], out);
	}
	text_add(out, "]");
	return ret;
}

/* Objects of policies do not change: there are other ones in their place. */
static const char *policy_text(struct server *server)
{
	if (server->policy_text.of == server->policy && server->policy_text.text)
		return server->policy_text.text;
	free(server->policy_text.text);
	json_decref(server->policy_text.of);
	server->policy_text.of = json_incref(server->policy);
	server->policy_text.text = json_text(server->policy);
	return server->policy_text.text;
}

static int write_policy(struct server *server, struct text *out)
{
	const char *text = server->policy ? policy_text(server) : NULL;

	if (!server->policy)
		return 0;
	if (!text)
		return -ENOMEM;
	text_add(out, ",\"policy\":");
	text_add(out, text);
	return 0;
}

int server_write(struct server *server, struct text *out)
{
	int ret = write_open(server_settings_chosen(server), out) ?:
			  write_limits(server, out)		  ?:
								    write_policy(server, out);

	text_add(out, "}");
	return ret;
}

void override_line(int slot, const struct limit *limit, const struct override *override, struct text *out)
{
	write_number("{\"slot\":\"", slot, out);
	text_add(out, "\",\"limit\":");
	text_add_string(out, limit->name);
	text_add(out, ",\"override\":");
	write_override(limit, override, out);
	text_add(out, "}\n");
}
