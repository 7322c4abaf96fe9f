/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each command does: it takes the arguments of the client's line of JSON, and gives its result, or an error. Those that change
 * something are jobs; daemon/request.c says which.
 */
#ifndef WEIR_USER_COMMANDS_COMMANDS_H
#define WEIR_USER_COMMANDS_COMMANDS_H

#include "agent/agent.h"

int agent_apply(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_attach(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_audit(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_delete(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_detach(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_diff(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_dry_run(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_events(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_explain(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_export(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_history(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_limit_delete(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_limit_list(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_limit_set(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_max_in_flight(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_metrics(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_pause(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_reload(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_resume(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_status(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_top(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_trace(struct agent *agent, json_t *arguments, json_t **result, struct error *err);

/* Reads the files of tokens and addresses of every server in force; what was read is added to the list. The first failure is returned. */
int servers_reload(struct agent *agent, json_t *list, struct error *err);
/* An error of a command for all servers, which says for how many of them it was done before. Returns ret. */
int error_after(json_t *done, int ret, struct error *err);
/* Of a server that was just attached: an array of texts, which may be empty. NULL without memory. */
json_t *server_warnings(const struct agent *agent, int slot);
/* One of these: programs by which sockets may go round all packets. NULL: there are none. The caller frees it. */
char *sockmap_warning(void);
/* One of metrics_modes. */
const char *server_mode(const struct agent *agent, int slot);

#endif
