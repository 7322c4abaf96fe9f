/* SPDX-License-Identifier: GPL-2.0 */
/* Who is known: trusted proxies and balancers, groups and users that settings name, tokens, addresses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath_private.h"

static struct weir_subject_key subject_key(__u32 slot, __u64 subject)
{
	return (struct weir_subject_key){ .server = slot, .subject = subject };
}

static int compare_subjects(const void *a, const void *b)
{
	__u64 left = *(const __u64 *)a, right = *(const __u64 *)b;

	return left < right ? -1 : left > right;
}

/* A slot, and what it is to have, which is sorted. */
struct wanted {
	__u32 slot;
	const void *items;
	size_t n;
};

static bool is_other_subject(const void *key, const void *value, const void *arg)
{
	const struct weir_subject_key *entry = key;
	const struct wanted *wanted = arg;

	(void)value;
	return entry->server == wanted->slot &&
	       !bsearch(&entry->subject, wanted->items, wanted->n, sizeof(entry->subject), compare_subjects);
}

/* Drops the keys of a slot whose subjects are not among these, which are sorted. */
static int subjects_prune(int fd, __u32 value_size, __u32 slot, const __u64 *subjects, size_t n)
{
	const struct wanted wanted = { slot, subjects, n };

	return map_drop_if(fd, sizeof(struct weir_subject_key), value_size, is_other_subject, &wanted);
}

int datapath_groups_set(struct datapath *dp, __u32 slot, const struct datapath_group *groups, size_t n,
			struct error *err)
{
	CLEANUP_FREE __u64 *subjects = calloc(n + 1, sizeof(*subjects));
	int ret = subjects ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !ret; i++) {
		struct weir_subject_key key = subject_key(slot, groups[i].subject);

		subjects[i] = groups[i].subject;
		ret = bpf_map_update_elem(dp->maps.groups, &key, &groups[i].bit, BPF_ANY);
	}
	if (!ret) {
		qsort(subjects, n, sizeof(*subjects), compare_subjects);
		ret = subjects_prune(dp->maps.groups, sizeof(groups->bit), slot, subjects, n);
	}
	return ret ? datapath_map_failed(err, ret, "groups") : 0;
}

int datapath_tokens_set(struct datapath *dp, __u32 slot, const struct datapath_token *tokens, size_t n,
			struct error *err)
{
	CLEANUP_FREE __u64 *subjects = calloc(n + 1, sizeof(*subjects));
	int ret = subjects ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !ret; i++) {
		struct weir_subject_key key = subject_key(slot, tokens[i].subject);

		subjects[i] = tokens[i].subject;
		ret = bpf_map_update_elem(dp->maps.tokens, &key, &tokens[i].principal, BPF_ANY);
	}
	if (!ret) {
		qsort(subjects, n, sizeof(*subjects), compare_subjects);
		ret = subjects_prune(dp->maps.tokens, sizeof(tokens->principal), slot, subjects, n);
	}
	return ret ? datapath_map_failed(err, ret, "tokens") : 0;
}

/* --- networks */

static struct weir_proxy_key network_key(__u32 slot, const struct datapath_cidr *cidr)
{
	struct weir_proxy_key key = { .prefixlen = 32 + cidr->bits, .server = slot };

	memcpy(key.address, cidr->address, sizeof(key.address));
	return key;
}

static int compare_networks(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct weir_proxy_key));
}

static bool is_other_network(const void *key, const void *value, const void *arg)
{
	const struct weir_proxy_key *network = key;
	const struct wanted *wanted = arg;

	(void)value;
	return network->server == wanted->slot &&
	       !bsearch(network, wanted->items, wanted->n, sizeof(*network), compare_networks);
}

/* Drops the keys of a slot that are not among these, which are sorted. */
static int networks_prune(int fd, __u32 value_size, __u32 slot, const struct weir_proxy_key *networks, size_t n)
{
	const struct wanted wanted = { slot, networks, n };

	return map_drop_of_trie_if(fd, sizeof(struct weir_proxy_key), value_size, is_other_network, &wanted);
}

/* These peers of a slot, and no others, are in the trie. */
static int peers_set(int fd, __u32 slot, const struct datapath_cidr *peers, size_t n)
{
	CLEANUP_FREE struct weir_proxy_key *keys = calloc(n + 1, sizeof(*keys));
	const __u8 one = 1;
	int ret = keys ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !ret; i++) {
		keys[i] = network_key(slot, &peers[i]);
		ret = bpf_map_update_elem(fd, &keys[i], &one, BPF_ANY);
	}
	if (ret)
		return ret;
	qsort(keys, n, sizeof(*keys), compare_networks);
	return networks_prune(fd, sizeof(one), slot, keys, n);
}

int datapath_proxies_set(struct datapath *dp, __u32 slot, const struct datapath_cidr *proxies, size_t n,
			 struct error *err)
{
	int ret = peers_set(dp->maps.proxies, slot, proxies, n);

	return ret ? datapath_map_failed(err, ret, "proxies") : 0;
}

int datapath_balancers_set(struct datapath *dp, __u32 slot, const struct datapath_cidr *balancers, size_t n,
			   struct error *err)
{
	int ret = peers_set(dp->maps.balancers, slot, balancers, n);

	return ret ? datapath_map_failed(err, ret, "balancers") : 0;
}

int datapath_addresses_set(struct datapath *dp, __u32 slot, const struct datapath_address *addresses, size_t n,
			   struct error *err)
{
	CLEANUP_FREE struct weir_proxy_key *keys = calloc(n + 1, sizeof(*keys));
	int ret = keys ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !ret; i++) {
		keys[i] = network_key(slot, &addresses[i].cidr);
		ret = bpf_map_update_elem(dp->maps.addresses, &keys[i], &addresses[i].principal, BPF_ANY);
	}
	if (!ret) {
		qsort(keys, n, sizeof(*keys), compare_networks);
		ret = networks_prune(dp->maps.addresses, sizeof(addresses->principal), slot, keys, n);
	}
	return ret ? datapath_map_failed(err, ret, "addresses") : 0;
}
