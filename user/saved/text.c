/* SPDX-License-Identifier: GPL-2.0 */
#include "saved/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_text.h"
#include "base/rate.h"

static void write_text(const char *text, FILE *out)
{
	putc_unlocked('"', out);
	for (; *text; text++) {
		if ((unsigned char)*text < ' ')
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			putc_unlocked(*text, out);
	}
	putc_unlocked('"', out);
}

/* The members of an object, to which others are added. */
static int write_open(json_t *object, FILE *out)
{
	CLEANUP_JSON json_t *owned = object;
	CLEANUP_FREE char *text = object ? json_text(object) : NULL;

	if (!text)
		return -ENOMEM;
	fwrite(text, 1, strlen(text) - 1, out);
	return 0;
}

static void write_number(const char *member, __u64 number, FILE *out)
{
	char digits[24], *digit = &digits[sizeof(digits) - 1];

	*digit = '\0';
	do
		*--digit = '0' + number % 10;
	while (number /= 10);
	fputs_unlocked(member, out);
	fputs_unlocked(digit, out);
}

/* There may be very many: no formats are read for them. */
static void write_override(const struct limit *limit, const struct override *override, FILE *out)
{
	__u64 per_ns = override->amount.per_ns;
	char qps[WEIR_QPS_TEXT];

	fputs_unlocked("{\"subject\":", out);
	write_text(override->subject, out);
	if (override->amount.deny) {
		fputs_unlocked(",\"deny\":true", out);
	} else if (weir_limit_has_seats(limit->kind)) {
		write_number(limit->kind == WEIR_LIMIT_OPEN ? ",\"open\":" : ",\"in_flight\":", override->amount.seats,
			     out);
	} else if (per_ns % WEIR_QPS) {
		weir_qps_format(per_ns, qps, sizeof(qps));
		fprintf(out, ",\"qps\":\"%s\"", qps);
		write_number(",\"burst\":", override->amount.burst, out);
	} else {
		write_number(",\"qps\":\"", per_ns / WEIR_QPS, out);
		write_number("\",\"burst\":", override->amount.burst, out);
	}
	putc_unlocked('}', out);
}

static int write_limit(const struct limit *limit, FILE *out)
{
	int ret = write_open(limit_settings_to_json(limit), out);

	if (ret)
		return ret;
	if (limit->n_overrides)
		fputs_unlocked(",\"overrides\":[", out);
	for (size_t i = 0; i < limit->n_overrides; i++) {
		if (i)
			putc_unlocked(',', out);
		write_override(limit, &limit->overrides[i], out);
	}
	fputs_unlocked(limit->n_overrides ? "]}" : "}", out);
	return 0;
}

static int write_limits(const struct server *server, FILE *out)
{
	int ret = 0;

	fputs_unlocked(",\"limits\":[", out);
	for (size_t i = 0; i < server->n_limits && !ret; i++) {
		if (i)
			putc_unlocked(',', out);
		ret = write_limit(&server->limits[i], out);
	}
	putc_unlocked(']', out);
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

static int write_policy(struct server *server, FILE *out)
{
	const char *text = server->policy ? policy_text(server) : NULL;

	if (!server->policy)
		return 0;
	if (!text)
		return -ENOMEM;
	fputs_unlocked(",\"policy\":", out);
	fputs_unlocked(text, out);
	return 0;
}

int server_write(struct server *server, FILE *out)
{
	int ret = write_open(server_settings_chosen(server), out) ?:
			  write_limits(server, out)		  ?:
								    write_policy(server, out);

	putc_unlocked('}', out);
	return ret;
}
