/* SPDX-License-Identifier: GPL-2.0 */
/* What limits allow single subjects. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/map_sync.h"

static struct weir_override_key override_key(__u32 limit, __u64 subject)
{
	return (struct weir_override_key){ .limit = limit, .subject = subject };
}

bool datapath_override_exists(struct datapath *dp, __u32 limit, __u64 subject)
{
	struct weir_override_key key = override_key(limit, subject);
	struct weir_amount value;

	return !bpf_map_lookup_elem(dp->maps.overrides, &key, &value);
}

static bool is_of_limit(const void *key, const void *value, const void *arg)
{
	const struct weir_override_key *override = key;

	(void)value;
	return override->limit == *(const __u32 *)arg;
}

int datapath_overrides_drop(struct datapath *dp, __u32 limit)
{
	return map_drop_if(dp->maps.overrides, sizeof(struct weir_override_key), sizeof(struct weir_amount),
			   is_of_limit, &limit);
}

/* What the subject's amount becomes. */
static struct weir_amount override_value(const struct weir_override_key *key, const struct weir_amount *before,
					 const struct datapath_amount *wanted)
{
	struct weir_amount amount = datapath_amount_pushed(before, wanted, DATAPATH_OF_OVERRIDE);

	amount.seal = weir_override_seal(&amount, key->limit, key->subject);
	return amount;
}

/*
 * The limit says that it has overrides: before the first one is there, for no program looks for one before. It is the overrides' own,
 * and not counted as a change of the limit. *limit: as it is then.
 */
static int limit_overridden(struct datapath *dp, __u32 index, struct weir_limit *limit, struct error *err)
{
	if (bpf_map_lookup_elem(dp->maps.limits, &index, limit))
		return error_set(err, -ENOENT, "the limit of an override is not there");
	if (limit->terms.flags & WEIR_LIMIT_OVERRIDDEN)
		return 0;
	limit->terms.flags |= WEIR_LIMIT_OVERRIDDEN;
	limit->terms.amount.seal = weir_terms_seal(&limit->terms, index);
	if (bpf_map_update_elem(dp->maps.limits, &index, limit, BPF_EXIST))
		return datapath_map_failed(err, -errno, "limits");
	return datapath_limits_changed(dp, err);
}

/* --- single ones */

/* A new override goes on from the rates that the subject had until now. */
static int override_put(struct datapath *dp, const struct weir_override_key *key, const struct weir_limit *limit,
			const struct datapath_amount *amount, struct error *err)
{
	struct datapath_changes *written = &dp->written.of[DATAPATH_overrides];
	struct weir_amount old = limit->terms.amount, pushed;
	bool there = !bpf_map_lookup_elem(dp->maps.overrides, key, &old);

	pushed = override_value(key, &old, amount);
	if (there && !memcmp(&pushed, &old, sizeof(pushed)))
		return 0;
	*(there ? &written->changed : &written->added) += 1;
	if (bpf_map_update_elem(dp->maps.overrides, key, &pushed, BPF_ANY))
		return datapath_map_failed(err, -errno, "overrides");
	return 0;
}

int datapath_override_set(struct datapath *dp, __u32 server, __u32 slot, __u64 subject,
			  const struct datapath_amount *amount, struct error *err)
{
	struct weir_override_key key = override_key(weir_limit_index(server, slot), subject);
	struct weir_limit limit;

	return limit_overridden(dp, key.limit, &limit, err) ?: override_put(dp, &key, &limit, amount, err);
}

/* The bucket gets what it gained at the override's rate before the default's takes its place. */
static int override_drop(struct datapath *dp, const struct weir_override_key *key, struct error *err)
{
	struct weir_override_end end = { .limit = key->limit, .subject = key->subject, .now_ns = datapath_now_ns() };
	int ret = datapath_run(dp->override_end_fd, &end, sizeof(end));

	return ret ? error_set(err, ret, "ending an override: %s", strerror(-ret)) : 0;
}

/* Buckets are tidied once: that looks through all of them. */
int datapath_overrides_delete(struct datapath *dp, __u32 server, __u32 slot, const __u64 *subjects, size_t n,
			      struct error *err)
{
	__u32 index = weir_limit_index(server, slot);
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++) {
		struct weir_override_key key = override_key(index, subjects[i]);
		bool there = datapath_override_exists(dp, index, subjects[i]);

		ret = override_drop(dp, &key, err);
		dp->written.of[DATAPATH_overrides].dropped += there && !ret;
	}
	if (ret || !n)
		return ret;
	ret = datapath_buckets_tidy(dp, index);
	return ret ? datapath_map_failed(err, ret, "buckets") : 0;
}

/* --- all */

struct owner {
	__u32 server;
	const struct datapath_slots *slots;
};

static bool is_of_owner(const void *key, const void *value, const void *arg)
{
	const struct weir_override_key *override = key;
	const struct owner *owner = arg;

	(void)value;
	return override->limit / WEIR_SERVER_LIMITS == owner->server &&
	       datapath_slots_have(owner->slots, override->limit % WEIR_SERVER_LIMITS);
}

static void change_amount(const void *key, const void *there, const void *wanted, void *out)
{
	const struct weir_amount *amount = wanted;
	const struct datapath_amount now = {
		.set = true,
		.deny = amount->flags & WEIR_LIMIT_DENY,
		.per_ns = amount->history.rates[0].per_ns,
		.burst = amount->history.rates[0].burst,
		.seats = amount->seats,
	};

	*(struct weir_amount *)out = override_value(key, there, &now);
}

/* What each would be if it were not there yet. */
static int make_amounts(struct datapath *dp, __u32 server, const struct datapath_override *overrides, size_t n,
			struct weir_override_key *keys, struct weir_amount *amounts)
{
	struct weir_limit limit;

	for (size_t i = 0; i < n; i++) {
		__u32 index = weir_limit_index(server, overrides[i].slot);

		if ((!i || keys[i - 1].limit != index) && bpf_map_lookup_elem(dp->maps.limits, &index, &limit))
			return -errno;
		keys[i] = override_key(index, overrides[i].subject);
		amounts[i] = override_value(&keys[i], &limit.terms.amount, &overrides[i].amount);
	}
	return 0;
}

/* Of limits that stand together. */
static int limits_overridden(struct datapath *dp, const struct weir_override_key *keys, size_t n, struct error *err)
{
	struct weir_limit limit;
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++) {
		if (!i || keys[i - 1].limit != keys[i].limit)
			ret = limit_overridden(dp, keys[i].limit, &limit, err);
	}
	return ret;
}

static int drop_gone(struct datapath *dp, const struct map_diff *diff, struct error *err)
{
	const struct weir_override_key *gone = (const void *)diff->gone;
	struct datapath_slots tidied = {};
	int ret = 0;

	for (size_t i = 0; i < diff->n_gone && !ret; i++)
		ret = override_drop(dp, &gone[i], err);
	for (size_t i = 0; i < diff->n_gone && !ret; i++) {
		__u32 slot = gone[i].limit % WEIR_SERVER_LIMITS;

		if (datapath_slots_have(&tidied, slot))
			continue;
		datapath_slots_add(&tidied, slot);
		ret = datapath_buckets_tidy(dp, gone[i].limit);
		if (ret)
			return datapath_map_failed(err, ret, "buckets");
	}
	return ret;
}

int datapath_overrides_set(struct datapath *dp, __u32 server, const struct datapath_slots *slots,
			   const struct datapath_override *overrides, size_t n, struct error *err)
{
	CLEANUP_FREE struct weir_override_key *keys = calloc(n + 1, sizeof(*keys));
	CLEANUP_FREE struct weir_amount *amounts = calloc(n + 1, sizeof(*amounts));
	CLEANUP_DIFF struct map_diff diff = {};
	const struct owner owner = { server, slots };
	const struct map_range range = { .part = DATAPATH_overrides,
					 .fd = dp->maps.overrides,
					 .key_size = sizeof(*keys),
					 .value_size = sizeof(*amounts),
					 .ours = is_of_owner,
					 .arg = &owner,
					 .become = change_amount };
	int ret = keys && amounts ? make_amounts(dp, server, overrides, n, keys, amounts) : -ENOMEM;
	bool full;

	if (ret)
		return datapath_map_failed(err, ret, "overrides");
	ret = limits_overridden(dp, keys, n, err);
	if (ret)
		return ret;
	ret = map_compare(&range, &(struct map_entries){ keys, amounts, n }, &diff) ?: map_put(dp, &range, &diff);
	full = ret == -E2BIG;
	if (ret && !full)
		return datapath_map_failed(err, ret, "overrides");
	ret = drop_gone(dp, &diff, err);
	if (ret || !full)
		return ret;
	ret = map_put_all(&range, &diff);
	return ret ? datapath_map_failed(err, ret, "overrides") : 0;
}
