/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json_text.h"
#include "control/private.h"
#include "sys/process_stat.h"

#define WAITING_MS 2000
#define HUNG_MS 12000	  /* an event loop that turns answers anything within that */
#define GIVE_UP_MS 120000 /* of an agent whose event loop turns: it is busy with this, or with what came before */
#define START_TRIES 80
#define START_PAUSE_US 25000
#define START_SAY 20 /* tries */

static int refused(const struct sockaddr_un *address, int error, struct error *err)
{
	if (error == ENOENT || error == ECONNREFUSED)
		return error_set(err, -error, "no agent answers at %s: is \"weir agent\" running?", address->sun_path);
	if (error == EACCES)
		return error_set(
			err, -error,
			"%s: permission denied: root may talk to the agent, and who is in a group that it was told of "
			"(weir agent --admin-group, --monitor-group)",
			address->sun_path);
	if (error == EAGAIN)
		return error_set(
			err, -ETIMEDOUT,
			"the agent does not answer, and has room for no more commands. Restart it, or end it and all limits (weir "
			"uninstall --force)");
	return error_set(err, -error, "%s: %s", address->sun_path, strerror(error));
}

/* A full queue takes nobody more: *error is EAGAIN then, after so long. */
static bool connects(int fd, const struct sockaddr_un *address, int for_ms, int *error)
{
	const struct timeval patience = { .tv_sec = for_ms / 1000 };

	*error = 0;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		*error = errno;
	return !*error;
}

/* Who takes nothing more is not waited for without end, not even for room in its queue. waiting, or NULL: as of control_call(). */
static int connect_agent(const char *state_dir, void (*waiting)(void), struct error *err)
{
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	int ret, error;

	if (fd < 0)
		return error_set(err, -errno, "socket: %s", strerror(errno));
	ret = control_address(state_dir, &address, err);
	if (ret)
		return ret;
	if (!connects(fd, &address, WAITING_MS, &error) && error == EAGAIN) {
		if (waiting)
			waiting();
		connects(fd, &address, HUNG_MS - WAITING_MS, &error);
	}
	return error ? refused(&address, error, err) : cleanup_take(&fd);
}

void control_wait(const char *state_dir, void (*waiting)(void))
{
	for (int tries = 0; tries < START_TRIES; tries++) {
		CLEANUP_CLOSE int fd = connect_agent(state_dir, NULL, NULL);

		if (fd != -ENOENT && fd != -ECONNREFUSED)
			return;
		if (tries == START_SAY)
			waiting();
		usleep(START_PAUSE_US);
	}
}

/* A negative errno: it is not known. */
static pid_t pid_of(int fd)
{
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return -errno;
	return peer.pid ?: -ESRCH;
}

int control_agent_pid(const char *state_dir, pid_t *pid)
{
	CLEANUP_CLOSE int fd = connect_agent(state_dir, NULL, NULL);

	if (fd < 0)
		return fd;
	*pid = pid_of(fd);
	return *pid < 0 ? *pid : 0;
}

/* Has a signal stopped it, or a debugger? */
static bool is_stopped(pid_t pid)
{
	struct process_stat process;

	return !process_stat_read(pid, &process) && (process.state == 'T' || process.state == 't');
}

/* What was sent there it reads when it goes on. */
static int say_hung(int fd, struct error *err)
{
	pid_t pid = pid_of(fd);
	char process[32] = "";

	if (pid > 0 && is_stopped(pid))
		return error_set(
			err, -ETIMEDOUT,
			"the agent does not answer: its process %d is stopped. Continue it (kill -CONT %d), and it may still do what it "
			"was asked. Limits stay in force",
			pid, pid);
	if (pid > 0)
		snprintf(process, sizeof(process), " %d", pid);
	return error_set(
		err, -ETIMEDOUT,
		"the agent does not answer: its process%s hangs. Restart it, or end it and all limits (weir uninstall --force). If it "
		"goes on, it may still do what it was asked. Limits stay in force",
		process);
}

/*
 * Behind the other members, with a carriage return for each line's end. In JSON both are spaces like any other, and neither stands in a string.
 * So what is JSON stays JSON, and what is not becomes none.
 */
static void add_document(struct text *line, const char *document)
{
	size_t begin;

	line->used--; /* the end of the request */
	text_add(line, ",\"document\":");
	begin = line->used;
	text_add(line, document);
	text_add(line, "}");
	for (size_t i = begin; i < line->used; i++)
		if (line->bytes[i] == '\n')
			line->bytes[i] = '\r';
}

static int send_text(int fd, const struct text *line, struct error *err)
{
	size_t sent = 0;

	while (sent < line->used) {
		ssize_t n = send(fd, line->bytes + sent, line->used - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ?
				       say_hung(fd, err) :
				       error_set(err, -errno, "the agent closed the connection: %s", strerror(errno));
		sent += n > 0 ? n : 0;
	}
	return 0;
}

/* document: or NULL. */
static int send_line(int fd, json_t *request, const char *document, struct error *err)
{
	CLEANUP_TEXT struct text line = { 0 };

	if (!request)
		return error_set(err, -EINVAL, "the command is not valid UTF-8");
	text_add_value(&line, request);
	if (document && !line.failed)
		add_document(&line, document);
	text_add(&line, "\n");
	if (line.failed)
		return error_set(err, -ENOMEM, "out of memory");
	if (line.used > CONTROL_LINE_MAX)
		return error_set(err, -E2BIG, "the command is too long");
	return send_text(fd, &line, err);
}

/* Asks on another connection what the event loop answers at once, whatever it is that the agent is busy with. */
static int ask_anything(const char *state_dir)
{
	CLEANUP_CLOSE int fd = connect_agent(state_dir, NULL, NULL);

	if (fd >= 0 && send(fd, "\n", 1, MSG_NOSIGNAL) != 1)
		return -errno;
	return cleanup_take(&fd);
}

/* Only silence says that it hangs: not a connection that it closes at once, a descriptor that this process lacks, or a signal. */
static bool answers(const char *state_dir, int fd)
{
	CLEANUP_CLOSE int other = ask_anything(state_dir);
	struct pollfd either[] = { { .fd = fd, .events = POLLIN }, { .fd = other, .events = POLLIN } };

	if (other < 0 && other != -ETIMEDOUT)
		return true;
	return poll(either, 2, other < 0 ? 0 : HUNG_MS) != 0; /* it was waited for already */
}

static bool is_readable(int fd, int for_ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	int n;

	do
		n = poll(&pollfd, 1, for_ms);
	while (n < 0 && errno == EINTR); /* a terminal of another size is no answer, and no silence */
	return n > 0;
}

/* Waits until there is something to read, as long as the agent's event loop turns. */
static int wait_readable(const char *state_dir, int fd, void (*waiting)(void), struct error *err)
{
	if (is_readable(fd, WAITING_MS))
		return 0;
	if (waiting)
		waiting();
	for (int waited_ms = 0; waited_ms < GIVE_UP_MS; waited_ms += HUNG_MS) {
		if (!answers(state_dir, fd))
			return say_hung(fd, err);
		if (is_readable(fd, HUNG_MS))
			return 0;
	}
	return error_set(
		err, -ETIMEDOUT,
		"the agent does not answer: it is busy with this, or with what came before, for more than %d s. It may still do what "
		"it was asked: see \"weir status\"",
		GIVE_UP_MS / 1000);
}

static int receive_reply(FILE *stream, json_t **reply, struct error *err)
{
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;
	json_error_t why;
	ssize_t length;

	errno = 0;
	length = getline(&line, &room, stream);
	if (length < 0 && errno == ENOMEM)
		return error_set(err, -ENOMEM, "out of memory");
	if (length <= 0 || line[length - 1] != '\n')
		return error_set(err, -EPIPE,
				 "the agent closed the connection without an answer. It may have done what it was "
				 "asked: see \"weir status\"");
	*reply = json_loadb(line, length, 0, &why);
	return *reply ? 0 : error_set(err, -EPROTO, "the agent's answer is not JSON: %s", why.text);
}

static bool is_not_understood(json_t *error)
{
	const char *text = json_string_value(error) ?: "";

	return strcmp(text, CONTROL_NOT_JSON) == 0 || strcmp(text, CONTROL_NO_REQUEST) == 0;
}

static int read_reply(json_t *reply, json_t **result, struct error *err)
{
	json_t *error = json_object_get(reply, "error");
	json_t *value = json_object_get(reply, "result");

	if (error)
		return error_set(err, is_not_understood(error) ? -EBADMSG : -EREMOTEIO, "%s",
				 json_is_string(error) ? json_string_value(error) : "unknown error");
	if (!value)
		return error_set(err, -EPROTO, "the agent's answer has neither a result nor an error");
	*result = json_incref(value);
	return 0;
}

/* Asks, and reads the reply; what follows it is left to be read from *stream. document: or NULL. */
static int ask(const char *state_dir, const char *command, json_t *arguments, const char *document, json_t **result,
	       void (*waiting)(void), FILE **stream, struct error *err)
{
	CLEANUP_JSON json_t *request = json_pack("{s:s, s:O?}", "command", command, "arguments", arguments);
	CLEANUP_CLOSE int fd = connect_agent(state_dir, waiting, err);
	CLEANUP_JSON json_t *reply = NULL;
	int ret;

	if (fd < 0)
		return fd;
	/* The agent may refuse a client before it reads the command. */
	ret = send_line(fd, request, document, err);
	if (!ret || ret == -EPIPE)
		ret = wait_readable(state_dir, fd, waiting, err);
	if (ret)
		return ret;
	*stream = fdopen(fd, "r");
	if (!*stream)
		return error_set(err, -ENOMEM, "out of memory");
	cleanup_take(&fd);
	return receive_reply(*stream, &reply, err) ?: read_reply(reply, result, err);
}

int control_call(const char *state_dir, const char *command, json_t *arguments, json_t **result, void (*waiting)(void),
		 struct error *err)
{
	CLEANUP_FCLOSE FILE *stream = NULL;

	return ask(state_dir, command, arguments, NULL, result, waiting, &stream, err);
}

bool control_is_away(int ret)
{
	return ret == -ENOENT || ret == -ECONNREFUSED || ret == -ECONNRESET || ret == -EPIPE || ret == -ETIMEDOUT;
}

int control_call_with(const char *state_dir, const char *command, json_t *arguments, const char *document,
		      json_t **result, void (*waiting)(void), struct error *err)
{
	CLEANUP_FCLOSE FILE *stream = NULL;

	return ask(state_dir, command, arguments, document, result, waiting, &stream, err);
}

int control_follow(const char *state_dir, const char *command, json_t *arguments, json_t **result,
		   void (*waiting)(void), FILE **stream, struct error *err)
{
	CLEANUP_FCLOSE FILE *opened = NULL;
	int ret = ask(state_dir, command, arguments, NULL, result, waiting, &opened, err);

	if (ret)
		return ret;
	*stream = opened;
	opened = NULL;
	return 0;
}
