/* SPDX-License-Identifier: GPL-2.0 */
/* datapath/inside.h over the kernel side in memory: nobody is looked into, unless a test says that it could be. */
#include "datapath/inside.h"

#include <errno.h>

#include "fake_datapath.h"

bool fake_inside_allowed;

int datapath_inside_check(struct error *err)
{
	if (fake_inside_allowed)
		return 0;
	return error_set(err, -ENOTSUP, "there are no processes here");
}

bool datapath_inside_answers(void)
{
	return false;
}

bool datapath_inside_writes(void)
{
	return false;
}

int datapath_inside_sync(struct datapath *dp, const struct datapath_process *processes, size_t n, struct error *err)
{
	(void)processes;
	dp->inside = n;
	return fake_fails(__func__, err);
}

int datapath_inside_sweep(struct datapath *dp, struct error *err)
{
	dp->inside_swept++;
	return fake_fails(__func__, err);
}
