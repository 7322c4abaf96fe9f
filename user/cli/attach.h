/* SPDX-License-Identifier: GPL-2.0 */
/* The options of `weir attach`: their keys, and what each of them makes of the server. */
#ifndef WEIR_USER_CLI_ATTACH_H
#define WEIR_USER_CLI_ATTACH_H

#include <argp.h>
#include <jansson.h>

enum attach_key {
	ATTACH_CGROUP = 0x200,
	ATTACH_DRY_RUN,
	ATTACH_FRAMING,
	ATTACH_BODIES,
	ATTACH_KEYS,
	ATTACH_LOOPBACK,
	ATTACH_NAMESPACE_FROM,
	ATTACH_PATHS,
	ATTACH_PROXY_PROTOCOL,
	ATTACH_HOLD,
	ATTACH_WHEN_FULL,
	ATTACH_EXEMPT_SOURCE,
	ATTACH_EXEMPT_PATH,
	ATTACH_INSIDE,
	ATTACH_INSIDE_SHARE,
	ATTACH_WRITE_MEMORY,
	ATTACH_HOLD_MAX,
	ATTACH_REFUSALS,
	ATTACH_XDP,
	ATTACH_SYN_COOKIES,
	ATTACH_MAX_RETRY_AFTER,
};

/* Ends the program where an option's value is none. ARGP_ERR_UNKNOWN: there is no such option. */
error_t attach_set(const struct argp_state *state, json_t *server, int key, char *arg);

#endif
