/* SPDX-License-Identifier: GPL-2.0 */
/* Who is known: trusted proxies and balancers, groups and users that settings name, tokens, addresses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/map_sync.h"

/* The keys and values of a map, as many as there is room for. */
struct pairs {
	char *keys, *values;
};

static void pairs_free(struct pairs *pairs)
{
	free(pairs->keys);
	free(pairs->values);
}
#define CLEANUP_PAIRS __attribute__((cleanup(pairs_free)))

static int pairs_make(struct pairs *pairs, const struct map_range *range, size_t n)
{
	pairs->keys = calloc(n + 1, range->key_size);
	pairs->values = calloc(n + 1, range->value_size);
	return pairs->keys && pairs->values ? 0 : -ENOMEM;
}

static void pairs_put(const struct pairs *pairs, const struct map_range *range, size_t i, const void *key,
		      const void *value)
{
	memcpy(pairs->keys + i * range->key_size, key, range->key_size);
	memcpy(pairs->values + i * range->value_size, value, range->value_size);
}

static int pairs_sync(struct datapath *dp, const struct map_range *range, const struct pairs *pairs, size_t n)
{
	return map_sync(dp, range, &(struct map_entries){ pairs->keys, pairs->values, n });
}

/* --- names */

static bool is_subject_of(const void *key, const void *value, const void *slot)
{
	(void)value;
	return ((const struct weir_subject_key *)key)->server == *(const __u32 *)slot;
}

static struct map_range subjects_of(const __u32 *slot, enum datapath_part part, int fd, __u32 value_size)
{
	return (struct map_range){ .part = part,
				   .fd = fd,
				   .key_size = sizeof(struct weir_subject_key),
				   .value_size = value_size,
				   .ours = is_subject_of,
				   .arg = slot };
}

static struct weir_subject_key subject_key(__u32 slot, __u64 subject)
{
	return (struct weir_subject_key){ .server = slot, .subject = subject };
}

int datapath_groups_set(struct datapath *dp, __u32 slot, const struct datapath_group *groups, size_t n,
			struct error *err)
{
	const struct map_range range = subjects_of(&slot, DATAPATH_groups, dp->maps.groups, sizeof(groups->bit));
	CLEANUP_PAIRS struct pairs pairs = {};
	int ret = pairs_make(&pairs, &range, n);

	for (size_t i = 0; i < n && !ret; i++) {
		struct weir_subject_key key = subject_key(slot, groups[i].subject);

		pairs_put(&pairs, &range, i, &key, &groups[i].bit);
	}
	ret = ret ?: pairs_sync(dp, &range, &pairs, n);
	return ret ? datapath_map_failed(err, ret, "groups") : 0;
}

int datapath_tokens_set(struct datapath *dp, __u32 slot, const struct datapath_token *tokens, size_t n,
			struct error *err)
{
	const struct map_range range = subjects_of(&slot, DATAPATH_tokens, dp->maps.tokens, sizeof(tokens->principal));
	CLEANUP_PAIRS struct pairs pairs = {};
	int ret = pairs_make(&pairs, &range, n);

	for (size_t i = 0; i < n && !ret; i++) {
		struct weir_subject_key key = subject_key(slot, tokens[i].subject);

		pairs_put(&pairs, &range, i, &key, &tokens[i].principal);
	}
	ret = ret ?: pairs_sync(dp, &range, &pairs, n);
	return ret ? datapath_map_failed(err, ret, "tokens") : 0;
}

/* --- networks */

static bool is_network_of(const void *key, const void *value, const void *slot)
{
	(void)value;
	return ((const struct weir_proxy_key *)key)->server == *(const __u32 *)slot;
}

static struct map_range networks_of(const __u32 *slot, enum datapath_part part, int fd, __u32 value_size)
{
	return (struct map_range){ .part = part,
				   .fd = fd,
				   .key_size = sizeof(struct weir_proxy_key),
				   .value_size = value_size,
				   .ours = is_network_of,
				   .arg = slot };
}

/* Bits behind the prefix are 0: of two keys that are one to the trie, it would keep either. */
static struct weir_proxy_key network_key(__u32 slot, const struct datapath_cidr *cidr)
{
	struct weir_proxy_key key = { .prefixlen = 32 + cidr->bits, .server = slot };

	memcpy(key.address, cidr->address, (cidr->bits + 7) / 8);
	if (cidr->bits % 8)
		key.address[cidr->bits / 8] &= 0xff << (8 - cidr->bits % 8);
	return key;
}

/* These peers of a slot, and no others, are in the trie. */
static int peers_set(struct datapath *dp, const struct map_range *range, __u32 slot, const struct datapath_cidr *peers,
		     size_t n)
{
	CLEANUP_PAIRS struct pairs pairs = {};
	int ret = pairs_make(&pairs, range, n);
	const __u8 one = 1;

	for (size_t i = 0; i < n && !ret; i++) {
		struct weir_proxy_key key = network_key(slot, &peers[i]);

		pairs_put(&pairs, range, i, &key, &one);
	}
	return ret ?: pairs_sync(dp, range, &pairs, n);
}

int datapath_proxies_set(struct datapath *dp, __u32 slot, const struct datapath_cidr *proxies, size_t n,
			 struct error *err)
{
	const struct map_range range = networks_of(&slot, DATAPATH_proxies, dp->maps.proxies, sizeof(__u8));
	int ret = peers_set(dp, &range, slot, proxies, n);

	return ret ? datapath_map_failed(err, ret, "proxies") : 0;
}

int datapath_balancers_set(struct datapath *dp, __u32 slot, const struct datapath_cidr *balancers, size_t n,
			   struct error *err)
{
	const struct map_range range = networks_of(&slot, DATAPATH_balancers, dp->maps.balancers, sizeof(__u8));
	int ret = peers_set(dp, &range, slot, balancers, n);

	return ret ? datapath_map_failed(err, ret, "balancers") : 0;
}

int datapath_addresses_set(struct datapath *dp, __u32 slot, const struct datapath_address *addresses, size_t n,
			   struct error *err)
{
	const struct map_range range = networks_of(&slot, DATAPATH_addresses, dp->maps.addresses,
						   sizeof(addresses->principal));
	CLEANUP_PAIRS struct pairs pairs = {};
	int ret = pairs_make(&pairs, &range, n);

	for (size_t i = 0; i < n && !ret; i++) {
		struct weir_proxy_key key = network_key(slot, &addresses[i].cidr);

		pairs_put(&pairs, &range, i, &key, &addresses[i].principal);
	}
	ret = ret ?: pairs_sync(dp, &range, &pairs, n);
	return ret ? datapath_map_failed(err, ret, "addresses") : 0;
}
