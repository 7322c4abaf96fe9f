/* SPDX-License-Identifier: GPL-2.0 */
/* In the place of inside.c when weir is made with INSIDE=0: nothing is loaded or attached. What others have pinned is removed. */
#include <errno.h>

#include "datapath/inside.h"
#include "datapath/inside_pins.h"
#include "datapath/private.h"

int datapath_inside_check(struct error *err)
{
	return error_set(err, -ENOTSUP, "this weir was built without it (INSIDE=0)");
}

bool datapath_inside_answers(void)
{
	return false;
}

bool datapath_inside_writes(void)
{
	return false;
}

void datapath_inside_close(struct datapath *dp)
{
	(void)dp;
}

int datapath_inside_remove(struct datapath *dp, struct error *err)
{
	return inside_pins_drop(dp->dir, err);
}

int datapath_inside_sync(struct datapath *dp, const struct datapath_process *processes, size_t n, struct error *err)
{
	(void)processes;
	return n ? datapath_inside_check(err) : datapath_inside_remove(dp, err);
}

int datapath_inside_open(struct datapath *dp, enum weir_heavy_by by, struct open_requests *out)
{
	(void)dp;
	(void)by;
	(void)out;
	return 0;
}

int datapath_inside_sweep(struct datapath *dp, struct error *err)
{
	(void)dp;
	(void)err;
	return 0;
}
