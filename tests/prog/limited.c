/* SPDX-License-Identifier: GPL-2.0 */
#include "weir/limit/penalty.h"

#include "limited.h"

#include <bpf/bpf.h>
#include <string.h>
#include <unistd.h>

const char get_pod[] = "GET /api/v1/namespaces/a/pods/x HTTP/1.1\r\nHost: x\r\n\r\n";
const char list_secrets[] = "GET /api/v1/namespaces/a/secrets HTTP/1.1\r\nHost: x\r\n\r\n";

static struct datapath_group known[WEIR_GROUPS_MAX];
static const char *known_names[WEIR_GROUPS_MAX];
static size_t n_known;

static __u64 name_subject(void *context, enum weir_name_kind kind, const void *bytes, size_t length)
{
	(void)context;
	return datapath_subject(dp, kind, bytes, length);
}

static int group_bit(void *context, const char *name)
{
	(void)context;
	for (size_t i = 0; i < n_known; i++) {
		if (!strcmp(known_names[i], name))
			return i;
	}
	assert_true(n_known < WEIR_GROUPS_MAX);
	known_names[n_known] = name;
	known[n_known].subject = datapath_subject(dp, WEIR_NAME_GROUP, name, strlen(name));
	known[n_known].bit = n_known;
	return n_known++;
}

int group_known(const char *name)
{
	int bit = group_bit(NULL, name);

	done(datapath_groups_set(dp, 0, known, n_known, &error));
	return bit;
}

static const struct rules_names names = { .subject = name_subject, .group = group_bit };

void rules_set(const struct rules_entry *entries, size_t n)
{
	CLEANUP_RULES struct rules *rules = NULL;

	n_known = 0;
	done(rules_compile(entries, n, &names, &rules, &error));
	done(datapath_groups_set(dp, 0, known, n_known, &error));
	done(datapath_rules_set(dp, 0, &rules->value, rules->vectors, rules->n_vectors, rules->sources,
				rules->n_sources, &error));
}

void rule_set(const char *json)
{
	CLEANUP_RULE struct rule rule = rule_of(json);

	rules_set(&(struct rules_entry){ .rules = &rule, .n = 1, .limit = SLOT }, 1);
}

struct datapath_limit rate_of(__u8 key, __u64 per_ns, __u64 burst)
{
	return (struct datapath_limit){ .kind = WEIR_LIMIT_RATE,
					.reason = WEIR_SHED_COMBINED,
					.key = key,
					.amount = { .set = true, .per_ns = per_ns, .burst = burst } };
}

void slot_set(const struct datapath_limit *limit)
{
	done(datapath_limit_set(dp, 0, SLOT, limit, &error));
}

struct weir_limit_counts counts(__u32 slot)
{
	struct weir_limit_counts sum;

	done(datapath_limit_counts(dp, 0, slot, &sum, &error));
	return sum;
}

__u64 tokens_left(__u32 slot)
{
	__u32 index = weir_limit_index(0, slot), id;
	struct weir_limit limit = {};
	struct weir_kept kept = {};
	__u64 subject = 0;
	int map;

	assert_int_equal(bpf_map_lookup_elem(dp->maps.buckets, &index, &id), 0);
	map = bpf_map_get_fd_by_id(id);
	assert_true(map >= 0);
	assert_int_equal(bpf_map_lookup_elem(map, &subject, &kept), 0);
	close(map);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.limits, &index, &limit), 0);
	return weir_bucket_tokens(&kept.bucket, &limit.terms.amount.history, datapath_now_ns()).high;
}

int client_says(bool ipv6, __u32 at, const char *text)
{
	return run(ingress,
		   &(struct spec){
			   .ipv6 = ipv6, .seq = CLIENT_NEXT + at, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = text });
}

int server_says(bool ipv6, __u32 at, __u32 acked, __u8 flags, const char *text)
{
	return run(egress, &(struct spec){ .ipv6 = ipv6,
					   .from_server = true,
					   .seq = SERVER_NEXT + at,
					   .ack = CLIENT_NEXT + acked,
					   .flags = flags,
					   .text = text });
}

bool passes(bool ipv6, const char *text)
{
	__u64 shed = counter(WEIR_SHED), passed = counter(WEIR_PASSED) + counter(WEIR_DRY_RUN_SHED);

	connect_ends(ipv6);
	client_says(ipv6, 0, text);
	passed = counter(WEIR_PASSED) + counter(WEIR_DRY_RUN_SHED) - passed;
	assert_int_equal(counter(WEIR_SHED) - shed + passed, 1);
	return passed;
}
