/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel side in memory: a namespace that is opened and removed, its links, and its connections. */
#include "fake_datapath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int datapath_kernel_check(struct error *err)
{
	return fake_fails(__func__, err);
}

int datapath_permission_check(struct error *err)
{
	return fake_fails(__func__, err);
}

int datapath_pins_check(const char *pin_dir, struct error *err)
{
	(void)pin_dir;
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

const struct datapath_written *datapath_written(const struct datapath *dp)
{
	return &dp->written;
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

	if (ret)
		return ret;
	dp->n_cgroups = n;
	for (size_t i = 0; i < n; i++)
		snprintf(dp->cgroups[i], sizeof(dp->cgroups[i]), "%s", cgroups[i]);
	return 0;
}

static bool is_held(const struct datapath *dp, const char *cgroup)
{
	for (size_t i = 0; i < dp->n_cgroups; i++)
		if (strcmp(dp->cgroups[i], cgroup) == 0)
			return true;
	return false;
}

bool datapath_hold_runs(const struct datapath *dp, const char *const *cgroups, size_t n)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	bool runs = true;

	for (size_t i = 0; i < n; i++)
		runs = runs && is_held(dp, cgroups[i]);
	return runs;
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
