/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the control socket share: control.c talks to one client, listen.c says who gets a place, client.c is the other side. */
#ifndef WEIR_USER_CONTROL_PRIVATE_H
#define WEIR_USER_CONTROL_PRIVATE_H

#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <sys/queue.h>

#include "weir/base/types.h"

#include "control/control.h"

/* What is told of a request that was not understood; earlier agents say the same. */
#define CONTROL_NOT_JSON "the request is not JSON"
#define CONTROL_NO_REQUEST "a request has a command and its arguments"

struct control_client {
	struct control *control;
	struct bufferevent *stream;
	uid_t uid;
	pid_t pid;
	enum access access;
	__u64 heard_ns;		  /* since when it has been silent */
	size_t searched;	  /* bytes of its input that have no end of a line */
	bool waiting;		  /* for control_answer() */
	bool closing;		  /* what is in its output is the last it gets */
	void (*ended)(void *arg); /* of a stream; else NULL */
	void *ended_arg;
	LIST_ENTRY(control_client) entry;
};

struct control {
	struct event_base *base;
	struct evconnlistener *listener;
	struct event *again; /* while nobody is accepted: when to look for room */
	struct access_control *access;
	const char *state_dir;
	struct sockaddr_un address;
	dev_t device; /* with inode: the socket that it has made there */
	ino_t inode;
	bool lost; /* that is not there any more, and could not be made again */
	int spare; /* a descriptor that makes room to refuse a client when there is no other; -1: not now */
	control_handler *handler;
	control_aside *aside; /* or NULL */
	void *context;
	LIST_HEAD(client_list, control_client) clients;
	unsigned int n_clients, n_guests; /* guests: those who are not root */
};

/* Talks to whoever is connected from now on; not counted yet. NULL without memory, and the connection is closed. */
struct control_client *control_client_new(struct control *control, evutil_socket_t fd, enum access access);
void control_client_free(struct control_client *client);

/* {"error": TEXT}: a new reference */
json_t *control_error_reply(const char *text);

#endif
