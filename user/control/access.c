/* SPDX-License-Identifier: GPL-2.0 */
#include "control/access.h"

#include <errno.h>
#include <grp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "model/parse.h"

#define GROUPS_FIRST 32 /* for how many there is room at first */

int access_group_parse(const char *text, struct access_group *out, struct error *err)
{
	const struct group *group;
	__u64 id;
	int ret;

	if (*text && !text[strspn(text, "0123456789")]) {
		ret = parse_number(text, UINT32_MAX - 1, &id, err); /* the last one means none */
		if (ret)
			return ret;
		*out = (struct access_group){ text, id };
		return 0;
	}
	group = getgrnam(text);
	if (!group)
		return error_set(err, -EINVAL,
				 "there is no group \"%s\" on this machine: a group is a name, or a number like 100",
				 text);
	*out = (struct access_group){ text, group->gr_gid };
	return 0;
}

/* The groups, with room for the effective one before them. */
static int groups_read(int fd, struct access_peer *peer)
{
	socklen_t size = GROUPS_FIRST * sizeof(gid_t);
	gid_t *groups = NULL, *grown;

	for (;;) {
		grown = realloc(groups, sizeof(gid_t) + size);
		if (!grown)
			break;
		groups = grown;
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &size)) {
			peer->groups = groups;
			peer->n_groups = 1 + size / sizeof(gid_t);
			return 0;
		}
		if (errno != ERANGE) /* else it has set the size that it takes */
			break;
	}
	free(groups);
	return grown ? error_errno() : -ENOMEM;
}

int access_peer_read(int fd, struct access_peer *out)
{
	struct access_peer peer = { 0 };
	struct ucred who;
	socklen_t size = sizeof(who);
	int ret;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return -errno;
	ret = groups_read(fd, &peer);
	if (ret)
		return ret;
	peer.uid = who.uid;
	peer.pid = who.pid;
	peer.groups[0] = who.gid;
	*out = peer;
	return 0;
}

void access_peer_clear(struct access_peer *peer)
{
	free(peer->groups);
	*peer = (struct access_peer){ 0 };
}

static bool is_member(const struct access_peer *peer, const struct access_group *group)
{
	for (size_t i = 0; group->name && i < peer->n_groups; i++)
		if (peer->groups[i] == group->id)
			return true;
	return false;
}

bool access_is_owner(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

enum access access_of(const struct access_control *control, const struct access_peer *peer)
{
	if (access_is_owner(peer->uid) || is_member(peer, &control->admin))
		return ACCESS_CHANGE;
	return is_member(peer, &control->monitor) ? ACCESS_READ : ACCESS_NONE;
}

/* A file has one group: where two may connect everyone can, and is told by the agent that he may not. */
mode_t access_socket_mode(const struct access_control *control, gid_t *group)
{
	const struct access_group *one = control->admin.name ? &control->admin : &control->monitor;

	*group = -1;
	if (!one->name)
		return 0600;
	if (control->admin.name && control->monitor.name && control->admin.id != control->monitor.id)
		return 0666;
	*group = one->id;
	return 0660;
}

void access_explain(const struct access_control *control, uid_t uid, struct error *err)
{
	const char *admin = control->admin.name, *monitor = control->monitor.name;

	error_set(err, 0, "user %u may not talk to this agent: only root may%s%s%s%s", uid,
		  admin ? ", members of the group " : "", admin ?: "",
		  monitor ? ", and for read-only commands members of the group " : "", monitor ?: "");
}
