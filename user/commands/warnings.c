/* SPDX-License-Identifier: GPL-2.0 */
/* What a server is warned of as its namespace and the kernel are now. */
#include <stdio.h>

#include "agent/net.h"
#include "base/cleanup.h"
#include "commands/commands.h"
#include "sys/sockmap.h"

char *sockmap_warning(void)
{
	CLEANUP_FREE char *programs = sockmap_programs();
	char *text;

	if (!programs ||
	    asprintf(
		    &text,
		    "what BPF programs hand from one local socket to another is in no packet, and is limited only inside a server: %s",
		    programs) < 0)
		return NULL;
	return text;
}

json_t *server_warnings(const struct agent *agent, int slot)
{
	struct net *net = net_in_force(agent, slot);
	CLEANUP_FREE char *other_weir = net ? net_other_weir(net) : NULL, *sockmap = sockmap_warning();
	const struct server_listening *listening = &agent->servers[slot].listening;

	return json_pack("[s*, s*, s*, s*, s*]", listening->nobody, listening->udp, agent->servers[slot].held_elsewhere,
			 other_weir, sockmap);
}
