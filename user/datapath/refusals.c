/* SPDX-License-Identifier: GPL-2.0 */
/* The answers of limits that are named in them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/answer_text.h"
#include "datapath/private.h"

static int refusal_drop(struct datapath *dp, __u32 limit)
{
	int ret = bpf_map_delete_elem(dp->maps.refusals, &limit);

	dp->written.of[DATAPATH_refusals].dropped += !ret;
	return ret == -ENOENT ? 0 : ret;
}

/* What is right already is not written again. */
static int refusal_put(struct datapath *dp, __u32 limit, const char *name)
{
	struct datapath_changes *written = &dp->written.of[DATAPATH_refusals];
	CLEANUP_FREE struct weir_refusal *refusals = calloc(2, sizeof(*refusals));
	bool there;
	int ret;

	if (!refusals)
		return -ENOMEM;
	ret = weir_refusal_make(name, &refusals[0]);
	if (ret)
		return ret;
	there = !bpf_map_lookup_elem(dp->maps.refusals, &limit, &refusals[1]);
	if (there && !memcmp(&refusals[0], &refusals[1], sizeof(*refusals)))
		return 0;
	*(there ? &written->changed : &written->added) += 1;
	return bpf_map_update_elem(dp->maps.refusals, &limit, &refusals[0], BPF_ANY);
}

int datapath_refusal_set(struct datapath *dp, __u32 limit, const char *name, struct error *err)
{
	int ret = *name ? refusal_put(dp, limit, name) : refusal_drop(dp, limit);

	return ret ? datapath_map_failed(err, ret, "refusals") : 0;
}
