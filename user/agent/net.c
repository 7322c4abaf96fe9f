/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <string.h>

#include "agent/log.h"
#include "agent/reconcile.h"
#include "base/cleanup.h"
#include "base/output.h"
#include "datapath/remains.h"
#include "sys/netns.h"

struct net *net_find(const struct agent *agent, __u64 cookie)
{
	struct net *net;

	for (net = agent->nets; net; net = net->next)
		if (net->cookie == cookie)
			break;
	return net;
}

struct net *server_net(const struct agent *agent, const struct server *server)
{
	return net_find(agent, server->netns_cookie);
}

static bool has_servers(const struct agent *agent, __u64 cookie)
{
	const struct state *state = &agent->state;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (state->servers[slot] && state->servers[slot]->netns_cookie == cookie)
			return true;
	return false;
}

static void net_free(struct net *net)
{
	struct net **link = &net->agent->nets;

	while (*link != net)
		link = &(*link)->next;
	*link = net->next;
	drift_keep_written(net->agent, net);
	if (net->changed)
		event_free(net->changed);
	if (net->traced)
		event_free(net->traced);
	datapath_close(net->dp);
	if (net->fd >= 0)
		close(net->fd);
	free(net);
}

/* The interfaces that the servers of a namespace want together. names is NULL when one of them wants all. */
static int wanted_interfaces(const struct net *net, const char ***names, size_t *n, struct error *err)
{
	const struct state *state = &net->agent->state;
	CLEANUP_FREE const char **wanted = NULL;
	size_t n_wanted = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];
		const char **grown;

		if (!server || server->netns_cookie != net->cookie)
			continue;
		if (server->n_interfaces == 0) {
			*names = NULL;
			*n = 0;
			return 0;
		}
		grown = reallocarray(wanted, n_wanted + server->n_interfaces, sizeof(*grown));
		if (!grown)
			return error_set(err, -ENOMEM, "out of memory");
		wanted = grown;
		for (size_t i = 0; i < server->n_interfaces; i++)
			wanted[n_wanted++] = server->interfaces[i];
	}
	*names = wanted;
	*n = n_wanted;
	wanted = NULL;
	return 0;
}

static int sync_links(struct net *net, struct error *err)
{
	struct datapath_interfaces wanted = { 0 };
	CLEANUP_FREE const char **names = NULL;
	int ret;

	ret = wanted_interfaces(net, &names, &wanted.n, err);
	if (ret)
		return ret;
	wanted.names = names;
	return datapath_links_sync(net->dp, &wanted, err);
}

void net_follow(struct net *net)
{
	struct error err = { 0 };

	if (sync_links(net, &err) && strcmp(err.text, net->links_err.text) != 0)
		log_error("interfaces: %s", err.text);
	net->links_err = err;
}

/* A server's cgroup is not known where no cgroup2 hierarchy was mounted when it was attached. */
static int sync_holds(struct net *net, struct error *err)
{
	const struct state *state = &net->agent->state;
	const char *cgroups[WEIR_MAX_SERVERS];
	bool nowhere = false;
	size_t n = 0;
	int ret;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (!server || server->netns_cookie != net->cookie)
			continue;
		if (server->cgroup)
			cgroups[n++] = server->cgroup;
		else
			nowhere = true;
	}
	ret = datapath_hold_sync(net->dp, cgroups, n, err);
	return ret || !nowhere ? ret : error_set(err, -ENOENT, "no cgroup2 hierarchy is mounted");
}

void net_hold(struct net *net)
{
	struct error err = { 0 };

	if (sync_holds(net, &err) && strcmp(err.text, net->hold_err.text) != 0)
		log_warning("TLS and other unreadable traffic is not limited: %s", err.text);
	net->hold_err = err;
}

static bool wants_pace(const struct net *net)
{
	const struct state *state = &net->agent->state;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (server && server->netns_cookie == net->cookie && server->hold != HOLD_DROP)
			return true;
	}
	return false;
}

/* Tells the programs what is asked of the namespace's servers now. */
static void apply_flags(const struct net *net)
{
	const struct state *state = &net->agent->state;
	struct error err;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (server && server->netns_cookie == net->cookie && server_apply_flags(net->agent, slot, &err))
			log_error("server \"%s\": %s", server->name, err.text);
	}
}

/* Packets are sent to the device only while it is there: the servers stop before it goes, and begin when it has come. */
void net_pace(struct net *net)
{
	struct error err = { 0 };
	bool wanted = wants_pace(net), paced;

	if (!wanted && net->paced) {
		net->paced = false;
		apply_flags(net);
	}
	paced = !datapath_pace(net->dp, wanted, &err) && wanted;
	if (err.text[0] && strcmp(err.text, net->pace_err.text) != 0)
		log_info("unreadable traffic is held by dropping: %s", err.text);
	net->pace_err = err;
	if (paced == net->paced)
		return;
	net->paced = paced;
	apply_flags(net);
}

static void devices_changed(evutil_socket_t fd, short what, void *context)
{
	struct net *net = context;

	(void)fd;
	(void)what;
	agent_lock(net->agent);
	net_follow(net);
	agent_unlock(net->agent);
}

static void requests_traced(evutil_socket_t fd, short what, void *context)
{
	struct net *net = context;

	(void)fd;
	(void)what;
	agent_lock(net->agent);
	trace_read(net);
	agent_unlock(net->agent);
}

static int open_datapath(const struct agent *agent, int fd, __u64 cookie, struct datapath **dp, struct error *err)
{
	const struct datapath_options options = {
		.pin_dir = agent->options->pin_dir,
		.netns_fd = fd,
		.netns_cookie = cookie,
		.conns_max = agent->options->conns_max,
	};

	return datapath_open(dp, &options, err);
}

static void pin_path(const struct agent *agent, __u64 cookie, char path[static PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/net-%llu", agent->options->pin_dir, cookie);
}

/* The pins are all that holds links and maps of a namespace that cannot be entered any more. */
void net_unpin(const struct agent *agent, __u64 cookie)
{
	char path[PATH_MAX];
	struct error err;

	pin_path(agent, cookie, path);
	if (!has_servers(agent, cookie) && remains_remove(path, -1, &err))
		log_warning("%s", err.text);
}

int net_clear_leftovers(const struct agent *agent, int fd, __u64 cookie, struct error *err)
{
	struct datapath *dp;
	char dir[PATH_MAX];
	int ret;

	pin_path(agent, cookie, dir);
	if (has_servers(agent, cookie) || net_find(agent, cookie) || access(dir, F_OK))
		return 0;
	log_warning("%s belongs to servers that are not in the state: removed", dir);
	ret = open_datapath(agent, fd, cookie, &dp, err);
	if (ret)
		return ret;
	ret = datapath_remove(dp, err);
	datapath_close(dp);
	return ret;
}

static int net_watch(struct net *net)
{
	struct event_base *base = net->agent->base;

	net->changed = event_new(base, datapath_netlink_fd(net->dp), EV_READ | EV_PERSIST, devices_changed, net);
	net->traced = event_new(base, datapath_trace_fd(net->dp), EV_READ | EV_PERSIST, requests_traced, net);
	if (!net->changed || event_add(net->changed, NULL) || !net->traced || event_add(net->traced, NULL))
		return -ENOMEM;
	return 0;
}

void nets_watch(struct agent *agent)
{
	struct net *net;

	for (net = agent->nets; net; net = net->next)
		if (!net->changed && net_watch(net))
			log_error("network namespace %llu: its interfaces are not followed: out of memory",
				  net->cookie);
}

/* --- opening */

/* A namespace that some thread opens. */
struct opening {
	struct opening *next;
	__u64 cookie;
};

static bool is_opening(const struct agent *agent, __u64 cookie)
{
	const struct opening *opening;

	for (opening = agent->openings; opening; opening = opening->next)
		if (opening->cookie == cookie)
			return true;
	return false;
}

void nets_wait(struct agent *agent)
{
	while (agent->openings)
		pthread_cond_wait(&agent->settled, &agent->lock);
}

/* Loading programs takes seconds: others go on meanwhile. */
static int open_unlocked(struct agent *agent, int fd, __u64 cookie, struct datapath **dp, struct error *err)
{
	struct opening opening = { agent->openings, cookie }, **link = &agent->openings;
	int ret;

	agent->openings = &opening;
	agent_unlock(agent);
	ret = open_datapath(agent, fd, cookie, dp, err);
	agent_lock(agent);
	while (*link != &opening)
		link = &(*link)->next;
	*link = opening.next;
	pthread_cond_broadcast(&agent->settled);
	return ret;
}

static struct net *net_add(struct agent *agent, int fd, __u64 cookie, struct datapath *dp)
{
	struct net *net = calloc(1, sizeof(*net));

	if (!net)
		return NULL;
	*net = (struct net){ .agent = agent, .next = agent->nets, .cookie = cookie, .fd = fd, .dp = dp };
	agent->nets = net;
	net_probe_all(net);
	net_probe(net);
	net_pace(net);
	return net;
}

int net_get(struct agent *agent, int fd, __u64 cookie, struct net **out, struct error *err)
{
	CLEANUP_CLOSE int own = -1;
	struct datapath *dp = NULL;
	int ret;

	while (is_opening(agent, cookie))
		pthread_cond_wait(&agent->settled, &agent->lock);
	*out = net_find(agent, cookie);
	if (*out)
		return 0;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return error_set(err, -errno, "network namespace: %s", strerror(errno));
	ret = open_unlocked(agent, own, cookie, &dp, err);
	if (ret)
		return ret;
	*out = net_add(agent, own, cookie, dp);
	if (!*out) {
		datapath_close(dp);
		return error_set(err, -ENOMEM, "out of memory");
	}
	cleanup_take(&own);
	return 0;
}

/* --- looking after it */

static int first_server(const struct net *net)
{
	const struct state *state = &net->agent->state;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (state->servers[slot] && state->servers[slot]->netns_cookie == net->cookie)
			return slot;
	return -ENOENT;
}

/* What is wrong with it is drift of its first server. */
void net_look_after(struct net *net)
{
	struct datapath_written before = *datapath_written(net->dp);
	int slot = first_server(net);

	net_follow(net);
	net_hold(net);
	/* A kernel that could not pace will not learn it by being asked again. */
	if (net->paced)
		net_pace(net);
	if (slot >= 0)
		drift_found(net->agent, net, slot, &before);
	net_probe(net);
	net_sweep(net);
}

int net_settle(struct net *net, struct error *err)
{
	int ret;

	/* First what reads, then what holds all that was not seen. */
	if (has_servers(net->agent, net->cookie)) {
		ret = sync_links(net, err);
		net_hold(net);
		net_pace(net);
		return ret;
	}
	ret = datapath_remove(net->dp, err);
	net_free(net);
	return ret;
}

void net_probe(struct net *net)
{
	struct error err = { 0 };
	int tracked;

	tracked = datapath_loopback_tracked(net->dp, &err);
	if (tracked < 0)
		log_warning("cannot tell whether conntrack tracks loopback: %s", err.text);
	if (tracked < 0 || tracked == net->loopback_tracked)
		return;
	net->loopback_tracked = tracked;
	probe_set(&net->probe, PROBE_UNTRACKED, tracked ? PROBE_NO : PROBE_YES, "%s", "");
	log_info("network namespace %llu: conntrack %s loopback connections", net->cookie,
		 tracked ? "tracks" : "no longer tracks");
	apply_flags(net);
}

void net_sweep(struct net *net)
{
	struct error err;
	int n = datapath_sweep(net->dp, DATAPATH_IDLE_NS, &err);

	if (n < 0)
		log_error("sweep: %s", err.text);
	else if (n > 0)
		log_info("swept %d connections without sockets", n);
}

/* Names come from requests: they are shown only as far as they are printable. */
char *net_name(struct net *net, __u64 subject)
{
	char text[256], *unknown;

	if (datapath_name(net->dp, subject, text, sizeof(text)) == 0)
		return output_visible(text);
	return asprintf(&unknown, "#%016llx", subject) < 0 ? NULL : unknown;
}

void nets_close(struct agent *agent)
{
	while (agent->nets)
		net_free(agent->nets);
}

static int check_interfaces(void *arg)
{
	const struct server *server = arg;

	for (size_t i = 0; i < server->n_interfaces; i++)
		if (!if_nametoindex(server->interfaces[i]))
			return i + 1;
	return 0;
}

int net_check_interfaces(int fd, const struct server *server, struct error *err)
{
	int ret = netns_run(fd, check_interfaces, (void *)server, err);

	if (ret > 0)
		return error_set(err, -ENODEV, "there is no interface \"%s\" in this network namespace",
				 server->interfaces[ret - 1]);
	return ret;
}
