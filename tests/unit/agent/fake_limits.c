/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel side in memory: limits, overrides and rules. */
#include <errno.h>
#include <string.h>

#include "weir/base/duration.h"

#include "base/clock.h"
#include "fake_datapath.h"
#include "model/key.h"

int datapath_limit_set(struct datapath *dp, __u32 server, __u32 slot, const struct datapath_limit *limit,
		       struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	if (ret)
		return ret;
	dp->writes++;
	dp->limits[weir_limit_index(server, slot)] = (struct fake_limit){ .there = true, .limit = *limit };
	return 0;
}

int datapath_limit_delete(struct datapath *dp, __u32 server, __u32 slot, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	__u32 index = weir_limit_index(server, slot);
	int ret = fake_fails(__func__, err);

	if (ret)
		return ret;
	dp->limits[index].there = false;
	for (int i = 0; i < FAKE_OVERRIDES; i++)
		if (dp->overrides[i].limit == index)
			dp->overrides[i] = (struct fake_override){ 0 };
	return 0;
}

struct datapath_limit *fake_limit(struct datapath *dp, __u32 server, __u32 slot)
{
	struct fake_limit *limit = &dp->limits[weir_limit_index(server, slot)];

	return limit->there ? &limit->limit : NULL;
}

static struct fake_override *find_override(struct datapath *dp, __u32 limit, __u64 subject)
{
	for (int i = 0; i < FAKE_OVERRIDES; i++)
		if (dp->overrides[i].there && dp->overrides[i].limit == limit && dp->overrides[i].subject == subject)
			return &dp->overrides[i];
	return NULL;
}

static struct fake_override *free_override(struct datapath *dp)
{
	for (int i = 0; i < FAKE_OVERRIDES; i++)
		if (!dp->overrides[i].there)
			return &dp->overrides[i];
	return NULL;
}

int datapath_override_set(struct datapath *dp, __u32 server, __u32 slot, __u64 subject,
			  const struct datapath_amount *amount, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	__u32 index = weir_limit_index(server, slot);
	struct fake_override *place = find_override(dp, index, subject) ?: free_override(dp);
	int ret = place ? fake_fails(__func__, err) : -ENOSPC;

	if (!ret && !dp->limits[index].there)
		ret = error_set(err, -ENOENT, "the limit of an override is not there");
	if (ret)
		return ret;
	dp->writes++;
	*place = (struct fake_override){ .there = true, .limit = index, .subject = subject, .amount = *amount };
	return 0;
}

int datapath_overrides_delete(struct datapath *dp, __u32 server, __u32 slot, const __u64 *subjects, size_t n,
			      struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	for (size_t i = 0; i < n && !ret; i++) {
		struct fake_override *place = find_override(dp, weir_limit_index(server, slot), subjects[i]);

		dp->writes++;
		if (place)
			*place = (struct fake_override){ 0 };
	}
	return ret;
}

int datapath_limits_keep(struct datapath *dp, __u32 server, const struct datapath_slots *slots, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	for (__u32 slot = 0; slot < WEIR_SERVER_LIMITS && !ret; slot++)
		if (!datapath_slots_have(slots, slot) && dp->limits[weir_limit_index(server, slot)].there)
			ret = datapath_limit_delete(dp, server, slot, err);
	return ret;
}

static bool override_wanted(const struct fake_override *there, __u32 server, const struct datapath_override *overrides,
			    size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (there->limit == weir_limit_index(server, overrides[i].slot) &&
		    there->subject == overrides[i].subject)
			return true;
	return false;
}

int datapath_overrides_set(struct datapath *dp, __u32 server, const struct datapath_slots *slots,
			   const struct datapath_override *overrides, size_t n, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	for (size_t i = 0; i < n && !ret; i++)
		ret = datapath_override_set(dp, server, overrides[i].slot, overrides[i].subject, &overrides[i].amount,
					    err);
	for (int i = 0; i < FAKE_OVERRIDES && !ret; i++) {
		struct fake_override *there = &dp->overrides[i];

		if (there->there && there->limit / WEIR_SERVER_LIMITS == server &&
		    datapath_slots_have(slots, there->limit % WEIR_SERVER_LIMITS) &&
		    !override_wanted(there, server, overrides, n))
			*there = (struct fake_override){ 0 };
	}
	return ret;
}

struct datapath_amount *fake_override(struct datapath *dp, __u32 server, __u32 slot, __u8 key, const char *subject)
{
	struct fake_override *found = find_override(dp, weir_limit_index(server, slot), key_subject(dp, key, subject));

	return found ? &found->amount : NULL;
}

int datapath_limit_counts(struct datapath *dp, __u32 server, __u32 slot, struct weir_limit_counts *counts,
			  struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	int ret = fake_fails(__func__, err);

	if (!ret)
		*counts = dp->servers[server].counts[slot];
	return ret;
}

/* Of this thread's CPU. */
static void spend_ms(__u64 ms)
{
	__u64 until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ms * WEIR_NS_PER_MS;

	while (ms && clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		;
}

int datapath_in_flight(struct datapath *dp, __u32 server, __u32 n, __u64 *taken, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel_read();
	int ret = fake_fails(__func__, err);

	spend_ms(dp->taken_ms);
	for (__u32 i = 0; i < n && !ret; i++)
		memcpy(taken + i * WEIR_SERVER_LIMITS, dp->servers[server + i].taken, sizeof(dp->servers[0].taken));
	return ret;
}

__u32 datapath_in_flight_of(struct datapath *dp, __u32 server, __u32 slot, __u32 epoch, __u64 subject)
{
	(void)dp;
	(void)server;
	(void)slot;
	(void)epoch;
	(void)subject;
	return 0;
}

int datapath_rules_set(struct datapath *dp, __u32 server, const struct weir_rules *rules,
		       const struct datapath_vector *vectors, size_t n_vectors, const struct datapath_source *sources,
		       size_t n_sources, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();
	int ret = fake_fails(__func__, err);

	(void)vectors;
	(void)sources;
	if (ret)
		return ret;
	dp->writes++;
	dp->servers[server].has_rules = rules;
	dp->servers[server].rules = rules ? *rules : (struct weir_rules){ 0 };
	dp->servers[server].n_vectors = n_vectors;
	dp->servers[server].n_sources = n_sources;
	return 0;
}
