/* SPDX-License-Identifier: GPL-2.0 */
/* Servers in the kernel: attached, brought up, compared, drained and ended. */
#ifndef WEIR_USER_AGENT_SERVERS_H
#define WEIR_USER_AGENT_SERVERS_H

#include "agent/net.h"

/* --- servers.c */

__u32 server_flags(const struct server *server, const struct net *net);
/* A server that is not in force has none to change: 0. */
int server_apply_flags(struct agent *agent, int slot, struct error *err);
/* The same; a failure is logged. */
void server_refresh_flags(struct agent *agent, int slot);
/* Puts a server and its limits in force, or takes it over unchanged. A failure is also kept as its problem. */
int server_bring_up(struct agent *agent, int slot, struct error *err);
/* Brings what the kernel has of a server, and its namespace, in line with the state: what is right is left alone. */
int server_sync(struct net *net, int slot, struct error *err);
/* Takes a server out of the kernel and the state. Its connections must not need translating any more. */
int server_end(struct agent *agent, int slot, struct error *err);
/* Forgets what is so only of one that is in force. */
void server_out_of_force(struct agent *agent, int slot);
/* Warns the client who changes a server that could not be put in force: the kernel has what it had. Its name comes into not_in_force. */
void server_tell_failed(const struct agent *agent, int slot, json_t *result);
/* The slot that a command names, or the only one there is. -ENOENT; -EBUSY when it is draining. */
int server_named(const struct agent *agent, const char *name, struct error *err);

/* --- attach.c */

/*
 * Takes over the server, on failure too. netns_inode: where the command was given (may be NULL). Returns its slot, of which `listening`
 * is known.
 */
int server_attach(struct agent *agent, struct server *server, json_t *netns_inode, struct error *err);
/* A command that names no namespace means its own, which must then be the agent's. inode: of where it was given, or NULL. */
int server_check_home(json_t *inode, struct error *err);
/* Are its interfaces and its cgroup there? Without a cgroup it gets the root. fd: of its namespace. */
int server_check_hooks(struct agent *agent, int fd, struct server *server, struct error *err);
/* -EOPNOTSUPP: it wants what is held to be paced, and that cannot be. */
int server_check_pace(const struct server *server, const struct net *net, struct error *err);

/* --- deserted.c */

/*
 * -ESTALE: what it was attached by names another network namespace now, or none. The agent holds the old one, which is still limited. Where
 * nothing else leads to that one either, this is noted.
 */
int server_check_netns(struct agent *agent, int slot, struct error *err);
/* Is there a namespace of which this was noted twice? */
bool nets_given_up(const struct agent *agent);
/* Lets go of those. Their servers stay attached, and are in force again when there is a namespace of that name. A job. */
void nets_let_go(struct agent *agent);

/* --- listening.c */

void server_listening_free(struct server_listening *listening);
/* Finds out who listens on the ports of a server in force. */
void server_listen(struct agent *agent, int slot);
/* The same for all of them. A job. */
void servers_listen(struct agent *agent);
/* Is there a port on which nobody does? */
bool servers_unheard(const struct agent *agent);

/* --- drain.c */

/* How many connections of a server in force are translated. */
int server_count_translated(struct agent *agent, int slot, __u64 *translated, struct error *err);
/* What has become of the translated connections of a server that was detached. draining: it ends when these have. */
struct server_detached {
	int reset;
	__u64 draining;
};
/* Its limits are off at once. force: translated connections are reset, and a server that is not in force goes, too. */
int server_detach(struct agent *agent, int slot, bool force, struct server_detached *out, struct error *err);
bool servers_draining(const struct agent *agent);
/* Ends the servers that were detached and have no translated connection left. A job. */
void servers_drain(struct agent *agent);

/* --- identity.c */

/* Reads the files of a server that is in force. A failure is also kept as its identity_err, and changes nothing else. */
struct identity_count {
	int tokens, addresses;
};
int identity_load(struct agent *agent, int slot, struct identity_count *count, struct error *err);
/* Could the files of a server that is new, or is to be another, be put in force? Nothing is. */
int identity_check(struct agent *agent, const struct server *server, struct error *err);
/* What is said of a file of tokens that has none, once it was read; NULL: it has some, or there is no file. */
const char *identity_tokenless(const struct agent *agent, int slot);
/* What was read last, once more. */
int identity_sync(struct net *net, int slot, struct error *err);
void identity_forget(struct agent *agent, int slot);
#endif
