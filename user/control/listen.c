/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's socket: which users may connect to it, and how many at once. */
#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "control/private.h"

/* Who waits for a reply, follows a stream, or has said something that was not read yet, is not. */
static bool is_silent(const struct control_client *client)
{
	int unread = 0;

	if (client->ended || client->waiting || evbuffer_get_length(bufferevent_get_output(client->stream)) > 0)
		return false;
	return !ioctl(bufferevent_getfd(client->stream), FIONREAD, &unread) && !unread;
}

/* Drops the connection that has been silent for longest, if that is long enough. */
static bool make_room(struct control *control)
{
	__u64 since = clock_ns(CLOCK_MONOTONIC) - CONTROL_SILENT_S * WEIR_NS_PER_S;
	struct control_client *client, *silent = NULL;

	LIST_FOREACH (client, &control->clients, entry) {
		if (client->heard_ns > since || !is_silent(client))
			continue;
		since = client->heard_ns;
		silent = client;
	}
	if (silent)
		control_client_free(silent);
	return silent;
}

/* The others wait in the socket's queue, until there is room, or may be. */
static void pause_accepting(struct control *control)
{
	evconnlistener_disable(control->listener);
	event_add(control->again, &(struct timeval){ .tv_sec = CONTROL_SILENT_S });
}

static void accept_again(evutil_socket_t fd, short what, void *context)
{
	struct control *control = context;

	(void)fd;
	(void)what;
	if (control->spare < 0)
		control->spare = eventfd(0, EFD_CLOEXEC);
	if (control->n_clients < CONTROL_CLIENTS_MAX || make_room(control))
		evconnlistener_enable(control->listener);
	else
		pause_accepting(control);
}

static bool is_one_too_many(const struct control *control, uid_t uid)
{
	const struct control_client *client;
	unsigned int n = 0;

	if (access_is_owner(uid))
		return false;
	LIST_FOREACH (client, &control->clients, entry)
		n += client->uid == uid;
	return n >= CONTROL_USER_MAX || control->n_guests >= CONTROL_GUESTS_MAX;
}

/* The access of a user who connects; ACCESS_NONE with err: why not. */
static enum access admit(const struct control *control, const struct access_peer *peer, struct error *err)
{
	enum access access = access_of(control->access, peer);
	enum access_refusal why = ACCESS_REFUSED_STRANGER;

	if (access == ACCESS_NONE) {
		access_explain(control->access, peer->uid, err);
	} else if (is_one_too_many(control, peer->uid)) {
		error_set(err, 0,
			  "user %u has too many connections to this agent: at most %d for each user, %d together",
			  peer->uid, CONTROL_USER_MAX, CONTROL_GUESTS_MAX);
		why = ACCESS_REFUSED_TOO_MANY;
	} else {
		return access;
	}
	control->access->refused[why]++;
	return ACCESS_NONE;
}

/* There is room for one line in any socket's buffer. */
static void turn_away(evutil_socket_t fd, const struct error *err)
{
	CLEANUP_JSON json_t *value = control_error_reply(err->text);
	CLEANUP_FREE char *text = json_dumps(value, JSON_COMPACT);
	size_t length = text ? strlen(text) : 0;

	if (text) {
		text[length] = '\n'; /* in the place of its NUL */
		send(fd, text, length + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	close(fd);
}

/* Without a descriptor to spare, whoever connects would wait for something that he could not know. 0: one was refused, or is gone. */
static int refuse_next(struct control *control, int error)
{
	struct error err;
	int fd, ret;

	cleanup_close(&control->spare);
	fd = accept4(evconnlistener_get_fd(control->listener), NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	ret = fd < 0 && errno != EAGAIN ? -errno : 0;
	error_write(
		&err,
		"the agent can take no more commands: %s: end others, or give it more (LimitNOFILE= of its service)",
		strerror(error));
	if (fd >= 0)
		turn_away(fd, &err);
	control->spare = eventfd(0, EFD_CLOEXEC);
	return ret;
}

/* Whoever is silent goes first. The listener tries again by itself. */
static void cannot_accept(struct evconnlistener *listener, void *context)
{
	struct control *control = context;
	int error = errno;

	(void)listener;
	if (!make_room(control) && refuse_next(control, error))
		pause_accepting(control);
}

static void client_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int length,
			  void *context)
{
	CLEANUP_PEER struct access_peer peer = { 0 };
	struct control *control = context;
	struct control_client *client;
	struct error err = { 0 };
	enum access access;

	(void)listener;
	(void)address;
	(void)length;
	access = access_peer_read(fd, &peer) ? ACCESS_NONE : admit(control, &peer, &err);
	if (access == ACCESS_NONE) {
		turn_away(fd, &err);
		return;
	}
	client = control_client_new(control, fd, access);
	if (!client)
		return;
	client->uid = peer.uid;
	client->pid = peer.pid;
	control->n_guests += !access_is_owner(peer.uid);
	if (++control->n_clients == CONTROL_CLIENTS_MAX && !make_room(control))
		pause_accepting(control);
}

/* --- the socket */

int control_address(const char *state_dir, struct sockaddr_un *address, struct error *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (snprintf(a.sun_path, sizeof(a.sun_path), "%s/weir.sock", state_dir) >= (int)sizeof(a.sun_path))
		return error_set(err, -ENAMETOOLONG,
				 "state directory %s: its path is too long for a socket (at most %zu)", state_dir,
				 sizeof(a.sun_path) - sizeof("/weir.sock"));
	*address = a;
	return 0;
}

static int open_to(const char *path, const struct access_control *access, const char *state_dir)
{
	gid_t group;
	mode_t mode = access_socket_mode(access, &group);
	struct stat st;

	if (mode == 0600)
		return 0;
	if (chown(path, -1, group) || chmod(path, mode) || stat(state_dir, &st))
		return -errno;
	/* They must get to it; what else is in the directory is for its owner alone. */
	return chmod(state_dir, (st.st_mode & 07777) | 0011) ? -errno : 0;
}

static int bind_socket(const struct sockaddr_un *address, struct error *err)
{
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask;
	int ret;

	if (fd < 0)
		return error_set(err, -errno, "control socket: %s", strerror(errno));
	ret = unlink(address->sun_path) && errno != ENOENT ? -errno : 0;
	mask = umask(0177);
	if (!ret && (bind(fd, (const struct sockaddr *)address, sizeof(*address)) || listen(fd, SOMAXCONN)))
		ret = -errno;
	umask(mask);
	if (ret)
		return error_set(err, ret, "control socket %s: %s", address->sun_path, strerror(-ret));
	return cleanup_take(&fd);
}

static void remember(struct control *control)
{
	struct stat info = { 0 };

	lstat(control->address.sun_path, &info);
	control->device = info.st_dev;
	control->inode = info.st_ino;
}

/* As long as the agent listens on it, no other file gets its number. */
static bool is_there(const struct control *control)
{
	struct stat info;

	return !lstat(control->address.sun_path, &info) && info.st_dev == control->device &&
	       info.st_ino == control->inode;
}

/* In the place of the one before, if there is one. */
static int listen_anew(struct control *control, struct error *err)
{
	struct evconnlistener *listener;
	int fd = bind_socket(&control->address, err);

	if (fd < 0)
		return fd;
	listener = evconnlistener_new(control->base, client_accept, control,
				      LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	/* It may be there, and wait for nothing. */
	if (!listener || evconnlistener_enable(listener)) {
		if (listener)
			evconnlistener_free(listener);
		else
			close(fd);
		return error_set(err, -ENOMEM, "out of memory");
	}
	evconnlistener_set_error_cb(listener, cannot_accept);
	if (control->listener)
		evconnlistener_free(control->listener);
	control->listener = listener;
	remember(control);
	return 0;
}

static int open_to_groups(const struct control *control, struct error *err)
{
	int ret = open_to(control->address.sun_path, control->access, control->state_dir);

	return ret ? error_set(err, ret, "control socket %s: %s", control->address.sun_path, strerror(-ret)) : 0;
}

int control_open(struct control **out, struct event_base *base, const char *state_dir, struct access_control *access,
		 control_handler *handler, void *context, struct error *err)
{
	struct control *control = calloc(1, sizeof(*control));
	int ret;

	if (!control)
		return error_set(err, -ENOMEM, "out of memory");
	ret = control_address(state_dir, &control->address, err);
	if (ret) {
		free(control);
		return ret;
	}
	control->base = base;
	control->state_dir = state_dir;
	control->access = access;
	control->handler = handler;
	control->context = context;
	control->spare = eventfd(0, EFD_CLOEXEC);
	LIST_INIT(&control->clients);
	control->again = evtimer_new(base, accept_again, control);
	ret = control->again ? listen_anew(control, err) : error_set(err, -ENOMEM, "out of memory");
	ret = ret ?: open_to_groups(control, err);
	if (ret) {
		control_close(control);
		return ret;
	}
	*out = control;
	return 0;
}

/* Told once. */
static void tell_lost(struct control *control, const char *how, const struct error *why)
{
	if (!control->lost)
		log_error("%s was %s, and no command reaches the agent: %s", control->address.sun_path, how, why->text);
	control->lost = true;
}

void control_look_after(struct control *control)
{
	const char *how = access(control->address.sun_path, F_OK) ? "deleted" : "replaced";
	struct error err;

	if (is_there(control))
		return;
	if (listen_anew(control, &err)) {
		tell_lost(control, how, &err);
		return;
	}
	control->lost = false;
	if (control->n_clients >= CONTROL_CLIENTS_MAX)
		pause_accepting(control);
	log_warning("%s was %s, and is made again", control->address.sun_path, how);
	/* The agent may have given up what it takes. */
	if (open_to_groups(control, &err))
		log_warning("only root reaches the agent until it is started again: %s", err.text);
}

void control_set_aside(struct control *control, control_aside *aside)
{
	control->aside = aside;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	while (!LIST_EMPTY(&control->clients))
		control_client_free(LIST_FIRST(&control->clients));
	if (control->listener)
		evconnlistener_free(control->listener);
	if (control->again)
		event_free(control->again);
	cleanup_close(&control->spare);
	/* Not another agent's. */
	if (is_there(control))
		unlink(control->address.sun_path);
	free(control);
}
