/* SPDX-License-Identifier: GPL-2.0 */
#include "heads.h"

#include <stdlib.h>
#include <string.h>

#include "weir.skel.h"
#include "weir/http/head_cache.h"

static struct weir_reading how;

static const struct weir_digest_keys *digest_keys(void)
{
	return (const struct weir_digest_keys *)dp->skeleton->rodata_keys->digest_keys;
}

void heads_look(void)
{
	struct weir_server server;
	__u32 zero = 0;

	assert_int_equal(bpf_map_lookup_elem(dp->maps.servers, &zero, &server), 0);
	how = server.reading;
}

__u64 head_digest(const char *head)
{
	struct weir_request r;

	weir_request_start(&r);
	for (const char *byte = head; *byte; byte++)
		weir_request_byte(&r, &how, *byte);
	assert_true(weir_request_ended(&r));
	return weir_request_digest(&r, digest_keys());
}

void head_fill(char *head, size_t length, const char *begin)
{
	static const char line[] = "A-Name: a value that means nothing\r\n";
	size_t n = strlen(begin);

	memcpy(head, begin, n);
	for (; n + 2 * strlen(line) < length; n += strlen(line))
		memcpy(head + n, line, strlen(line));
	assert_true(length >= n + strlen("A: \r\n\r\n"));
	memset(head + n, '-', length - n);
	memcpy(head + n, "A: ", 3);
	memcpy(head + length - 4, "\r\n\r\n", 5);
}

void requests_poison(void)
{
	const int fd = bpf_map__fd(dp->skeleton->maps.request_cache), cpus = libbpf_num_possible_cpus();
	struct weir_cached_request *cached = calloc(cpus, sizeof(*cached));
	__u32 place;

	assert_non_null(cached);
	for (place = 0; !bpf_map_lookup_elem(fd, &place, cached); place++) {
		for (int cpu = 0; cpu < cpus; cpu++) {
			cached[cpu].request.user_subject ^= 1;
			cached[cpu].digest = 0;
		}
		assert_int_equal(bpf_map_update_elem(fd, &place, cached, BPF_ANY), 0);
	}
	assert_true(place > 1);
	free(cached);
}

/* Of kept heads, their keys are first. */
static bool is_kept(const struct bpf_map *cache, __u64 seal, const char *payload)
{
	const __u8 *begin = (const __u8 *)payload, *end = begin + strlen(payload);
	const __u64 key = weir_cache_key(digest_keys(), seal, begin, end, strlen(payload));
	const size_t size = (bpf_map__value_size(cache) + 7) / 8 * 8;
	const int cpus = libbpf_num_possible_cpus();
	const __u32 place = key % bpf_map__max_entries(cache);
	char *cached = calloc(cpus, size);
	bool kept = false;

	assert_non_null(cached);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(cache), &place, cached), 0);
	for (int cpu = 0; key && cpu < cpus; cpu++)
		kept |= !memcmp(cached + cpu * size, &key, sizeof(key));
	free(cached);
	return kept;
}

bool request_is_kept(const char *payload)
{
	return is_kept(dp->skeleton->maps.request_cache, how.seal, payload);
}

bool answer_is_kept(const char *payload)
{
	return is_kept(dp->skeleton->maps.response_cache, 0, payload);
}
