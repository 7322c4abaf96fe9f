/* SPDX-License-Identifier: GPL-2.0 */
#include "commands/uninstall.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "audit/file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "control/control.h"
#include "datapath/private.h"
#include "datapath/remains.h"
#include "history/files.h"
#include "metrics/metrics.h"
#include "saved/lock.h"
#include "saved/owner.h"
#include "sys/netns_find.h"

#define AGENT_ENDS_S 30
#define KILLED_S 5
#define LOOK_NS (WEIR_NS_PER_S / 5)
#define TELL_S 2
#define SWEEP_S 10
#define NOTE "unsaved-"
#define FOR_WHAT 160

/* What is pinned for one namespace. */
struct pinned_net {
	__u64 cookie;
	char dir[PATH_MAX];
	int netns_fd;	     /* -1: nothing leads there any more */
	struct datapath *dp; /* NULL: another version's, or not to be entered */
	int reset;
};

struct pinned_nets {
	struct pinned_net *list;
	size_t n;
};

static void pinned_nets_close(struct pinned_nets *nets)
{
	for (size_t i = 0; i < nets->n; i++) {
		datapath_close(nets->list[i].dp);
		cleanup_close(&nets->list[i].netns_fd);
	}
	free(nets->list);
}
#define CLEANUP_PINNED_NETS __attribute__((cleanup(pinned_nets_close)))

/* --- waiting */

struct wait {
	const struct uninstall_options *options;
	__u64 began_ns;
	unsigned int told_s;
};

static unsigned int waited_s(const struct wait *wait)
{
	return (clock_ns(CLOCK_MONOTONIC) - wait->began_ns) / WEIR_NS_PER_S;
}

static void wait_a_little(struct wait *wait, const char *for_what)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	if (waited_s(wait) < wait->told_s + TELL_S)
		return;
	wait->told_s = waited_s(wait);
	wait->options->waiting(for_what, wait->told_s);
}

/* --- the agent */

/* One whose event loop stands still, or that was stopped (SIGSTOP), does not end by itself. */
static void agent_ask(const struct wait *wait, pid_t *pid)
{
	pid_t now;

	if (control_agent_pid(wait->options->state_dir, &now))
		return;
	if (now != *pid)
		kill(now, SIGTERM);
	else if (wait->options->force && waited_s(wait) >= KILLED_S)
		kill(now, SIGKILL);
	*pid = now;
}

static const char *what_to_do(const struct uninstall_options *options, pid_t pid)
{
	if (!pid)
		return "cannot be asked to end: kill it first";
	return options->force ? "does not end on SIGKILL: end it first" :
				"does not stop on SIGTERM: kill it first, or let uninstall do so (--force)";
}

/* Returns the lock of the state directory, once no agent has it. *pid: of the one that was ended. */
static int agent_end(const struct uninstall_options *options, pid_t *pid, struct error *err)
{
	struct wait wait = { .options = options, .began_ns = clock_ns(CLOCK_MONOTONIC) };
	struct error why;
	int lock;

	/* One that is starting does not listen yet. */
	while ((lock = state_lock(options->state_dir, &why)) == -EBUSY) {
		if (waited_s(&wait) >= AGENT_ENDS_S)
			return error_set(err, -EBUSY, "%s, and %s", why.text, what_to_do(options, *pid));
		agent_ask(&wait, pid);
		wait_a_little(&wait, options->force ? "the agent ends" : "the agent ends (--force kills it)");
	}
	return lock < 0 ? error_set(err, lock, "%s", why.text) : lock;
}

/* --- namespaces */

static int pinned_net_add(struct pinned_nets *nets, const char *pin_dir, __u64 cookie)
{
	struct pinned_net *more = reallocarray(nets->list, nets->n + 1, sizeof(*more)), *net;

	if (!more)
		return -ENOMEM;
	nets->list = more;
	net = &more[nets->n++];
	*net = (struct pinned_net){ .cookie = cookie, .netns_fd = netns_find(cookie) };
	snprintf(net->dir, sizeof(net->dir), "%s/net-%llu", pin_dir, cookie);
	return 0;
}

static int pinned_nets_list(const char *pin_dir, struct pinned_nets *nets, struct error *err)
{
	DIR *dir = opendir(pin_dir);
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return errno == ENOENT ? 0 : error_set(err, -errno, "%s: %s", pin_dir, strerror(errno));
	while (!ret && (entry = readdir(dir))) {
		unsigned long long cookie;
		int end = 0;

		if (sscanf(entry->d_name, "net-%llu%n", &cookie, &end) == 1 && !entry->d_name[end])
			ret = pinned_net_add(nets, pin_dir, cookie);
	}
	closedir(dir);
	return ret ? error_set(err, ret, "out of memory") : 0;
}

/* What would stand in the way then is told before the agent is ended: only that version knows which connections are translated. */
static int pinned_nets_check(const struct uninstall_options *options, struct error *err)
{
	CLEANUP_PINNED_NETS struct pinned_nets nets = { 0 };
	int ret = pinned_nets_list(options->pin_dir, &nets, err);

	for (size_t i = 0; i < nets.n && !ret; i++)
		ret = nets.list[i].netns_fd < 0 ? 0 : datapath_version_check(nets.list[i].dir, err);
	return ret;
}

/* With force nothing stands in the way: what cannot be opened is removed as it is. */
static int pinned_net_open(const struct uninstall_options *options, struct pinned_net *net, struct error *err)
{
	const struct datapath_options opening = {
		.pin_dir = options->pin_dir,
		.netns_fd = net->netns_fd,
		.netns_cookie = net->cookie,
	};
	int ret;

	if (net->netns_fd < 0)
		return 0;
	ret = datapath_open(&net->dp, &opening, err);
	if (!ret)
		return datapath_drain_all(net->dp, err);
	return options->force && ret != -EBUSY ? 0 : ret;
}

static int pinned_net_reset(struct pinned_net *net, struct error *err)
{
	int n = net->dp ? datapath_reset_translated(net->dp, DATAPATH_EVERY_SLOT, err) : 0;

	if (n < 0)
		return n;
	net->reset += n;
	return 0;
}

static int pinned_net_translated(const struct pinned_net *net, __u64 *translated, struct error *err)
{
	__u64 counters[WEIR_REASON_COUNT];
	int ret = 0;

	for (__u32 slot = 0; slot < WEIR_MAX_SERVERS && net->dp && !ret; slot++) {
		ret = datapath_counters(net->dp, slot, counters, err);
		if (!ret)
			*translated += metrics_translated(counters);
	}
	return ret;
}

static int pinned_nets_translated(const struct pinned_nets *nets, __u64 *translated, struct error *err)
{
	int ret = 0;

	*translated = 0;
	for (size_t i = 0; i < nets->n && !ret; i++)
		ret = pinned_net_translated(&nets->list[i], translated, err);
	return ret;
}

/* Those whose sockets are gone without a word. */
static int pinned_nets_sweep(const struct pinned_nets *nets, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < nets->n && ret >= 0; i++)
		ret = nets->list[i].dp ? datapath_sweep(nets->list[i].dp, DATAPATH_IDLE_NS, err) : 0;
	return ret < 0 ? ret : 0;
}

static void tell_translated(__u64 translated, const char *who_resets, char text[static FOR_WHAT])
{
	snprintf(text, FOR_WHAT, "a minute after the end of %llu translated connection%s (%s resets %s)", translated,
		 translated == 1 ? "" : "s", who_resets, translated == 1 ? "it" : "them");
}

static bool is_patient(const struct wait *wait)
{
	return !wait->options->force || clock_ns(CLOCK_MONOTONIC) - wait->began_ns < wait->options->patience_ns;
}

static int wait_until_ended(const struct uninstall_options *options, const struct pinned_nets *nets, struct error *err)
{
	struct wait wait = { .options = options, .began_ns = clock_ns(CLOCK_MONOTONIC) };
	unsigned int swept_s = 0;
	char for_what[FOR_WHAT];
	__u64 translated;
	int ret = 0;

	while (is_patient(&wait) && !(ret = pinned_nets_translated(nets, &translated, err)) && translated) {
		tell_translated(translated, options->force ? "--force-after" : "--force", for_what);
		wait_a_little(&wait, for_what);
		if (waited_s(&wait) < swept_s + SWEEP_S)
			continue;
		swept_s = waited_s(&wait);
		ret = pinned_nets_sweep(nets, err);
		if (ret)
			break;
	}
	return ret;
}

static int pinned_net_remove(struct pinned_net *net, struct error *err)
{
	int ret = net->dp ? datapath_remove(net->dp, err) : 0;

	datapath_close(net->dp);
	net->dp = NULL;
	return ret ?: remains_remove(net->dir, net->netns_fd, err);
}

static int pinned_nets_remove(const struct uninstall_options *options, struct pinned_nets *nets, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < nets->n && !ret; i++)
		ret = pinned_net_open(options, &nets->list[i], err);
	ret = ret ?: wait_until_ended(options, nets, err);
	for (size_t i = 0; i < nets->n && options->force && !ret; i++)
		ret = pinned_net_reset(&nets->list[i], err);
	for (size_t i = 0; i < nets->n && !ret; i++)
		ret = pinned_net_remove(&nets->list[i], err);
	return ret;
}

/* --- files */

/* An agent would put in force again what a state that stays says. */
static void state_remove(const char *directory, json_t *warnings)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/state.json", directory);
	if (!unlink(path) || errno == ENOENT)
		return;
	json_array_append_new(
		warnings, json_sprintf("%s stays: %s: remove it before an agent starts, which puts it in force again",
				       path, strerror(errno)));
}

/* The lock goes last, while it is held. Directories that hold anything else stay. */
static void files_remove(const char *directory, json_t *warnings)
{
	static const char *const names[] = { "state.json.new", "weir.sock", OWNER_FILE, OWNER_FILE ".new", "lock" };
	char path[PATH_MAX];

	state_remove(directory, warnings);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/%s", directory, HISTORY_DIR);
	history_remove(path);
	audit_remove(directory);
	rmdir(directory);
}

/* What an agent could not save beside its pins (agent/unsaved.h). */
static void notes_remove(const char *pin_dir)
{
	DIR *dir = opendir(pin_dir);
	struct dirent *entry;
	char path[PATH_MAX];

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, NOTE, strlen(NOTE)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", pin_dir, entry->d_name);
		rmdir(path);
	}
	if (dir)
		closedir(dir);
}

/* Another agent's stays, also while that does not run. */
static void persisted_remove(const struct uninstall_options *options, json_t *warnings)
{
	const char *directory = options->persist_dir;
	CLEANUP_CLOSE int lock = -1;

	if (access(directory, F_OK) || !persist_dir_is_of(directory, options->state_dir))
		return;
	lock = state_lock(directory, NULL);
	if (lock >= 0)
		files_remove(directory, warnings);
}

static json_t *describe(const struct pinned_nets *nets, pid_t agent)
{
	json_t *list = json_array();

	for (size_t i = 0; i < nets->n; i++) {
		const struct pinned_net *net = &nets->list[i];

		json_array_append_new(list, json_pack("{s:s, s:i, s:b}", "pins", net->dir, "reset", net->reset,
						      "entered", net->netns_fd >= 0));
	}
	return json_pack("{s:o, s:o}", "agent", agent ? json_integer(agent) : json_null(), "namespaces", list);
}

int uninstall(const struct uninstall_options *options, json_t **result, struct error *err)
{
	CLEANUP_PINNED_NETS struct pinned_nets nets = { 0 };
	CLEANUP_CLOSE int lock = -1;
	json_t *warnings;
	pid_t agent = 0;
	int ret;

	ret = options->force ? 0 : pinned_nets_check(options, err);
	if (ret)
		return ret;
	lock = agent_end(options, &agent, err);
	if (lock < 0)
		return lock;
	ret = pinned_nets_list(options->pin_dir, &nets, err) ?: pinned_nets_remove(options, &nets, err);
	if (ret)
		return ret;
	*result = describe(&nets, agent);
	warnings = json_array();
	persisted_remove(options, warnings);
	files_remove(options->state_dir, warnings);
	notes_remove(options->pin_dir);
	rmdir(options->pin_dir);
	json_object_set_new(*result, "warnings", warnings);
	return 0;
}
