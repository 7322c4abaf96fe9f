/* SPDX-License-Identifier: GPL-2.0 */
/* Does this kernel take the programs? Loaded on maps of their own, and let go. */
#include "datapath/private.h"
#include "weir.skel.h"

#define TRY_CONNS 16

static int try_load(bool hold, struct error *err)
{
	struct weir_bpf *skeleton;
	int ret = datapath_object_open(&skeleton, err);

	if (ret)
		return ret;
	datapath_hold_wanted(skeleton, hold);
	bpf_program__set_autoload(skeleton->progs.weir_explain, false);
	datapath_conns_max_set(skeleton, TRY_CONNS);
	ret = weir_bpf__load(skeleton);
	if (ret)
		datapath_load_failed(ret, err);
	weir_bpf__destroy(skeleton);
	return ret;
}

int datapath_try(struct error *no_hold, struct error *err)
{
	int ret = try_load(true, err);

	no_hold->text[0] = 0;
	if (!ret || !datapath_hold_refused())
		return ret;
	*no_hold = *err;
	return try_load(false, err);
}
