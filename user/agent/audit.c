/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/audit.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <time.h>

#include "audit/file.h"
#include "base/cleanup.h"
#include "base/log.h"

#define NO_LOGIN ((uid_t)-1)

const char *audit_dir(const struct agent *agent)
{
	return agent->options->persist_dir ?: agent->options->state_dir;
}

/* --- who */

static void add_user(json_t *by, const char *id_key, const char *name_key, uid_t uid)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	json_object_set_new(by, id_key, json_integer(uid));
	if (!getpwuid_r(uid, &entry, room, sizeof(room), &found) && found)
		json_object_set_new(by, name_key, json_string(found->pw_name));
}

static uid_t login_of(pid_t pid)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	unsigned int uid = NO_LOGIN;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/loginuid", (int)pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%u", &uid) != 1)
		return NO_LOGIN;
	return uid;
}

json_t *audit_client(const struct control_client *client)
{
	json_t *by = json_object();
	uid_t uid, login;
	pid_t pid;

	if (!client)
		return by;
	control_client_peer(client, &uid, &pid);
	login = login_of(pid);
	add_user(by, "uid", "user", uid);
	json_object_set_new(by, "pid", json_integer(pid));
	if (login != NO_LOGIN && login != uid)
		add_user(by, "login_uid", "login", login);
	return by;
}

/* --- what */

void audit_begin(const struct agent *agent, const char *subject, struct audit_view *before)
{
	if (audit_view(&agent->state, subject, before))
		log_error("audit: out of memory: what changes now is not written down");
}

void audit_time(const struct timespec *time, char text[static AUDIT_TIME])
{
	struct tm parts;
	size_t n;

	gmtime_r(&time->tv_sec, &parts);
	n = strftime(text, AUDIT_TIME, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + n, AUDIT_TIME - n, ".%03ldZ", time->tv_nsec / 1000000);
}

static void complete(json_t *changes, json_t *by, const char *command)
{
	char time[AUDIT_TIME];
	struct timespec now;
	json_t *change;
	size_t i;

	clock_gettime(CLOCK_REALTIME, &now);
	audit_time(&now, time);
	json_array_foreach (changes, i, change) {
		json_object_set_new(change, "time", json_string(time));
		json_object_set_new(change, "command", json_string(command));
		json_object_set(change, "by", by);
	}
}

static int write_down(struct agent *agent, json_t *changes, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return audit_append(audit_dir(agent), changes, err);
}

static int view_after(const struct agent *agent, const char *subject, struct audit_view *after)
{
	return subject ? audit_view(&agent->state, subject, after) : audit_view_now(&agent->state, after);
}

void audit_end(struct agent *agent, const struct audit_view *before, json_t *by, const char *command)
{
	CLEANUP_AUDIT_VIEW struct audit_view after = { 0 };
	CLEANUP_JSON json_t *who = by, *changes = NULL;
	struct error err;

	if (!before->servers || view_after(agent, before->subject, &after))
		return;
	changes = audit_changes(before, &after);
	complete(changes, who, command);
	if (json_array_size(changes) && write_down(agent, changes, &err))
		log_error("audit: a change by \"%s\" is not written down: %s", command, err.text);
}
