/* SPDX-License-Identifier: GPL-2.0 */
/* What inside*.c share: the processes of servers that are looked into. */
#ifndef WEIR_USER_AGENT_INSIDE_PRIVATE_H
#define WEIR_USER_AGENT_INSIDE_PRIVATE_H

#include "agent/agent.h"
#include "agent/inside.h"
#include "inside/binary.h"
#include "inside/process.h"

/* A process that listens, and what it is. why, taken: it is not looked into. */
struct inside_served {
	struct inside_process process;
	struct inside_binary binary;
	int fd; /* of the binary, so that its inode is no other's */
	__u64 bias;
	bool answers; /* its requests can be refused by registers; else no_answer says why not */
	bool writes;  /* and by memory; else no_write does */
	struct error no_answer, no_write;
	bool foreign; /* it is no program that Go has made, as far as weir knows */
	struct error why;
	__u64 found_ns; /* CLOCK_MONOTONIC */
	/* Another server has had it for longer, and has all its requests: nothing says for which one they come. */
	struct error taken;
};

struct inside_server {
	struct inside_listeners listeners;
	struct inside_served *served; /* owned */
	size_t n;
	unsigned int turns;		  /* since processes were looked for */
	struct inside_present present;	  /* a second ago; owned */
	enum inside_mode lane;		  /* as is asked for, or what `auto` takes: never AUTO */
	bool proven;			  /* that its requests are seen is known */
	struct error unchosen;		  /* why `auto` does not have it answer */
	struct error unfound;		  /* its processes were looked for in vain */
	bool in_force;			  /* the kernel has had them as they were here */
	bool pending;			  /* it is to have them as they are now: tried again and again */
	bool ends;			  /* the ends of their requests are probed, too */
	__u64 read_before, failed_before; /* as the kernel had counted them when these processes were found */
	struct error blind;		  /* too many could not be read: none is refused */
	struct error why;		  /* nobody is looked into */
	struct error failed;		  /* the kernel has not taken them as they are now */
};

/* inside_find.c: the processes of a server, and whether they are others than before (*found: *next has been filled in) */
int inside_find_changes(struct net *net, const struct server *server, struct inside_server *inside,
			struct inside_server *next, bool *found, struct error *err);

/* A process that listens for two servers is that one's which was attached first. Has that changed? */
bool inside_taken_change(struct agent *agent, int slot);

/* inside.c: may this agent look into servers at all? Is this server one? */
int inside_check_allowed(const struct agent *agent, struct error *err);
bool inside_is_followed(const struct agent *agent, int slot);

/*
 * inside_choose.c. inside_choose() chooses the lane from what is known now: has it changed? inside_lets_go(): does TLS pass without being held in
 * that lane?
 */
bool inside_choose(const struct agent *agent, int slot);
bool inside_lets_go(const struct agent *agent, int slot);

/* inside_status.c: why each request is seen at several instructions, most of them single-stepped; NULL: it is seen at one. */
const char *inside_why_slow(const struct inside_served *seen);

/* inside_sync.c: all processes of the namespace */
int inside_sync_net(struct net *net, struct error *err);
/* Why it is not looked into, whatever is asked for; NULL: it is. */
const char *inside_not_seen(const struct inside_served *served);
/* Percent of connections of which requests are refused. */
__u32 inside_share(const struct server *server);
/* Can requests of this process be refused? Else *why says why not. */
bool inside_can_answer(const struct server *server, const struct inside_served *served, const char **why);
/* Are they to be? */
bool inside_is_answered(const struct agent *agent, int slot, const struct inside_served *served);
/* Why it is not looked into as was asked for; NULL: it is. */
const char *inside_not_served(const struct agent *agent, int slot, const struct inside_served *served);

#endif
