/* SPDX-License-Identifier: GPL-2.0 */
#include "rules/put.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "model/key.h"
#include "rules/identity.h"
#include "rules/server_rules.h"

#define SWALLOW_MAX 65536 /* bytes of a shed request's body; a longer one costs its connection */

__u32 server_own_flags(const struct server *server)
{
	__u32 flags = WEIR_SERVER_ACTIVE;

	flags |= server->paused ? WEIR_SERVER_PAUSED : 0;
	flags |= server->dry_run ? WEIR_SERVER_DRY_RUN : 0;
	flags |= server->draining ? WEIR_SERVER_DRAINING : 0;
	flags |= server->n_interfaces ? WEIR_SERVER_SOME_INTERFACES : 0;
	flags |= server->framing == FRAMING_PASS ? WEIR_SERVER_PASS_AMBIGUOUS : 0;
	flags |= server->bodies == BODIES_UNREAD ? WEIR_SERVER_BODIES_UNREAD : 0;
	flags |= server->bodies == BODIES_READ ? WEIR_SERVER_BODIES_READ : 0;
	flags |= server->identity.exempt_users.n ? WEIR_SERVER_KNOWS_USERS : 0;
	flags |= server->identity.addresses.n || server->identity.address_file ? WEIR_SERVER_HAS_ADDRESSES : 0;
	flags |= server->n_balancers ? WEIR_SERVER_PREAMBLES : 0;
	flags |= server->when_full != FULL_OPEN ? WEIR_SERVER_FULL_REFUSES : 0;
	flags |= server->when_full == FULL_KNOWN ? WEIR_SERVER_FULL_KNOWN : 0;
	return flags;
}

int server_put_groups(struct datapath *dp, __u32 slot, const struct server *server, struct error *err)
{
	CLEANUP_FREE struct datapath_group *groups = NULL;
	int n = identity_group_keys(&server->identity, dp, &groups);

	if (n < 0)
		return error_set(err, n, "out of memory");
	return datapath_groups_set(dp, slot, groups, n, err);
}

int server_put_settings(struct datapath *dp, __u32 slot, const struct server *server, __u32 flags, struct error *err)
{
	struct weir_server kernel_side = {
		.flags = flags,
		.swallow_max = SWALLOW_MAX,
		.list_width = server->list_width,
		.object_bytes = server->list_object_bytes,
		.retry_max_s = server->max_retry_after,
		.hold_max_s = server->hold_max,
	};

	identity_reading(&server->identity, &kernel_side.reading);
	tenancy_apply(&server->tenancy, dp, &kernel_side.reading);
	identity_known_groups(&server->identity, &kernel_side.groups);
	kernel_side.newcomers = weir_rate_always(server->identity.newcomers_per_ns, server->identity.newcomers);
	return server_put_groups(dp, slot, server, err)						     ?:
		       datapath_balancers_set(dp, slot, server->balancers, server->n_balancers, err) ?:
		       datapath_server_set(dp, slot, &kernel_side, server->listens, server->n_listens, server->proxies,
					   server->n_proxies, err);
}

/* --- limits */

int server_put_limit(struct datapath *dp, __u32 slot, const struct server *server, const struct limit *limit,
		     struct error *err)
{
	struct datapath_limit kernel_side;

	server_kernel_limit(server, limit, &kernel_side);
	return datapath_limit_set(dp, slot, limit_slot(limit), &kernel_side, err);
}

int server_put_override(struct datapath *dp, __u32 slot, const struct limit *limit, const struct override *override,
			struct error *err)
{
	__u64 subject = key_subject(dp, limit->key, override->subject);

	return datapath_override_set(dp, slot, limit_slot(limit), subject, &override->amount, err);
}

static int put_level(struct datapath *dp, __u32 slot, const struct server *server, const struct priority_level *level,
		     struct error *err)
{
	struct datapath_limit kernel_side;

	if (level->exempt)
		return 0;
	server_kernel_level(server, level, &kernel_side);
	return datapath_limit_set(dp, slot, limit_slot_of_number(level->number), &kernel_side, err);
}

int server_put_rules(struct datapath *dp, __u32 slot, const struct server *server, struct error *err)
{
	CLEANUP_RULES struct rules *rules = NULL;
	int ret = server_rules(server, dp, &rules, err);

	if (ret)
		return ret;
	if (!rules)
		return datapath_rules_set(dp, slot, NULL, NULL, 0, NULL, 0, err);
	return datapath_rules_set(dp, slot, &rules->value, rules->vectors, rules->n_vectors, rules->sources,
				  rules->n_sources, err);
}

static size_t count_overrides(const struct server *server)
{
	size_t n = 0;

	for (size_t i = 0; i < server->n_limits; i++)
		n += server->limits[i].n_overrides;
	return n;
}

static int put_overrides(struct datapath *dp, __u32 slot, const struct server *server,
			 const struct datapath_slots *slots, struct error *err)
{
	CLEANUP_FREE struct datapath_override *overrides = calloc(count_overrides(server) + 1, sizeof(*overrides));
	size_t n = 0;

	if (!overrides)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < server->n_limits; i++) {
		const struct limit *limit = &server->limits[i];

		for (size_t j = 0; j < limit->n_overrides; j++)
			overrides[n++] = (struct datapath_override){
				.slot = limit_slot(limit),
				.subject = key_subject(dp, limit->key, limit->overrides[j].subject),
				.amount = limit->overrides[j].amount,
			};
	}
	return datapath_overrides_set(dp, slot, slots, overrides, n, err);
}

/* --- changed overrides */

/* The limit that it was, if its overrides are in the kernel: those of one that has another place or other buckets are not. */
static const struct limit *limit_before(const struct server *from, const struct limit *limit)
{
	const struct limit *before = server_limit(from, limit->name);

	return before && before->number == limit->number && before->key == limit->key && before->keys == limit->keys ?
		       before :
		       NULL;
}

static int drop_overrides(struct datapath *dp, __u32 slot, const struct limit *limit, const struct overrides_diff *diff,
			  struct error *err)
{
	CLEANUP_FREE __u64 *subjects = calloc(diff->n_gone + 1, sizeof(*subjects));

	if (!subjects)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < diff->n_gone; i++)
		subjects[i] = key_subject(dp, limit->key, diff->gone[i]->subject);
	return datapath_overrides_delete(dp, slot, limit_slot(limit), subjects, diff->n_gone, err);
}

static int change_overrides_of(struct datapath *dp, __u32 slot, const struct limit *from, const struct limit *to,
			       struct error *err)
{
	CLEANUP_OVERRIDES_DIFF struct overrides_diff diff = { 0 };
	int ret = limit_overrides_diff(from, to, &diff);

	if (ret)
		return error_set(err, ret, "out of memory");
	for (size_t i = 0; i < diff.n_put && !ret; i++)
		ret = server_put_override(dp, slot, to, diff.put[i], err);
	return !ret && diff.n_gone ? drop_overrides(dp, slot, to, &diff, err) : ret;
}

static int change_all(struct datapath *dp, __u32 slot, const struct server *from, const struct server *to,
		      struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < to->n_limits && !ret; i++)
		ret = change_overrides_of(dp, slot, limit_before(from, &to->limits[i]), &to->limits[i], err);
	return ret;
}

static int drop_gone(struct datapath *dp, __u32 slot, const struct server *from, const struct server *to,
		     struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < to->n_limits && !ret; i++) {
		CLEANUP_OVERRIDES_DIFF struct overrides_diff diff = { 0 };

		ret = limit_overrides_diff(limit_before(from, &to->limits[i]), &to->limits[i], &diff);
		ret = ret ? error_set(err, ret, "out of memory") : drop_overrides(dp, slot, &to->limits[i], &diff, err);
	}
	return ret;
}

/* Where there is no room for both, what is gone goes first. */
static int change_overrides(struct datapath *dp, __u32 slot, const struct server *from, const struct server *to,
			    struct error *err)
{
	int ret = change_all(dp, slot, from, to, err);

	return ret == -E2BIG ? drop_gone(dp, slot, from, to, err) ?: change_all(dp, slot, from, to, err) : ret;
}

/* --- all limits */

/* from: NULL where it is not known what the kernel has. */
static int set_overrides(struct datapath *dp, __u32 slot, const struct server *from, const struct server *to,
			 const struct datapath_slots *slots, struct error *err)
{
	return from ? change_overrides(dp, slot, from, to, err) : put_overrides(dp, slot, to, slots, err);
}

/* Rules come into force when the limits that they name are there; what is gone goes after them, or before where overrides have no room. */
static int put_limits(struct datapath *dp, __u32 slot, const struct server *from, const struct server *server,
		      struct error *err)
{
	struct datapath_slots slots = { 0 };
	int ret = 0;

	if (server->draining)
		return 0;
	for (size_t i = 0; i < server->n_limits && !ret; i++) {
		datapath_slots_add(&slots, limit_slot(&server->limits[i]));
		ret = server_put_limit(dp, slot, server, &server->limits[i], err);
	}
	for (size_t i = 0; i < server->priorities.n_levels && !ret; i++) {
		const struct priority_level *level = &server->priorities.levels[i];

		if (!level->exempt)
			datapath_slots_add(&slots, limit_slot_of_number(level->number));
		ret = put_level(dp, slot, server, level, err);
	}
	ret = ret ?: set_overrides(dp, slot, from, server, &slots, err);
	if (ret == -E2BIG)
		ret = datapath_limits_keep(dp, slot, &slots, err) ?: set_overrides(dp, slot, from, server, &slots, err);
	return ret ?: server_put_rules(dp, slot, server, err) ?: datapath_limits_keep(dp, slot, &slots, err);
}

int server_put_limits(struct datapath *dp, __u32 slot, const struct server *server, struct error *err)
{
	return put_limits(dp, slot, NULL, server, err);
}

int server_change_limits(struct datapath *dp, __u32 slot, const struct server *from, const struct server *to,
			 struct error *err)
{
	return put_limits(dp, slot, from, to, err);
}
