/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/log.h"
#include "agent/reconcile.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "control/control.h"
#include "metrics/http.h"
#include "state/lock.h"
#include "sys/pins.h"
#include "sys/privilege.h"

#define TICK_S 1
#define UPKEEP_S 10

/* What the event loop runs on. */
struct service {
	struct agent agent;
	struct control *control;
	struct metrics_http *http;
	struct event *terminate, *interrupt, *hangup, *tick, *upkeep, *resync;
};

static void warn_of_private_pins(const char *pin_dir)
{
	if (pins_private(pin_dir) > 0)
		log_warning(
			"%s is seen in the agent's own mount namespace alone, as below \"ip netns exec\": what is in force "
			"ends with it. Start it outside and attach --netns, or use nsenter --net",
			pin_dir);
}

/* Many clients of the metrics must not use up what the others need. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void stop(evutil_socket_t signal, short what, void *context)
{
	struct service *service = context;

	(void)what;
	log_info("stopping on %s: what is in force stays in force", strsignal(signal));
	event_base_loopbreak(service->agent.base);
}

static void reload(evutil_socket_t signal, short what, void *context)
{
	CLEANUP_JSON json_t *list = json_array();
	struct service *service = context;
	struct error err;

	(void)signal;
	(void)what;
	agent_lock(&service->agent);
	nets_wait(&service->agent);
	if (servers_reload(&service->agent, list, &err))
		log_error("%s", err.text);
	policy_sources_sync(&service->agent);
	agent_unlock(&service->agent);
}

/* While a namespace is being opened, nothing is changed: it can wait for the next tick. */
static void tick(evutil_socket_t fd, short what, void *context)
{
	struct agent *agent = &((struct service *)context)->agent;

	(void)fd;
	(void)what;
	agent_lock(agent);
	nets_watch(agent);
	if (!agent->openings)
		servers_drain(agent);
	trace_refresh(agent);
	agent_unlock(agent);
}

static void upkeep(evutil_socket_t fd, short what, void *context)
{
	struct agent *agent = &((struct service *)context)->agent;
	struct net *net;

	(void)fd;
	(void)what;
	agent_lock(agent);
	for (net = agent->nets; net; net = net->next)
		net_look_after(net);
	agent_save_again(agent);
	/* Most changes of policy files are noticed at once; those that are not, now. */
	policy_sources_wake(agent);
	agent_unlock(agent);
}

static void resync(evutil_socket_t fd, short what, void *context)
{
	struct agent *agent = &((struct service *)context)->agent;

	(void)fd;
	(void)what;
	agent_lock(agent);
	reconcile_all(agent);
	agent_unlock(agent);
}

/* The text for GET /metrics; the caller frees it. */
static char *read_metrics(void *context)
{
	struct service *service = context;
	CLEANUP_JSON json_t *result = NULL;
	struct error err;
	int ret;

	agent_lock(&service->agent);
	ret = agent_metrics(&service->agent, NULL, &result, &err);
	agent_unlock(&service->agent);
	if (ret) {
		log_error("metrics: %s", err.text);
		return NULL;
	}
	return metrics_text(json_object_get(result, "metrics"));
}

static struct event *add_signal(struct service *service, int signal, event_callback_fn run)
{
	struct event *event = evsignal_new(service->agent.base, signal, run, service);

	if (event)
		event_add(event, NULL);
	return event;
}

static struct event *add_timer(struct service *service, event_callback_fn run, int seconds)
{
	struct event *event = event_new(service->agent.base, -1, EV_PERSIST, run, service);

	if (event)
		event_add(event, &(struct timeval){ .tv_sec = seconds });
	return event;
}

static int add_events(struct service *service, struct error *err)
{
	service->terminate = add_signal(service, SIGTERM, stop);
	service->interrupt = add_signal(service, SIGINT, stop);
	service->hangup = add_signal(service, SIGHUP, reload);
	service->tick = add_timer(service, tick, TICK_S);
	service->upkeep = add_timer(service, upkeep, UPKEEP_S);
	service->resync = add_timer(service, resync, service->agent.options->resync_s);
	if (!service->terminate || !service->interrupt || !service->hangup || !service->tick || !service->upkeep ||
	    !service->resync)
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* What was not to be persisted before may have to be now. */
static int load_state(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	int origin = state_begin(&agent->state, options->state_dir, options->persist_dir, err);

	if (origin == STATE_PERSISTED)
		log_info("no state of this boot is there: what commands had set comes from %s", options->persist_dir);
	if (origin == STATE_OUTDATED)
		log_warning(
			"the machine was restarted: what commands had set before is forgotten, as no --persist kept it");
	if (origin < 0)
		return origin;
	unsaved_take_up(agent);
	return options->persist_dir && !agent->unsaved.text[0] ? agent_save(agent, err) : 0;
}

static int open_policies(struct agent *agent, struct error *err)
{
	int ret;

	agent_lock(agent);
	ret = policy_sources_open(agent, err);
	agent_unlock(agent);
	return ret;
}

/*
 * A start that must fail fails before it touches anything. Commands that come while servers are brought up, which takes
 * seconds where programs are loaded, wait in the socket's queue instead of being told that there is no agent.
 */
static int start(struct service *service, struct error *err)
{
	struct agent *agent = &service->agent;
	const struct agent_options *options = agent->options;
	int ret = datapath_kernel_check(err);

	if (ret)
		return ret;
	agent->access = (struct access_control){ .admin = options->admin_group, .monitor = options->monitor_group };
	agent->base = event_base_new();
	if (!agent->base)
		return error_set(err, -ENOMEM, "out of memory");
	ret = options->metrics ?
		      metrics_http_open(&service->http, agent->base, options->metrics, read_metrics, service, err) :
		      0;
	if (!ret)
		ret = load_state(agent, err);
	if (!ret)
		ret = add_events(service, err);
	if (!ret)
		ret = control_open(&service->control, agent->base, options->state_dir, &agent->access, agent_request,
				   agent, err);
	/* What a pin directory lacks, attach says: here it only must not come too late to be mounted. */
	pins_mount(options->pin_dir, NULL);
	/* Before there are threads, which have what the one that starts them has. */
	if (!ret)
		ret = privilege_drop(err);
	if (!ret)
		ret = reconcile_start(agent, err);
	return ret ?: open_policies(agent, err);
}

static void free_event(struct event *event)
{
	if (event)
		event_free(event);
}

static void finish(struct service *service)
{
	reconcile_stop(&service->agent);
	control_close(service->control);
	metrics_http_close(service->http);
	policy_sources_close(&service->agent);
	nets_close(&service->agent);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		identity_forget(&service->agent, slot);
	free_event(service->terminate);
	free_event(service->interrupt);
	free_event(service->hangup);
	free_event(service->tick);
	free_event(service->upkeep);
	free_event(service->resync);
	if (service->agent.base)
		event_base_free(service->agent.base);
	state_clear(&service->agent.state);
	agent_destroy(&service->agent);
}

int agent_run(const struct agent_options *options, struct error *err)
{
	CLEANUP_FREE struct service *service = calloc(1, sizeof(*service));
	CLEANUP_CLOSE int lock = state_lock(options->state_dir, err);
	CLEANUP_CLOSE int persist_lock = -1;
	int ret;

	if (!service)
		return error_set(err, -ENOMEM, "out of memory");
	if (lock < 0)
		return lock;
	if (options->persist_dir) {
		persist_lock = state_lock(options->persist_dir, err);
		if (persist_lock < 0)
			return persist_lock;
		if (persist_dir_own(options->persist_dir, options->state_dir, err))
			log_warning("another agent's uninstall would take what is persisted: %s", err->text);
	}
	warn_of_private_pins(options->pin_dir);
	raise_file_limit();
	signal(SIGPIPE, SIG_IGN);
	agent_init(&service->agent, options);
	clock_gettime(CLOCK_REALTIME, &service->agent.started);
	ret = start(service, err);
	if (!ret) {
		log_info("ready: state in %s, pins in %s, metrics %s", options->state_dir, options->pin_dir,
			 options->metrics ? options->metrics : "off");
		event_base_dispatch(service->agent.base);
	}
	finish(service);
	return ret;
}
