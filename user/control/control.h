/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control protocol: JSON objects over STATE_DIR/weir.sock, one in a line each way, answered in order.
 *
 *   request  {"command": NAME, "arguments": {...}}
 *   reply    {"result": ...} or {"error": TEXT}
 *
 * A request may have a "document" besides, which becomes the argument of that name: a client can put there what it has not read itself. A
 * request has all of its members once and no others, so nothing that a document says is taken for an argument.
 *
 * Who is served, access.h says; the others get one line, an error, and their connection ends. A line has a
 * bound; a client that is silent or does not read its replies is dropped after CONTROL_TIMEOUT_S. Users
 * other than root have few connections each. When there is no room for one more, who has been silent for CONTROL_SILENT_S
 * makes room.
 *
 * A command may be answered by a stream: after its reply, objects in lines of their own as they come, until the client
 * closes its sending side. It is still sent what there was up to then. Of one that does not keep up, lines are left out.
 */
#ifndef WEIR_USER_CONTROL_CONTROL_H
#define WEIR_USER_CONTROL_CONTROL_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/error.h"
#include "control/access.h"

#define CONTROL_LINE_MAX (16U << 20)		     /* of a request: what policy files hold travels in one */
#define CONTROL_READER_LINE_MAX (1U << 20)	     /* of one from whom may only read */
#define CONTROL_LARGE (64U << 10)		     /* from here on a request is read and forgotten aside */
#define CONTROL_CLIENTS_MAX 512			     /* served at once; the others wait in the socket's queue */
#define CONTROL_GUESTS_MAX (CONTROL_CLIENTS_MAX / 2) /* of them: those who are not root; more are refused */
#define CONTROL_USER_MAX 16			     /* of one user who is not root; more are refused */
#define CONTROL_TIMEOUT_S 10
#define CONTROL_SILENT_S 1
#define CONTROL_QUEUE_MAX (4U << 20) /* bytes of a stream that its client has not read yet */

/* The address of a state directory's socket; -ENAMETOOLONG. */
int control_address(const char *state_dir, struct sockaddr_un *address, struct error *err);

struct control;
struct control_client;
struct text;

/*
 * Handles a command. Sets *result (a new reference) and returns 0, or a negative errno with err filled in; or CONTROL_LATER:
 * then the client waits for control_answer(), and is not let go before, unless by control_close().
 */
#define CONTROL_LATER 1
typedef int control_handler(void *context, struct control_client *client, const char *command, json_t *arguments,
			    json_t **result, struct error *err);

/*
 * Writes the line that answers with what a handler would have returned. Any thread may do so, because it may be large. Takes over result.
 */
void control_reply(struct text *line, int ret, json_t *result, const struct error *err);
void control_answer(struct control_client *client, const struct text *line);

/* What the client may say. NULL, for what the agent asks of itself: everything. */
enum access control_client_access(const struct control_client *client);
/* Who it is. */
void control_client_peer(const struct control_client *client, uid_t *uid, pid_t *pid);

/*
 * For a handler that succeeds: a stream follows its reply. ended(arg) is called when the client wants no more or is gone;
 * it may still send, and is to control_end().
 */
void control_stream(struct control_client *client, void (*ended)(void *arg), void *arg);
/* Takes over value. False when the client does not keep up: it is left out. */
bool control_send(struct control_client *client, json_t *value);
/* Ends the stream with a last line, and the connection after it. Takes over value. */
void control_end(struct control_client *client, json_t *value);

/*
 * Binds the socket (a stale one is replaced: the caller holds the lock of the directory) and serves it from `base`, to those
 * of `access`, in which refusals are counted.
 */
int control_open(struct control **out, struct event_base *base, const char *state_dir, struct access_control *access,
		 control_handler *handler, void *context, struct error *err);
/*
 * Has large requests read and forgotten elsewhere. Another thread is to call run(arg), and the event loop done(arg) afterwards, or done(arg)
 * alone. The context is the handler's. question: the client may only read. A negative errno: nobody will call them, and the request is read
 * at once.
 */
typedef int control_aside(void *context, void (*run)(void *arg), void (*done)(void *arg), void *arg, bool question);
void control_set_aside(struct control *control, control_aside *aside);
/*
 * Makes the socket again if somebody has deleted or replaced it, as what cleans up /run may: without it nobody could end the agent's limits.
 * In the event loop, now and then, while the directory's lock is held.
 */
void control_look_after(struct control *control);
/* Drops every client and takes the socket away. */
void control_close(struct control *control);

/* The pid of the agent that listens, as it is called here. -ESRCH: it is in a PID namespace that cannot be seen from here. */
int control_agent_pid(const char *state_dir, pid_t *pid);

/*
 * The client's side: one command, one reply. *result is a new reference. The agent's own errors come back as -EREMOTEIO
 * with its text. waiting, if not NULL, is called once when the reply takes more than two seconds. -ETIMEDOUT: for 12 s more the agent
 * answered nothing at all, or it was busy for two minutes; it may still do what it was asked.
 */
int control_call(const char *state_dir, const char *command, json_t *arguments, json_t **result, void (*waiting)(void),
		 struct error *err);
/* Of what such a call has returned: the agent is not there, or does not answer. It may be there again for the next call. */
bool control_is_away(int ret);

/*
 * Likewise, with the document as its text is. -EBADMSG: the agent has not understood the request, and has done nothing. Either the text is not
 * JSON, or the agent is of an earlier version.
 */
int control_call_with(const char *state_dir, const char *command, json_t *arguments, const char *document,
		      json_t **result, void (*waiting)(void), struct error *err);

/*
 * Waits for an agent that is being started, for two seconds at most, and calls waiting() after half a second. What else is wrong the call will
 * say.
 */
void control_wait(const char *state_dir, void (*waiting)(void));

/* As control_call, for a command that is answered by a stream: the lines after the reply are read from *stream. */
int control_follow(const char *state_dir, const char *command, json_t *arguments, json_t **result,
		   void (*waiting)(void), FILE **stream, struct error *err);

#endif
