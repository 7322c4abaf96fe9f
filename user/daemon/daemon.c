/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/inside.h"
#include "agent/jobs.h"
#include "agent/net.h"
#include "agent/reconcile.h"
#include "agent/servers.h"
#include "agent/sweep.h"
#include "agent/trace.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "commands/commands.h"
#include "commands/history.h"
#include "control/control.h"
#include "daemon/daemon.h"
#include "daemon/descriptors.h"
#include "daemon/request.h"
#include "follow/follow.h"
#include "metrics/http.h"
#include "saved/lock.h"
#include "saved/owner.h"
#include "sys/notify.h"
#include "sys/pins.h"
#include "sys/privilege.h"

#define TICK_S 1
#define UPKEEP_S 10

/* What the event loop runs on. */
struct service {
	struct agent agent;
	struct control *control;
	struct metrics_http *http;
	int lock, persist_lock; /* below 0: none */
	bool lost;		/* one of them is, and cannot be had again */
	struct descriptors descriptors;
	struct event *terminate, *interrupt, *hangup, *devices, *rings, *tick, *upkeep, *resync, *watchdog;
};

static void warn_of_private_pins(const char *pin_dir)
{
	if (pins_private(pin_dir) > 0)
		log_warning(
			"%s is visible only in the mount namespace of the agent, as with \"ip netns exec\": what is in force "
			"ends with it. Start it outside and attach --netns, or use nsenter --net",
			pin_dir);
}

/* Who writes there says what the agent does when it is started, and may take commands in its place. */
static void warn_of_open_directory(const char *directory)
{
	struct stat info;

	if (!directory || stat(directory, &info))
		return;
	if ((info.st_mode & (S_IWGRP | S_IWOTH)) || (info.st_uid && info.st_uid != geteuid()))
		log_warning(
			"%s can be written by others (owner %u, mode %04o), who command the agent by that: chown root, chmod go-w",
			directory, info.st_uid, info.st_mode & 07777);
}

/* Whoever starts the agent may have signals blocked that are to end it, and a umask by which it could not read what it writes. */
static void inherit_little(void)
{
	sigset_t none;

	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not be larger (RLIMIT_FSIZE) is one that cannot be saved */
	umask(077);
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
	/* Jobs that end from now on have no other one after them. */
	agent_end(&service->agent);
	notify_send("STOPPING=1");
	log_info("stopping on %s: limits stay in force", strsignal(signal));
	event_base_loopbreak(service->agent.base);
}

/* --- jobs */

static void reload(struct agent *agent)
{
	CLEANUP_JSON json_t *list = json_array();
	struct error err;

	agent_change_begin(agent);
	if (servers_reload(agent, list, &err))
		log_error("%s", err.text);
	agent_change_end(agent);
	follow_sync(agent);
}

/* The first one: commands that change something come after it. */
static void begin(struct agent *agent)
{
	if (!reconcile_wait(agent))
		return;
	servers_listen(agent);
	history_begin(agent);
	follow_sync(agent);
	atomic_store(&agent->ready, true);
	notify_send("READY=1");
	log_info("ready: state in %s, pins in %s, metrics %s", agent->options->state_dir, agent->options->pin_dir,
		 agent->options->metrics ?: "off");
}

/* --- events */

static void hangup(evutil_socket_t signal, short what, void *context)
{
	(void)signal;
	(void)what;
	jobs_add(&((struct service *)context)->agent, reload);
}

static void devices_changed(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	nets_devices_changed(&((struct service *)context)->agent);
}

static void traced(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	nets_traced(&((struct service *)context)->agent);
}

static void own_persist_dir(const struct agent_options *options)
{
	struct error err;

	if (options->persist_dir && persist_dir_own(options->persist_dir, options->state_dir, &err))
		log_warning("another agent's \"weir uninstall\" could remove the persisted state: %s", err.text);
}

/* What is in force is saved where it was. */
static void save_anew(struct agent *agent)
{
	struct error err;

	own_persist_dir(agent->options);
	agent_work_begin(agent);
	if (agent_save(agent, &err))
		log_error("%s", err.text);
	agent_work_end(agent);
}

/* True: the agent has it. */
static bool look_after_lock(struct service *service, int *lock, const char *directory)
{
	struct error err;
	int ret = state_lock_look_after(lock, directory, &err);

	if (ret < 0 && !service->lost)
		log_error("%s/lock was deleted, and cannot be made again: %s", directory, err.text);
	service->lost |= ret < 0;
	if (ret <= 0)
		return !ret;
	service->lost = false;
	log_warning("%s/lock was deleted, and is made again", directory);
	jobs_add(&service->agent, save_anew);
	return true;
}

/* Soon, before another agent is started, whose socket is its own. */
static void look_after_files(struct service *service)
{
	const struct agent_options *options = service->agent.options;

	if (look_after_lock(service, &service->lock, options->state_dir))
		control_look_after(service->control);
	look_after_lock(service, &service->persist_lock, options->persist_dir);
}

static void tick(evutil_socket_t fd, short what, void *context)
{
	struct service *service = context;
	struct agent *agent = &service->agent;
	bool draining, inside, unheard, in_part, given_up;

	(void)fd;
	(void)what;
	look_after_files(service);
	descriptors_look(&service->descriptors);
	agent_lock(agent);
	draining = servers_draining(agent);
	inside = inside_wanted(agent);
	unheard = servers_unheard(agent);
	in_part = nets_held_in_part(agent);
	given_up = nets_given_up(agent);
	trace_refresh(agent);
	agent_unlock(agent);
	if (draining)
		jobs_add(agent, servers_drain);
	if (inside)
		jobs_add(agent, inside_follow);
	if (given_up)
		jobs_add(agent, nets_let_go);
	/* Soon, so that nobody reads it who has just started the server. */
	if (unheard)
		jobs_add(agent, servers_listen);
	if (in_part)
		jobs_add(agent, nets_hold);
	if (history_is_due(agent))
		jobs_add(agent, history_write);
}

static void look_after(struct agent *agent)
{
	nets_look_after(agent);
	rates_look(agent);
	servers_listen(agent);
	agent_work_begin(agent);
	agent_save_again(agent);
	agent_work_end(agent);
}

static void upkeep(evutil_socket_t fd, short what, void *context)
{
	struct service *service = context;
	struct agent *agent = &service->agent;

	(void)fd;
	(void)what;
	jobs_add(agent, look_after);
	/* Most changes of policy files are noticed at once; those that are not, now. */
	follow_wake(agent);
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

/* systemd hears of the event loop, as everybody else does. */
static void feed_watchdog(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
	notify_send("WATCHDOG=1");
}

/* For GET /readyz. */
static bool is_ready(void *context)
{
	return atomic_load(&((struct service *)context)->agent.ready);
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

/* NULL: out of memory. An event that is not waited for would be missed for good. */
static struct event *wait_for(struct event *event, const struct timeval *every)
{
	if (event && event_add(event, every)) {
		event_free(event);
		return NULL;
	}
	return event;
}

static struct event *add_signal(struct service *service, int signal, event_callback_fn run)
{
	return wait_for(evsignal_new(service->agent.base, signal, run, service), NULL);
}

static struct event *add_descriptor(struct service *service, int fd, event_callback_fn run)
{
	struct event *event = fd < 0 ? NULL : event_new(service->agent.base, fd, EV_READ | EV_PERSIST, run, service);

	return wait_for(event, NULL);
}

static struct event *add_timer(struct service *service, event_callback_fn run, int seconds)
{
	return wait_for(event_new(service->agent.base, -1, EV_PERSIST, run, service),
			&(struct timeval){ .tv_sec = seconds });
}

/* Twice as often as it must be, as sd_watchdog_enabled(3) advises. NULL: nobody watches, or out of memory. */
static struct event *add_watchdog(struct service *service)
{
	const __u64 us = notify_watchdog_us() / 2;
	struct event *event = us ? event_new(service->agent.base, -1, EV_PERSIST, feed_watchdog, NULL) : NULL;

	return wait_for(event, &(struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 });
}

static int add_events(struct service *service, struct error *err)
{
	service->watchdog = add_watchdog(service);
	service->terminate = add_signal(service, SIGTERM, stop);
	service->interrupt = add_signal(service, SIGINT, stop);
	service->hangup = add_signal(service, SIGHUP, hangup);
	service->devices = add_descriptor(service, service->agent.devices_fd, devices_changed);
	service->rings = add_descriptor(service, service->agent.rings_fd, traced);
	service->tick = add_timer(service, tick, TICK_S);
	service->upkeep = add_timer(service, upkeep, UPKEEP_S);
	service->resync = add_timer(service, resync, service->agent.options->resync_s);
	if (!service->terminate || !service->interrupt || !service->hangup || !service->devices || !service->rings ||
	    !service->tick || !service->upkeep || !service->resync)
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/*
 * A start that must fail fails before it touches anything. Servers are brought up by workers: meanwhile the agent tells what
 * it knows, and commands that change something wait for their turn.
 */
static int start(struct service *service, struct error *err)
{
	struct agent *agent = &service->agent;
	const struct agent_options *options = agent->options;
	int ret;

	agent->access = (struct access_control){ .admin = options->admin_group, .monitor = options->monitor_group };
	agent->base = event_base_new();
	if (!agent->base)
		return error_set(err, -ENOMEM, "out of memory");
	ret = options->metrics ? metrics_http_open(&service->http, agent->base, options->metrics, read_metrics,
						   is_ready, service, err) :
				 0;
	if (!ret)
		ret = agent_load(agent, err) ?: history_open(agent, err);
	if (!ret)
		ret = add_events(service, err);
	if (!ret)
		ret = control_open(&service->control, agent->base, options->state_dir, &agent->access, agent_request,
				   agent, err);
	/* Before there are threads, which have what the one that starts them has. */
	if (!ret)
		ret = privilege_drop(err);
	if (!ret)
		ret = reconcile_start(agent, err)	?:
			      follow_open(agent, err)	?:
			      sweeper_start(agent, err) ?:
							  jobs_start(agent, err);
	if (ret)
		return ret;
	control_set_aside(service->control, agent_aside);
	jobs_add(agent, begin);
	return 0;
}

static void free_event(struct event *event)
{
	if (event)
		event_free(event);
}

static void finish(struct service *service)
{
	struct agent *agent = &service->agent;

	agent_end(agent);
	jobs_stop(agent);
	sweeper_stop(agent);
	reconcile_stop(agent);
	control_close(service->control);
	metrics_http_close(service->http);
	follow_close(agent);
	/* A start that failed has counted nothing, and leaves what is there. */
	if (atomic_load(&agent->ready)) {
		history_write(agent);
		agent_save_last(agent);
	}
	jobs_free(agent);
	nets_close(agent);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		identity_forget(agent, slot);
	free_event(service->terminate);
	free_event(service->interrupt);
	free_event(service->hangup);
	free_event(service->devices);
	free_event(service->rings);
	free_event(service->tick);
	free_event(service->upkeep);
	free_event(service->resync);
	free_event(service->watchdog);
	if (agent->base)
		event_base_free(agent->base);
	history_close(agent);
	state_clear(&agent->state);
	json_decref(agent->leftovers);
	agent_destroy(agent);
}

static int lock_all(struct service *service, const struct agent_options *options, struct error *err)
{
	service->lock = state_lock(options->state_dir, err);
	if (service->lock < 0)
		return service->lock;
	if (!options->persist_dir)
		return 0;
	service->persist_lock = state_lock(options->persist_dir, err);
	if (service->persist_lock < 0)
		return service->persist_lock;
	own_persist_dir(options);
	return 0;
}

static int run(struct service *service, const struct agent_options *options, struct error *err)
{
	int ret;

	warn_of_private_pins(options->pin_dir);
	warn_of_open_directory(options->state_dir);
	warn_of_open_directory(options->persist_dir);
	raise_file_limit();
	agent_init(&service->agent, options);
	clock_gettime(CLOCK_REALTIME, &service->agent.started);
	ret = start(service, err);
	if (!ret)
		event_base_dispatch(service->agent.base);
	finish(service);
	return ret;
}

int agent_run(const struct agent_options *options, struct error *err)
{
	CLEANUP_FREE struct service *service = calloc(1, sizeof(*service));
	int ret = datapath_kernel_check(err)		 ?:
			  datapath_permission_check(err) ?:
							   datapath_pins_check(options->pin_dir, err);

	if (ret)
		return ret;
	if (!service)
		return error_set(err, -ENOMEM, "out of memory");
	inherit_little();
	service->lock = service->persist_lock = -1;
	ret = lock_all(service, options, err) ?: run(service, options, err);
	cleanup_close(&service->persist_lock);
	cleanup_close(&service->lock);
	return ret;
}
