/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/leftovers.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/net.h"
#include "base/log.h"
#include "datapath/remains.h"

static void note(struct agent *agent, __u64 cookie)
{
	char path[PATH_MAX];

	net_pins(agent, cookie, path);
	if (!remains_held(path))
		log_warning(
			"%s is in force, and its servers are not in the state: weir uninstall ends it, and so does attaching a server there",
			path);
	json_array_append_new(agent->leftovers, json_integer(cookie));
}

void leftovers_look(struct agent *agent)
{
	DIR *dir = opendir(agent->options->pin_dir);
	const struct dirent *entry;

	agent->leftovers = json_array();
	while (dir && (entry = readdir(dir))) {
		unsigned long long cookie;
		int end = 0;

		if (sscanf(entry->d_name, "net-%llu%n", &cookie, &end) == 1 && !entry->d_name[end] &&
		    net_first_server(agent, cookie) < 0)
			note(agent, cookie);
	}
	if (dir)
		closedir(dir);
}

json_t *leftovers_to_json(const struct agent *agent)
{
	json_t *list = json_array(), *cookie;
	size_t i;

	json_array_foreach (agent->leftovers, i, cookie) {
		__u64 net = json_integer_value(cookie);
		char path[PATH_MAX];

		net_pins(agent, net, path);
		if (net_first_server(agent, net) < 0 && !net_find(agent, net) && !access(path, F_OK) &&
		    !remains_held(path))
			json_array_append_new(list, json_string(path));
	}
	return list;
}
