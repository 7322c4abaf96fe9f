/* SPDX-License-Identifier: GPL-2.0 */
#include "join/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/next_line.h"

void join_clear(struct join *join)
{
	for (size_t i = 0; i < join->n_requests; i++)
		asked_clear(&join->requests[i].asked);
	for (size_t i = 0; i < join->n_entries; i++) {
		asked_clear(&join->entries[i].asked);
		free(join->entries[i].id);
	}
	free(join->requests);
	free(join->entries);
	*join = (struct join){ 0 };
}

/* --- requests */

int join_add(struct join *join, json_t *request, size_t number, struct error *err)
{
	struct join_request *grown;
	struct asked asked;
	int ret = asked_of_request(request, &asked, err);

	if (ret) {
		asked_clear(&asked);
		return ret < 0 ? ret : 0;
	}
	grown = join->n_requests < JOIN_REQUESTS_MAX ? array_grow(join->requests, join->n_requests, sizeof(*grown)) :
						       NULL;
	if (!grown) {
		asked_clear(&asked);
		return join->n_requests < JOIN_REQUESTS_MAX ?
			       error_set(err, -ENOMEM, "out of memory") :
			       error_set(err, -E2BIG, "more than %d requests cannot be joined at once",
					 JOIN_REQUESTS_MAX);
	}
	join->requests = grown;
	if (!join->n_requests || asked.from_ns < join->first_ns)
		join->first_ns = asked.from_ns;
	if (!join->n_requests || asked.from_ns > join->last_ns)
		join->last_ns = asked.from_ns;
	grown[join->n_requests++] = (struct join_request){ .asked = asked, .number = number };
	return 0;
}

/* --- the log */

/* Can some request have come with it? Of a long log little is kept. */
static bool is_wanted(const struct join *join, const struct asked *audited)
{
	return join->n_requests && audited->from_ns <= join->last_ns + JOIN_SLACK_NS &&
	       audited->from_ns + join->window_ns >= join->first_ns;
}

/* Takes over what asked holds. */
static int add_entry(struct join *join, struct asked *asked, const char *id)
{
	struct join_entry *grown = array_grow(join->entries, join->n_entries, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	join->entries = grown;
	grown[join->n_entries].id = strdup(id);
	if (!grown[join->n_entries].id)
		return -ENOMEM;
	grown[join->n_entries++].asked = *asked;
	*asked = (struct asked){ 0 };
	return 0;
}

static int read_event(struct join *join, const char *line, size_t length, struct error *err)
{
	CLEANUP_JSON json_t *event = json_loadb(line, length, 0, NULL);
	struct asked asked = { 0 };
	const char *id;
	int ret;

	if (!event)
		return error_set(err, -EINVAL, "not JSON");
	ret = asked_of_audit(event, &asked, &id, err);
	if (!ret && is_wanted(join, &asked))
		ret = add_entry(join, &asked, id);
	asked_clear(&asked);
	return ret;
}

/* Stages of one request, what was answered last. */
static int by_id(const void *left, const void *right)
{
	const struct join_entry *a = left, *b = right;
	int order = strcmp(a->id, b->id);

	if (order)
		return order;
	if (a->asked.open != b->asked.open)
		return a->asked.open ? -1 : 1;
	return (a->asked.to_ns > b->asked.to_ns) - (a->asked.to_ns < b->asked.to_ns);
}

static int by_receipt(const void *left, const void *right)
{
	const struct join_entry *a = left, *b = right;

	if (a->asked.from_ns != b->asked.from_ns)
		return a->asked.from_ns < b->asked.from_ns ? -1 : 1;
	return strcmp(a->id, b->id);
}

/* Of each ID the last stage is kept. */
static void merge_stages(struct join *join)
{
	size_t kept = 0;

	if (!join->n_entries)
		return;
	qsort(join->entries, join->n_entries, sizeof(*join->entries), by_id);
	for (size_t i = 0; i < join->n_entries; i++) {
		struct join_entry *entry = &join->entries[i];

		if (i + 1 < join->n_entries && !strcmp(entry->id, entry[1].id)) {
			asked_clear(&entry->asked);
			free(entry->id);
		} else {
			join->entries[kept++] = *entry;
		}
	}
	join->n_entries = kept;
	qsort(join->entries, kept, sizeof(*join->entries), by_receipt);
}

/* 0: taken, or passed over; else -ENOMEM */
static int take_line(struct join *join, const char *line, size_t length, struct error *first_bad)
{
	struct error why;
	int ret = read_event(join, line, length, &why);

	if (ret != -EINVAL)
		return ret;
	if (!join->bad_lines++)
		*first_bad = why;
	return 0;
}

static int unread(const char *name, __u64 number, int why, struct error *err)
{
	if (why == -EFBIG)
		return error_set(
			err, why,
			"%s:%llu: longer than %u MiB. If it is an entry of an audit log, leave out what it need not have: "
			"jq -c 'del(.requestObject, .responseObject)' FILE | weir events --audit-log -",
			name, number, JOIN_LINE_MAX >> 20);
	if (why == -ENOMEM)
		return error_set(err, why, "out of memory");
	return error_set(err, why, "%s: %s", name, strerror(-why));
}

int join_read(struct join *join, FILE *log, const char *name, struct error *err)
{
	CLEANUP_FREE char *line = NULL;
	struct error first_bad;
	size_t room = 0;
	ssize_t length = 0;
	__u64 n = 0;
	int ret = 0;

	for (; !ret && (length = next_line(log, JOIN_LINE_MAX, &line, &room)) > 0; n++)
		ret = take_line(join, line, length, &first_bad);
	if (ret || length < 0)
		return unread(name, n + 1, ret ?: length, err);
	if (n && join->bad_lines == n)
		return error_set(err, -EINVAL, "%s is not an audit log of JSON lines: line 1: %s", name,
				 first_bad.text);
	merge_stages(join);
	return 0;
}

/* --- both */

/* Until when a request can have been decided that has this entry. */
static __u64 last_moment(const struct join *join, const struct join_entry *entry)
{
	__u64 window = entry->asked.from_ns + join->window_ns, answered = entry->asked.to_ns + JOIN_SLACK_NS;

	return entry->asked.open || window < answered ? window : answered;
}

static bool fits(const struct join *join, const struct join_request *request, const struct join_entry *entry)
{
	return request->asked.from_ns <= last_moment(join, entry) && asked_alike(&request->asked, &entry->asked);
}

/* The first entry that was received at this time or later. */
static size_t first_since(const struct join *join, __u64 ns)
{
	size_t low = 0, high = join->n_entries;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (join->entries[middle].asked.from_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void match(struct join *join, struct join_request *request)
{
	__u64 at = request->asked.from_ns;
	struct join_entry *first = NULL;

	for (size_t i = first_since(join, at > join->window_ns ? at - join->window_ns : 0); i < join->n_entries; i++) {
		struct join_entry *entry = &join->entries[i];

		if (entry->asked.from_ns > at + JOIN_SLACK_NS)
			break;
		if (!fits(join, request, entry))
			continue;
		request->fits++;
		if (!entry->taken && (!first || last_moment(join, entry) < last_moment(join, first)))
			first = entry;
	}
	if (!first)
		return;
	first->taken = true;
	request->id = first->id;
}

static int by_time(const void *left, const void *right)
{
	const struct join_request *a = left, *b = right;

	if (a->asked.from_ns != b->asked.from_ns)
		return a->asked.from_ns < b->asked.from_ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static int by_number(const void *left, const void *right)
{
	const struct join_request *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

void join_match(struct join *join)
{
	if (!join->n_requests)
		return;
	qsort(join->requests, join->n_requests, sizeof(*join->requests), by_time);
	for (size_t i = 0; i < join->n_requests; i++)
		match(join, &join->requests[i]);
	qsort(join->requests, join->n_requests, sizeof(*join->requests), by_number);
}

const struct join_request *join_find(const struct join *join, size_t number)
{
	const struct join_request wanted = { .number = number };

	return join->n_requests ? bsearch(&wanted, join->requests, join->n_requests, sizeof(wanted), by_number) : NULL;
}
