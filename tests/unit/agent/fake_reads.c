/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel side in memory: what is only read. Tests put there what is to be found. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_datapath.h"

int datapath_counters(struct datapath *dp, __u32 slot, __u64 *counters, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	int ret = fake_fails(__func__, err);

	if (!ret)
		memcpy(counters, dp->counters[slot], sizeof(dp->counters[slot]));
	return ret;
}

int datapath_serves_bodies(struct datapath *dp, __u32 slot, bool *found, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();

	(void)dp;
	(void)slot;
	*found = false;
	return fake_fails(__func__, err);
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

int datapath_heavy_places(struct datapath *dp, struct heavy_places *out, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	int ret = fake_fails(__func__, err);

	*out = (struct heavy_places){ 0 };
	for (unsigned int i = 0; i < dp->n_heavy && !ret; i++)
		ret = heavy_places_add(out, i, &dp->heavy[i]);
	return ret;
}

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

__u32 datapath_connections_of(struct datapath *dp, __u64 subject)
{
	(void)dp;
	(void)subject;
	return 0;
}

int datapath_trace_fd(const struct datapath *dp)
{
	return dp->traced[0];
}

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

/* What the kernel would say stands in dp->explained. */
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

void datapath_name_text(const struct weir_name *name, char *text, size_t size)
{
	snprintf(text, size, "%.*s", name->length, name->text);
}
