/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/privilege.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define NEEDED_MAX 4

static const struct {
	int n;
	cap_value_t capabilities[NEEDED_MAX];
} needed[PRIVILEGES] = {
	[PRIVILEGE_LOAD] = { 3, { CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN } },
	[PRIVILEGE_MAP] = { 1, { CAP_SYS_ADMIN } },
	[PRIVILEGE_CGROUP] = { 1, { CAP_NET_ADMIN } },
	[PRIVILEGE_NAMESPACE] = { 2, { CAP_SYS_ADMIN, CAP_NET_ADMIN } },
	[PRIVILEGE_FIND] = { 1, { CAP_SYS_PTRACE } },
	[PRIVILEGE_READ] = { 1, { CAP_DAC_READ_SEARCH } },
	[PRIVILEGE_PROBE] = { 3, { CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN } },
	[PRIVILEGE_WRITE] = { 4, { CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN, CAP_SYS_ADMIN } },
};

static void cleanup_cap(cap_t *caps)
{
	if (*caps)
		cap_free(*caps);
}
#define CLEANUP_CAP __attribute__((cleanup(cleanup_cap)))

static bool has(cap_t caps, cap_flag_t set, cap_value_t capability)
{
	cap_flag_value_t value = CAP_CLEAR;

	return !cap_get_flag(caps, capability, set, &value) && value == CAP_SET;
}

/* Those of a privilege that are permitted, put in effect. */
static void raise_permitted(cap_t caps, enum privilege privilege)
{
	for (int i = 0; i < needed[privilege].n; i++) {
		cap_value_t capability = needed[privilege].capabilities[i];

		if (has(caps, CAP_PERMITTED, capability))
			cap_set_flag(caps, CAP_EFFECTIVE, 1, &capability, CAP_SET);
	}
}

struct privileged privilege_begin(enum privilege privilege)
{
	struct privileged privileged = { cap_get_proc() };
	CLEANUP_CAP cap_t raised = privileged.before ? cap_dup(privileged.before) : NULL;

	if (raised) {
		raise_permitted(raised, privilege);
		cap_set_proc(raised);
	}
	return privileged;
}

void privilege_end(struct privileged *privileged)
{
	int saved = errno;

	if (!privileged->before)
		return;
	/* It can only fail to have more than before. */
	cap_set_proc(privileged->before);
	cap_free(privileged->before);
	privileged->before = NULL;
	errno = saved;
}

/* "CAP_BPF, CAP_SYS_ADMIN" */
static void name_missing(FILE *out, cap_t caps, enum privilege privilege)
{
	for (int i = 0; i < needed[privilege].n; i++) {
		cap_value_t capability = needed[privilege].capabilities[i];
		char *name = has(caps, CAP_PERMITTED, capability) ? NULL : cap_to_name(capability);

		if (!name)
			continue;
		fputs(ftell(out) > 0 ? ", " : "", out);
		for (const char *at = name; *at; at++)
			fputc(toupper(*at), out);
		cap_free(name);
	}
}

int privilege_check(struct error *err)
{
	CLEANUP_CAP cap_t now = cap_get_proc();
	CLEANUP_FREE char *missing = NULL;
	size_t size;
	FILE *out = now ? open_memstream(&missing, &size) : NULL;

	if (!out)
		return error_set(err, -ENOMEM, "out of memory");
	name_missing(out, now, PRIVILEGE_LOAD);
	name_missing(out, now, PRIVILEGE_MAP);
	if (fclose(out))
		return error_set(err, -ENOMEM, "out of memory");
	if (!*missing)
		return 0;
	return error_set(
		err, -EPERM,
		"the agent lacks %s: run it as root (sudo weir agent, systemctl start weir), or give its service "
		"or container these capabilities",
		missing);
}

/* What is permitted of all that will be needed, and nothing in effect. */
static int keep_needed(void)
{
	CLEANUP_CAP cap_t now = cap_get_proc(), kept = cap_init();

	if (!now || !kept)
		return -errno;
	for (int privilege = 0; privilege < PRIVILEGES; privilege++) {
		for (int i = 0; i < needed[privilege].n; i++) {
			cap_value_t capability = needed[privilege].capabilities[i];

			if (has(now, CAP_PERMITTED, capability))
				cap_set_flag(kept, CAP_PERMITTED, 1, &capability, CAP_SET);
		}
	}
	return cap_set_proc(kept) ? -errno : 0;
}

/* Whoever may not do this cannot execute anything that has more than he has either (PR_SET_NO_NEW_PRIVS). */
static void empty_bounding_set(void)
{
	for (cap_value_t capability = 0; cap_get_bound(capability) >= 0; capability++)
		cap_drop_bound(capability);
}

int privilege_drop(struct error *err)
{
	const struct rlimit none = { 0 };
	int ret;

	umask(077);
	empty_bounding_set();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0) || setrlimit(RLIMIT_CORE, &none))
		return error_set(err, -errno, "dropping privileges: %s", strerror(errno));
	cap_reset_ambient();
	ret = keep_needed();
	return ret ? error_set(err, ret, "giving up capabilities: %s", strerror(-ret)) : 0;
}
