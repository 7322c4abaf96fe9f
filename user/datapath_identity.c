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

/* Drops the keys of a slot whose subjects are not among these, which are sorted. */
static int subjects_prune(int fd, __u32 value_size, __u32 slot, const __u64 *wanted, size_t n)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret = map_cursor_open(&cursor, fd, sizeof(struct weir_subject_key), value_size);

	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_subject_key *keys = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n; i++) {
			if (keys[i].server == slot &&
			    !bsearch(&keys[i].subject, wanted, n, sizeof(*wanted), compare_subjects))
				bpf_map_delete_elem(fd, &keys[i]);
		}
	}
	return ret;
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

/*
 * Drops the keys of a slot that are not among these, which are sorted. All of them are read before any is deleted: a trie
 * cannot be read on from a key that is gone.
 */
static int networks_prune(int fd, __u32 value_size, __u32 max, __u32 slot, const struct weir_proxy_key *wanted,
			  size_t n)
{
	CLEANUP_FREE struct weir_proxy_key *stale = calloc(max, sizeof(*stale));
	CLEANUP_CURSOR struct map_cursor cursor = {};
	size_t n_stale = 0;
	int ret = map_cursor_open(&cursor, fd, sizeof(*stale), value_size);

	if (ret || !stale)
		return -ENOMEM;
	while ((ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_proxy_key *keys = cursor.keys;

		for (__u32 i = 0; i < cursor.n; i++) {
			if (keys[i].server == slot && n_stale < max &&
			    !bsearch(&keys[i], wanted, n, sizeof(*wanted), compare_networks))
				stale[n_stale++] = keys[i];
		}
	}
	for (size_t i = 0; i < n_stale && !ret; i++) {
		if (bpf_map_delete_elem(fd, &stale[i]) && errno != ENOENT)
			ret = -errno;
	}
	return ret;
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
	return networks_prune(fd, sizeof(one), WEIR_MAX_PROXIES, slot, keys, n);
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
		ret = networks_prune(dp->maps.addresses, sizeof(addresses->principal), WEIR_MAX_ADDRESSES, slot, keys,
				     n);
	}
	return ret ? datapath_map_failed(err, ret, "addresses") : 0;
}
