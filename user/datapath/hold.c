/* SPDX-License-Identifier: GPL-2.0 */
/* The programs at the sockets, on the cgroups where what cannot be read is held. */
#include <errno.h>

#include "datapath/private.h"

const char *datapath_no_hold(const struct datapath *dp)
{
	return dp->no_hold.text;
}

int datapath_hold_sync(struct datapath *dp, const char *const *cgroups, size_t n, struct error *err)
{
	bool none = dp->no_hold.text[0];
	int ret = n ? datapath_directory_sync(dp, err) : 0, failed;

	if (ret)
		return ret;
	for (int i = 0; i < DATAPATH_ON_CGROUPS; i++) {
		failed = cgroup_links_sync(dp->dir, &dp->on_cgroups[i], cgroups, none ? 0 : n,
					   &dp->written.of[DATAPATH_holds], ret ? NULL : err);
		ret = ret ?: failed;
	}
	return ret || !none || !n ? ret : error_set(err, -EOPNOTSUPP, "%s", dp->no_hold.text);
}

bool datapath_hold_runs(const struct datapath *dp, const char *const *cgroups, size_t n)
{
	bool runs = true;

	for (size_t i = 0; i < n; i++)
		for (int j = 0; j < DATAPATH_ON_CGROUPS; j++)
			runs = runs && cgroup_program_runs(&dp->on_cgroups[j], cgroups[i]);
	return runs;
}
