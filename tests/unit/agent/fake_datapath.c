/* SPDX-License-Identifier: GPL-2.0 */
#include "fake_datapath.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/key.h"
#include "probe/read.h"
#include "sys/netns.h"
#include "sys/socket_diag.h"

#define MAX_FDS 64

struct datapath fake_nets[FAKE_NETS];
const char *fake_failing;
void (*fake_asked)(void);
void (*fake_failed)(void), (*fake_opening)(void), (*fake_sweeping)(void), (*fake_explaining)(void),
	(*fake_syncing)(void);
atomic_bool fake_sweep_stopped;
static int failures_left;
static pthread_mutex_t kernel_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int kernel_depth; /* functions call each other */

static __u64 cookies[MAX_FDS]; /* by descriptor of a namespace */

/* --- the kernel's own order of things */

void *fake_kernel_read(void)
{
	if (!kernel_depth++)
		pthread_mutex_lock(&kernel_lock);
	return &kernel_depth;
}

void *fake_kernel(void)
{
	if (!kernel_depth && fake_asked)
		fake_asked();
	return fake_kernel_read();
}

void fake_kernel_leave(void *kernel)
{
	(void)kernel;
	if (!--kernel_depth)
		pthread_mutex_unlock(&kernel_lock);
}

int fake_fails(const char *function, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();

	if (!fake_failing || strcmp(fake_failing, function) != 0 || failures_left == 0)
		return 0;
	failures_left--;
	if (fake_failed)
		fake_failed();
	return error_set(err, -EIO, "%s failed", function);
}

void fake_fail(const char *function, int times)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();

	fake_failing = function;
	failures_left = times;
}

void fake_reset(void)
{
	memset(fake_nets, 0, sizeof(fake_nets));
	fake_failing = NULL;
	fake_asked = NULL;
	fake_failed = NULL;
	fake_opening = NULL;
	fake_sweeping = NULL;
	fake_explaining = NULL;
	fake_syncing = NULL;
	failures_left = 0;
}

/* --- probe_read.h: all is there */

void probe_read(struct probe *probe, int netns_fd, const char *pin_dir)
{
	(void)netns_fd;
	(void)pin_dir;
	for (int fact = 0; fact < PROBE_FACT_COUNT; fact++)
		probe_set(probe, fact, PROBE_YES, "%s", "");
}

const char *datapath_no_hold(const struct datapath *dp)
{
	(void)dp;
	return "";
}

/* --- netns.h */

int netns_open(const char *path, struct error *err)
{
	static const char prefix[] = "/netns/";
	bool known = !path || strncmp(path, prefix, strlen(prefix)) == 0;
	__u64 cookie = path && known ? strtoull(path + strlen(prefix), NULL, 10) : 1;
	int fd;

	if (!known || cookie >= FAKE_NETS)
		return error_set(err, -ENOENT, "there is no namespace %s", path);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fd < MAX_FDS)
		cookies[fd] = cookie;
	return fd;
}

int netns_cookie(int netns_fd, __u64 *cookie, struct error *err)
{
	(void)err;
	*cookie = cookies[netns_fd];
	return 0;
}

int netns_run(int netns_fd, int (*run)(void *arg), void *arg, struct error *err)
{
	(void)netns_fd;
	(void)err;
	return run(arg);
}

/* --- socket_diag.h: somebody listens on every port below 10000 */

int socket_diag_listeners(struct mnl_socket *nl, socket_diag_listener_t call, void *arg)
{
	static const __u8 any[16];

	(void)nl;
	for (__u16 port = 1; port < 10000; port++)
		call(any, port, 0, arg);
	return 0;
}

/* --- datapath.h */

int datapath_kernel_check(struct error *err)
{
	return fake_fails(__func__, err);
}

int datapath_permission_check(struct error *err)
{
	return fake_fails(__func__, err);
}

int datapath_open(struct datapath **out, const struct datapath_options *options, struct error *err)
{
	struct datapath *dp = &fake_nets[options->netns_cookie];
	int ret = fake_fails(__func__, err);

	if (ret)
		return ret;
	if (fake_opening)
		fake_opening();
	if (pipe2(dp->netlink, O_CLOEXEC) || pipe2(dp->traced, O_CLOEXEC))
		return error_set(err, -errno, "pipe");
	dp->pinned = true;
	dp->open = true;
	dp->opened++;
	*out = dp;
	return 0;
}

void datapath_close(struct datapath *dp)
{
	if (!dp)
		return;
	dp->open = false;
	close(dp->netlink[0]);
	close(dp->netlink[1]);
	close(dp->traced[0]);
	close(dp->traced[1]);
}

/* All but what datapath_close() still needs. */
int datapath_remove(struct datapath *dp, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	const struct datapath gone = { .open = true,
				       .netlink = { dp->netlink[0], dp->netlink[1] },
				       .traced = { dp->traced[0], dp->traced[1] },
				       .tracked = dp->tracked,
				       .can_pace = dp->can_pace };
	int ret = fake_fails(__func__, err);

	if (!ret)
		*dp = gone;
	return ret;
}

int datapath_server_set(struct datapath *dp, __u32 slot, const struct weir_server *server,
			const struct datapath_listen *listens, size_t n_listens, const struct datapath_cidr *proxies,
			size_t n_proxies, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	(void)listens;
	(void)proxies;
	if (ret)
		return ret;
	dp->writes++;
	dp->servers[slot].set = true;
	dp->servers[slot].flags = server->flags;
	dp->servers[slot].known = server->groups;
	dp->servers[slot].list_width = server->list_width;
	dp->servers[slot].object_bytes = server->object_bytes;
	dp->servers[slot].n_listens = n_listens;
	dp->servers[slot].n_proxies = n_proxies;
	return 0;
}

int datapath_balancers_set(struct datapath *dp, __u32 slot, const struct datapath_cidr *balancers, size_t n,
			   struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	(void)balancers;
	if (ret)
		return ret;
	dp->writes++;
	dp->servers[slot].n_balancers = n;
	return 0;
}

int datapath_server_flags(struct datapath *dp, __u32 slot, __u32 flags, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	if (ret)
		return ret;
	dp->writes++;
	dp->servers[slot].flags = flags;
	return 0;
}

int datapath_known_groups_set(struct datapath *dp, __u32 slot, const struct weir_known_groups *groups,
			      struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	if (ret)
		return ret;
	dp->writes++;
	dp->servers[slot].known = *groups;
	return 0;
}

int datapath_lists_set(struct datapath *dp, __u32 slot, __u32 width, __u32 object_bytes, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	if (ret)
		return ret;
	dp->servers[slot].list_width = width;
	dp->servers[slot].object_bytes = object_bytes;
	return 0;
}

int datapath_trace_until(struct datapath *dp, __u32 slot, __u64 until_ns, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	int ret = fake_fails(__func__, err);

	if (!ret)
		dp->servers[slot].trace_until_ns = until_ns;
	return ret;
}

/* The rows that a test has put there. */
/* None is in flight. */
int datapath_open_requests(struct datapath *dp, enum weir_heavy_by by, struct open_requests *out, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	int ret = fake_fails(__func__, err);

	(void)dp;
	(void)by;
	if (!ret)
		*out = (struct open_requests){};
	return ret;
}

int datapath_heavy(struct datapath *dp, const struct datapath_heavy_query *query, struct weir_heavy_row **out,
		   struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	int ret = fake_fails(__func__, err), n = 0;

	if (ret)
		return ret;
	*out = calloc(FAKE_HEAVY, sizeof(**out));
	for (unsigned int i = 0; i < dp->n_heavy; i++)
		if (dp->heavy[i].what.server == query->slot && (query->by >> dp->heavy[i].what.by & 1))
			(*out)[n++] = dp->heavy[i];
	return n;
}

int datapath_heavy_places(struct datapath *dp, struct datapath_heavy_places *out, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	int ret = fake_fails(__func__, err);

	*out = (struct datapath_heavy_places){ 0 };
	for (unsigned int i = 0; i < dp->n_heavy && !ret; i++)
		ret = heavy_places_add(out, i, &dp->heavy[i]);
	return ret;
}

int datapath_trace_fd(const struct datapath *dp)
{
	return dp->traced[0];
}

/* The records that a test has put there. */
bool datapath_trace_read(struct datapath *dp, void (*tell)(void *arg, const struct weir_trace_record *record),
			 void *arg)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	unsigned int n = dp->n_records;

	dp->n_records = 0;
	for (unsigned int i = 0; i < n; i++)
		tell(arg, &dp->records[i]);
	return false;
}

int datapath_server_clear(struct datapath *dp, __u32 slot, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	if (ret)
		return ret;
	dp->writes++;
	memset(&dp->servers[slot], 0, sizeof(dp->servers[slot]));
	memset(&dp->limits[weir_limit_index(slot, 0)], 0, WEIR_SERVER_LIMITS * sizeof(dp->limits[0]));
	for (int i = 0; i < FAKE_OVERRIDES; i++)
		if (dp->overrides[i].limit / WEIR_SERVER_LIMITS == slot)
			dp->overrides[i] = (struct fake_override){ 0 };
	memset(dp->counters[slot], 0, sizeof(dp->counters[slot]));
	return 0;
}

int datapath_groups_set(struct datapath *dp, __u32 slot, const struct datapath_group *groups, size_t n,
			struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	(void)groups;
	if (!ret)
		dp->servers[slot].n_groups = n;
	return ret;
}

int datapath_tokens_set(struct datapath *dp, __u32 slot, const struct datapath_token *tokens, size_t n,
			struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	(void)tokens;
	if (!ret)
		dp->servers[slot].n_tokens = n;
	return ret;
}

int datapath_addresses_set(struct datapath *dp, __u32 slot, const struct datapath_address *addresses, size_t n,
			   struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	(void)addresses;
	if (!ret)
		dp->servers[slot].n_addresses = n;
	return ret;
}

int datapath_shared_sync(struct datapath *dp, const struct datapath_servers *servers, struct error *err)
{
	int ret = fake_fails(__func__, err);

	(void)servers;
	if (fake_syncing)
		fake_syncing();
	CLEANUP_KERNEL void *kernel = fake_kernel();
	if (!ret && dp->drifted) {
		dp->written.of[DATAPATH_overrides].added++;
		dp->drifted = false;
	}
	return ret;
}

const struct datapath_written *datapath_written(const struct datapath *dp)
{
	return &dp->written;
}

/* What the kernel would say stands in dp->explained. */
__u32 datapath_connections_of(struct datapath *dp, __u64 subject)
{
	(void)dp;
	(void)subject;
	return 0;
}

int datapath_explain(struct datapath *dp, __u32 server, const struct datapath_question *question,
		     struct weir_explained *out, struct error *err)
{
	int ret = fake_fails(__func__, err);

	(void)server;
	if (fake_explaining)
		fake_explaining();
	if (!ret && question->length > WEIR_EXPLAIN_BYTES)
		ret = error_set(err, -E2BIG, "too long");
	if (!ret)
		*out = dp->explained;
	return ret;
}

/* FNV-1a of kind and bytes. */
__u64 datapath_subject(const struct datapath *dp, enum weir_name_kind kind, const void *bytes, size_t length)
{
	__u64 hash = (0xcbf29ce484222325ULL ^ kind) * 0x100000001b3ULL;

	(void)dp;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ ((const __u8 *)bytes)[i]) * 0x100000001b3ULL;
	return hash;
}

int datapath_name(struct datapath *dp, __u64 subject, char *text, size_t size)
{
	(void)dp;
	if (subject != 5)
		return -ENOENT;
	snprintf(text, size, "mal\x1bory");
	return 0;
}

int datapath_counters(struct datapath *dp, __u32 slot, __u64 *counters, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	int ret = fake_fails(__func__, err);

	if (!ret)
		memcpy(counters, dp->counters[slot], sizeof(dp->counters[slot]));
	return ret;
}

/* One that is known by name, one that is not, and the one of `total`. */
int datapath_top(struct datapath *dp, __u32 server, struct datapath_subject_use *top, size_t n, struct error *err)
{
	(void)dp;
	(void)server;
	(void)err;
	if (n < 3)
		return 0;
	top[0] = (struct datapath_subject_use){ .slot = WEIR_BUILTIN_USER, .subject = 5, .passed = 1, .shed = 30 };
	top[1] = (struct datapath_subject_use){
		.slot = WEIR_BUILTIN_NAMESPACE, .subject = 0xab, .passed = 2, .shed = 20
	};
	top[2] = (struct datapath_subject_use){ .slot = WEIR_BUILTIN_TOTAL, .passed = 3, .shed = 10 };
	return 3;
}

int datapath_netlink_fd(const struct datapath *dp)
{
	return dp->netlink[0];
}

int datapath_links_sync(struct datapath *dp, const struct datapath_interfaces *wanted, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	if (!ret)
		dp->n_wanted = wanted->names ? wanted->n : 0;
	return ret;
}

int datapath_links(struct datapath *dp, struct datapath_link **links, struct error *err)
{
	(void)dp;
	(void)err;
	*links = calloc(1, sizeof(**links));
	**links = (struct datapath_link){ .name = "lo", .ifindex = 1, .how = "tcx", .attached = true };
	return 1;
}

int datapath_hold_sync(struct datapath *dp, const char *const *cgroups, size_t n, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	(void)cgroups;
	if (!ret)
		dp->n_cgroups = n;
	return ret;
}

int datapath_pace(struct datapath *dp, bool on, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	dp->paced = on && dp->can_pace;
	return on && !dp->can_pace ? error_set(err, -EOPNOTSUPP, "no fq in this kernel") : 0;
}

int datapath_loopback_tracked(struct datapath *dp, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();

	return dp->tracked < 0 ? error_set(err, dp->tracked, "a connection there: timed out") : dp->tracked;
}

__u32 datapath_conns_max(const struct datapath *dp)
{
	(void)dp;
	return WEIR_DEFAULT_CONNS;
}

int datapath_sweep(struct datapath *dp, __u64 idle_ns, struct error *err)
{
	(void)dp;
	(void)idle_ns;
	(void)err;
	if (fake_sweeping)
		fake_sweeping();
	return 0;
}

void datapath_sweep_stop(struct datapath *dp)
{
	(void)dp;
	atomic_store(&fake_sweep_stopped, true);
}

int datapath_reset_translated(struct datapath *dp, __u32 slot, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	__u64 *counters = dp->counters[slot];
	int n = counters[WEIR_SPLICE_OPENED] - counters[WEIR_SPLICE_CLOSED];
	int ret = fake_fails(__func__, err);

	if (ret)
		return ret;
	counters[WEIR_SPLICE_CLOSED] += n;
	return n;
}

void datapath_name_text(const struct weir_name *name, char *text, size_t size)
{
	snprintf(text, size, "%.*s", name->length, name->text);
}
