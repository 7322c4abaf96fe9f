/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who may say what to the agent. Root and the agent's own user may say everything; the members of two groups, which the
 * agent was told, may say everything or only what reads; nobody else may say anything. The kernel tells who the other side
 * of a Unix socket is, and which groups it was in, when it connected.
 */
#ifndef WEIR_USER_CONTROL_ACCESS_H
#define WEIR_USER_CONTROL_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "weir/base/types.h"

#include "base/error.h"

enum access {
	ACCESS_NONE,
	ACCESS_READ,
	ACCESS_CHANGE,
};

/* Why the agent would not listen. */
enum access_refusal {
	ACCESS_REFUSED_STRANGER,
	ACCESS_REFUSED_READER, /* who may only read was about to change something */
	ACCESS_REFUSED_TOO_MANY,
	ACCESS_REFUSALS,
};

static inline const char *access_refusal_name(enum access_refusal why)
{
	static const char *const names[ACCESS_REFUSALS] = { "not_allowed", "read_only", "too_many" };

	return names[why];
}

struct access_group {
	const char *name; /* as it was given, borrowed; NULL: there is none */
	gid_t id;
};

struct access_control {
	struct access_group admin, monitor;
	__u64 refused[ACCESS_REFUSALS];
};

struct access_peer {
	uid_t uid;
	pid_t pid;
	gid_t *groups; /* the effective one, and the supplementary ones */
	size_t n_groups;
};

/* A group's name or number; text stays the caller's. -EINVAL. */
int access_group_parse(const char *text, struct access_group *out, struct error *err);

/* The other side of a connected Unix socket; the caller frees it (access_peer_clear). A negative errno. */
int access_peer_read(int fd, struct access_peer *out);
void access_peer_clear(struct access_peer *peer);
#define CLEANUP_PEER __attribute__((cleanup(access_peer_clear)))

/* Root, and the user the agent runs as. */
bool access_is_owner(uid_t uid);
enum access access_of(const struct access_control *control, const struct access_peer *peer);

/* The mode of the socket's file, which lets in no more than it must; its group in *group, -1 where it does not matter. */
mode_t access_socket_mode(const struct access_control *control, gid_t *group);

/* The error for a caller whose user may not do this. */
void access_explain(const struct access_control *control, uid_t uid, struct error *err);

#endif
