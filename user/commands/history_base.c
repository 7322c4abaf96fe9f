/* SPDX-License-Identifier: GPL-2.0 */
/* Where the counters stood, over restarts of the agent. */
#include <stdlib.h>
#include <string.h>

#include "commands/history_sample.h"
#include "sys/boot_id.h"

#define VERSION 1

void history_base_clear(struct history_base *base)
{
	for (size_t i = 0; i < base->n_nets; i++)
		history_mark_clear(&base->nets[i].mark);
	free(base->nets);
	json_decref(base->servers);
	*base = (struct history_base){ 0 };
}

/* {COOKIE: mark} */
static json_t *nets_to_json(const struct history_base *base)
{
	json_t *nets = json_object();
	char cookie[24];

	for (size_t i = 0; i < base->n_nets; i++) {
		snprintf(cookie, sizeof(cookie), "%llu", base->nets[i].cookie);
		json_object_set_new(nets, cookie, history_mark_to_json(&base->nets[i].mark));
	}
	return nets;
}

json_t *history_base_to_json(const struct history_base *base)
{
	char boot_id[BOOT_ID_SIZE];

	boot_id_read(boot_id);
	return json_pack("{s:i, s:s, s:I, s:I, s:o, s:O}", "version", VERSION, "boot_id", boot_id, "time",
			 (json_int_t)base->time, "time_ns", (json_int_t)base->time_ns, "nets", nets_to_json(base),
			 "servers", base->servers);
}

static bool nets_from_json(struct history_base *base, json_t *json)
{
	const char *cookie;
	json_t *mark;

	base->nets = calloc(json_object_size(json) + 1, sizeof(*base->nets));
	if (!base->nets || !json_is_object(json))
		return false;
	json_object_foreach (json, cookie, mark) {
		struct history_net *net = &base->nets[base->n_nets++];

		net->cookie = strtoull(cookie, NULL, 10);
		if (history_mark_from_json(&net->mark, mark))
			return false;
	}
	return true;
}

bool history_base_from_json(struct history_base *base, json_t *json)
{
	struct history_base read = { 0 };
	json_int_t time, time_ns;
	char boot_id[BOOT_ID_SIZE];
	const char *of_boot;
	json_t *nets;
	int version;

	boot_id_read(boot_id);
	if (json_unpack(json, "{s:i, s:s, s:I, s:I, s:o, s:o}", "version", &version, "boot_id", &of_boot, "time", &time,
			"time_ns", &time_ns, "nets", &nets, "servers", &read.servers))
		return false;
	json_incref(read.servers);
	read.time = time;
	read.time_ns = time_ns;
	if (version != VERSION || strcmp(of_boot, boot_id) != 0 || !nets_from_json(&read, nets)) {
		history_base_clear(&read);
		return false;
	}
	history_base_clear(base);
	*base = read;
	return true;
}
