/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs have counted, and the names of those they counted. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "weir/base/subject.h"
#include "weir/limit/penalty.h"

#include "datapath/private.h"

/* Of each counter that stands for several: which. */
static const enum weir_reason together[][WEIR_TOGETHER_MAX] = {
#define X(name, first, second, third) [WEIR_##name - WEIR_REASON_COUNT] = { WEIR_##first, WEIR_##second, WEIR_##third },
	WEIR_TOGETHER(X)
#undef X
};

static void counter_add(__u64 sums[static WEIR_REASON_COUNT], __u32 counter, __u64 n)
{
	if (counter < WEIR_REASON_COUNT) {
		sums[counter] += n;
		return;
	}
	for (int i = 0; i < WEIR_TOGETHER_MAX; i++)
		sums[together[counter - WEIR_REASON_COUNT][i]] += n;
}

/* Those of a server stand one behind the other: all are read by one call. */
int datapath_counters(struct datapath *dp, __u32 slot, __u64 *counters, struct error *err)
{
	CLEANUP_FREE __u64 *each = calloc((size_t)dp->cpus * WEIR_COUNTER_COUNT, sizeof(*each));
	__u32 before = slot * WEIR_COUNTER_COUNT - 1, last, keys[WEIR_COUNTER_COUNT], n = WEIR_COUNTER_COUNT;
	__u64 sums[WEIR_REASON_COUNT] = {};

	if (!each)
		return error_set(err, -ENOMEM, "out of memory");
	if (bpf_map_lookup_batch(dp->maps.counters, slot ? &before : NULL, &last, keys, each, &n, NULL))
		return datapath_map_failed(err, -errno, "counters");
	for (__u32 counter = 0; counter < WEIR_COUNTER_COUNT; counter++)
		for (int cpu = 0; cpu < dp->cpus; cpu++)
			counter_add(sums, counter, each[(size_t)counter * dp->cpus + cpu]);
	memcpy(counters, sums, sizeof(sums));
	return 0;
}

int datapath_counters_clear(struct datapath *dp, __u32 slot, struct error *err)
{
	CLEANUP_FREE __u64 *zeros = calloc(dp->cpus, sizeof(*zeros));

	if (!zeros)
		return error_set(err, -ENOMEM, "out of memory");
	for (__u32 counter = 0; counter < WEIR_COUNTER_COUNT; counter++) {
		__u32 index = slot * WEIR_COUNTER_COUNT + counter;

		if (bpf_map_update_elem(dp->maps.counters, &index, zeros, BPF_ANY))
			return datapath_map_failed(err, -errno, "counters");
	}
	return 0;
}

static __u64 refusals(const struct datapath_subject_use *use)
{
	return use->shed + use->dry_run_shed;
}

/* Keeps the list sorted and at most n long; returns its new length. */
static size_t top_insert(struct datapath_subject_use *top, size_t used, size_t n,
			 const struct datapath_subject_use *use)
{
	size_t at = used;

	while (at && refusals(&top[at - 1]) < refusals(use))
		at--;
	if (at == n)
		return used;
	if (used < n)
		used++;
	memmove(&top[at + 1], &top[at], (used - at - 1) * sizeof(*top));
	top[at] = *use;
	return used;
}

static int top_of_limit(struct datapath *dp, __u32 server, __u32 slot, struct datapath_subject_use *top, size_t *used,
			size_t n)
{
	__u32 index = weir_limit_index(server, slot), id;
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret;

	if (bpf_map_lookup_elem(dp->maps.buckets, &index, &id))
		return errno == ENOENT ? 0 : -errno;
	CLEANUP_CLOSE int fd = datapath_map_by_id(id);
	if (fd < 0)
		return fd;
	ret = map_cursor_open(&cursor, fd, sizeof(__u64), sizeof(struct weir_kept));
	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_kept *kept = cursor.values;
		const __u64 *subjects = cursor.keys;

		ret = 0;
		for (__u32 i = 0; i < cursor.n; i++) {
			struct datapath_subject_use use = {
				.slot = slot,
				.subject = subjects[i],
				.passed = kept[i].bucket.passed,
				.shed = kept[i].bucket.shed,
				.dry_run_shed = kept[i].bucket.watched,
			};

			if (refusals(&use))
				*used = top_insert(top, *used, n, &use);
		}
	}
	return ret;
}

/* `total` has no subjects to compare: its count is WEIR_SHED_TOTAL. */
int datapath_top(struct datapath *dp, __u32 server, struct datapath_subject_use *top, size_t n, struct error *err)
{
	size_t used = 0;
	int ret = 0;

	for (__u32 slot = WEIR_BUILTIN_TOTAL + 1; slot < WEIR_SERVER_LIMITS && !ret && n; slot++)
		ret = top_of_limit(dp, server, slot, top, &used, n);
	return ret ? datapath_map_failed(err, ret, "buckets") : (int)used;
}

__u64 datapath_subject(const struct datapath *dp, enum weir_name_kind kind, const void *bytes, size_t length)
{
	struct weir_subject_hash hash;
	const __u8 *byte = bytes;

	weir_subject_start(&hash, dp->seed, kind);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&hash, byte[i]);
	return weir_subject_end(&hash);
}

static void address_text(const __u8 *address, char *text, size_t size)
{
	char buffer[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address))
		snprintf(text, size, "%s", inet_ntop(AF_INET, address + 12, buffer, sizeof(buffer)));
	else
		snprintf(text, size, "%s/64", inet_ntop(AF_INET6, address, buffer, sizeof(buffer)));
}

/* Names are what a client sent: nothing but plain characters may reach a terminal. Returns where the text ends now. */
static size_t plain_text(const char *bytes, size_t length, bool cut, char *text, size_t used, size_t size)
{
	for (size_t i = 0; i < length && used < size; i++) {
		unsigned char c = bytes[i];
		bool plain = c > ' ' && c < 0x7f && c != '\\';

		used += snprintf(text + used, size - used, plain ? "%c" : "\\x%02x", c);
	}
	if (cut && used < size)
		used += snprintf(text + used, size - used, "...");
	return used;
}

void datapath_name_text(const struct weir_name *name, char *text, size_t size)
{
	size_t length = name->length < WEIR_NAME_TEXT ? name->length : WEIR_NAME_TEXT;

	text[0] = 0;
	plain_text(name->text, length, name->whole > name->length, text, 0, size);
}

/* KIND/NAMESPACE/NAME, without what is empty. A text that fills its place may have been cut. */
static void object_text(const struct weir_object_name *name, char *text, size_t size)
{
	const struct {
		const char *text;
		size_t room;
	} parts[] = { { name->kind, sizeof(name->kind) },
		      { name->namespace, sizeof(name->namespace) },
		      { name->name, sizeof(name->name) } };
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t length = strnlen(parts[i].text, parts[i].room);

		if (length && used && used < size)
			used += snprintf(text + used, size - used, "/");
		used = plain_text(parts[i].text, length, length == parts[i].room, text, used, size);
	}
}

/* PART/PART; of a part that is not known any more, "?". */
static void parts_text(struct datapath *dp, const struct weir_name *name, char *text, size_t size)
{
	const __u64 *parts = (const __u64 *)name->text;
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < name->length / sizeof(*parts) && i < WEIR_KEY_PARTS && used + 1 < size; i++) {
		if (i)
			used += snprintf(text + used, size - used, "/");
		if (used < size && datapath_name(dp, parts[i], text + used, size - used))
			snprintf(text + used, size - used, "?");
		used += strlen(text + used);
	}
}

int datapath_name(struct datapath *dp, __u64 subject, char *text, size_t size)
{
	struct weir_name name;

	if (subject == WEIR_SUBJECT_OVERFLOW) {
		snprintf(text, size, "(overflow)");
		return 0;
	}
	if (bpf_map_lookup_elem(dp->maps.names, &subject, &name))
		return -errno;
	if (!size)
		return -ENOSPC;
	if (name.kind == WEIR_NAME_ADDRESS)
		address_text((const __u8 *)name.text, text, size);
	else if (name.kind == WEIR_NAME_OBJECT)
		object_text((const struct weir_object_name *)name.text, text, size);
	else if (name.kind == WEIR_NAME_PARTS)
		parts_text(dp, &name, text, size);
	else
		datapath_name_text(&name, text, size);
	return 0;
}
