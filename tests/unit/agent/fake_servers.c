/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel side in memory: what a server is told, but for its limits. */
#include <string.h>

#include "fake_datapath.h"

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

int datapath_drain_all(struct datapath *dp, struct error *err)
{
	int ret = 0;

	for (__u32 slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++)
		if (dp->servers[slot].flags)
			ret = datapath_server_flags(dp, slot, dp->servers[slot].flags | WEIR_SERVER_DRAINING, err);
	return ret;
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
