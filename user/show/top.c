/* SPDX-License-Identifier: GPL-2.0 */
#include "show/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const char *const top_numbers[TOP_NUMBERS] = {
	[TOP_REQUESTS] = "requests",
	[TOP_REFUSED] = "refused",
	[TOP_DRY_RUN] = "dry_run",
	[TOP_HELD] = "held",
};

/* What a row is of, by name. By them alone two rows may look the same: the agent's have an "id", too. */
static const char *const names[] = { "server", "limit", "user", "verb", "namespace", "resource", "source" };

static void subject_clear(struct top_subject *subject)
{
	json_decref(subject->row);
	free(subject->key);
}

void top_clear(struct top *top)
{
	for (size_t i = 0; i < top->n; i++)
		subject_clear(&top->subjects[i]);
	free(top->subjects);
	json_decref(top->totals);
	*top = (struct top){ 0 };
}

char *top_row_key(json_t *row)
{
	char *key = NULL;
	size_t length;
	FILE *out = open_memstream(&key, &length);

	if (!out)
		return NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		fprintf(out, "%s\n", json_string_value(json_object_get(row, names[i])) ?: "");
	fputs(json_string_value(json_object_get(row, "id")) ?: "", out);
	return fclose(out) ? NULL : key;
}

static __u64 number_of(json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* --- one answer after the other */

static int compare_keys(const void *left, const void *right)
{
	const struct top_subject *a = left, *b = right;

	return strcmp(a->key, b->key);
}

static struct top_subject *find(struct top *top, size_t n, char *key)
{
	const struct top_subject wanted = { .key = key };

	return n ? bsearch(&wanted, top->subjects, n, sizeof(wanted), compare_keys) : NULL;
}

static struct top_subject *add(struct top *top, char *key)
{
	if (top->n == top->room) {
		size_t room = top->room ? 2 * top->room : 64;
		struct top_subject *grown = reallocarray(top->subjects, room, sizeof(*grown));

		if (!grown)
			return NULL;
		top->subjects = grown;
		top->room = room;
	}
	top->subjects[top->n] = (struct top_subject){ .key = key };
	return &top->subjects[top->n++];
}

/* A count that has begun anew since began with 0. What was there before, and is seen only now, says nothing yet. */
static void measure(struct top_subject *subject, json_t *row, bool known, __u64 before_ns, double seconds)
{
	__u64 first_ns = number_of(row, "first_ns");
	bool anew = known ? first_ns != subject->first_ns : before_ns && first_ns >= before_ns;

	for (int i = 0; i < TOP_NUMBERS; i++) {
		__u64 count = number_of(row, top_numbers[i]), base = anew ? 0 : subject->counts[i];

		subject->rates.of[i] = (known || anew) && seconds > 0 && count >= base ? (count - base) / seconds : 0;
		subject->counts[i] = count;
	}
	subject->first_ns = first_ns;
	subject->last_ns = number_of(row, "last_ns");
}

static void remember_rate(struct top_subject *subject)
{
	memmove(subject->trend, subject->trend + 1, (TOP_TREND - 1) * sizeof(*subject->trend));
	subject->trend[TOP_TREND - 1] = subject->rates.of[TOP_REQUESTS];
}

/* n: how many of the subjects were there before, sorted by their keys */
static int take_row(struct top *top, size_t n, json_t *row, __u64 before_ns, double seconds)
{
	CLEANUP_FREE char *key = top_row_key(row);
	struct top_subject *subject = key ? find(top, n, key) : NULL;
	bool known = subject;

	if (!key)
		return -ENOMEM;
	if (!known) {
		subject = add(top, key);
		if (!subject)
			return -ENOMEM;
		key = NULL;
	}
	measure(subject, row, known, before_ns, seconds);
	remember_rate(subject);
	json_decref(subject->row);
	subject->row = json_incref(row);
	subject->fresh = true;
	return 0;
}

/* Those that are not in the answer have asked for less than all that are. */
static void drop_stale(struct top *top)
{
	size_t kept = 0;

	for (size_t i = 0; i < top->n; i++) {
		if (top->subjects[i].fresh)
			top->subjects[kept++] = top->subjects[i];
		else
			subject_clear(&top->subjects[i]);
	}
	top->n = kept;
}

/* --- totals */

static json_t *server_total(json_t *totals, const char *server)
{
	json_t *total;
	size_t i;

	json_array_foreach (totals, i, total) {
		if (!strcmp(json_string_value(json_object_get(total, "server")) ?: "", server))
			return total;
	}
	return NULL;
}

/* A counter that went back is that of another server with this name. */
static __u64 since(__u64 now, __u64 then)
{
	return now >= then ? now - then : 0;
}

static __u64 without_records(json_t *total)
{
	__u64 requests = number_of(total, "requests");

	return json_is_true(json_object_get(total, "inside")) ? requests : requests - number_of(total, "records");
}

/* Records are among the requests of a server that is not looked into: in one of the two answers it may not have been. */
static __u64 requests_since(json_t *total, json_t *before)
{
	__u64 requests = since(without_records(total), without_records(before));

	if (json_is_true(json_object_get(total, "inside")))
		return requests;
	return requests + since(number_of(total, "records"), number_of(before, "records"));
}

static void add_rates(struct top_rates *rates, json_t *total, json_t *before, double seconds)
{
	if (!before || seconds <= 0)
		return;
	rates->of[TOP_REQUESTS] += requests_since(total, before) / seconds;
	for (int i = TOP_REQUESTS + 1; i < TOP_NUMBERS; i++)
		rates->of[i] += since(number_of(total, top_numbers[i]), number_of(before, top_numbers[i])) / seconds;
}

static void set_shares(struct top *top, json_t *before, double seconds)
{
	for (size_t i = 0; i < top->n; i++) {
		struct top_subject *subject = &top->subjects[i];
		const char *server = json_string_value(json_object_get(subject->row, "server")) ?: "";
		struct top_rates whole = { 0 };

		add_rates(&whole, server_total(top->totals, server), server_total(before, server), seconds);
		subject->share = whole.of[TOP_REQUESTS] > 0 ? subject->rates.of[TOP_REQUESTS] / whole.of[TOP_REQUESTS] :
							      0;
		if (subject->share > 1)
			subject->share = 1;
	}
}

static void set_totals(struct top *top, json_t *totals, double seconds)
{
	CLEANUP_JSON json_t *before = top->totals;
	json_t *total;
	size_t i;

	top->totals = json_incref(totals);
	top->all = (struct top_rates){ 0 };
	json_array_foreach (totals, i, total)
		add_rates(&top->all, total,
			  server_total(before, json_string_value(json_object_get(total, "server")) ?: ""), seconds);
	set_shares(top, before, seconds);
}

int top_update(struct top *top, json_t *answer, struct error *err)
{
	json_t *rows = json_object_get(answer, "rows"), *servers = json_object_get(answer, "servers"), *row;
	__u64 now_ns = number_of(answer, "now_ns"), before_ns = top->now_ns;
	double seconds = before_ns ? (double)(now_ns - before_ns) / WEIR_NS_PER_S : 0;
	size_t n = top->n, i;

	if (!json_is_array(rows) || !json_is_array(servers) || now_ns < before_ns)
		return error_set(err, -EPROTO, "the agent's answer has no rows");
	if (n)
		qsort(top->subjects, n, sizeof(*top->subjects), compare_keys);
	for (i = 0; i < n; i++)
		top->subjects[i].fresh = false;
	json_array_foreach (rows, i, row) {
		if (take_row(top, n, row, before_ns, seconds))
			return error_set(err, -ENOMEM, "out of memory");
	}
	drop_stale(top);
	set_totals(top, servers, seconds);
	top->now_ns = now_ns;
	return 0;
}

/* --- what is shown first */

static int compare_by(const void *left, const void *right, void *arg)
{
	const struct top_subject *a = left, *b = right;
	enum top_number by = *(enum top_number *)arg;

	if (a->rates.of[by] != b->rates.of[by])
		return a->rates.of[by] < b->rates.of[by] ? 1 : -1;
	for (int i = 0; i < TOP_NUMBERS; i++)
		if (a->rates.of[i] != b->rates.of[i])
			return a->rates.of[i] < b->rates.of[i] ? 1 : -1;
	if (a->counts[by] != b->counts[by])
		return a->counts[by] < b->counts[by] ? 1 : -1;
	return strcmp(a->key, b->key);
}

void top_sort(struct top *top, enum top_number by)
{
	if (top->n)
		qsort_r(top->subjects, top->n, sizeof(*top->subjects), compare_by, &by);
}

int top_number_parse(const char *text, enum top_number *out, struct error *err)
{
	for (int i = 0; i < TOP_NUMBERS; i++) {
		if (strcmp(text, top_numbers[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	return error_set(err, -EINVAL, "\"%s\" is not one of requests, refused, dry_run, held", text);
}

bool top_row_matches(json_t *row, const char *text)
{
	for (size_t i = 1; i < sizeof(names) / sizeof(*names); i++) {
		const char *name = json_string_value(json_object_get(row, names[i]));

		if (name && strcasestr(name, text))
			return true;
	}
	return !*text;
}

bool top_matches(const struct top_subject *subject, const char *text)
{
	return top_row_matches(subject->row, text);
}

char *top_trend_text(const struct top_subject *subject)
{
	static const char *const bars[] = { "\u2581", "\u2582", "\u2583", "\u2584",
					    "\u2585", "\u2586", "\u2587", "\u2588" };
	double highest = 0;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	for (int i = 0; i < TOP_TREND; i++)
		if (subject->trend[i] > highest)
			highest = subject->trend[i];
	for (int i = 0; i < TOP_TREND && out; i++) {
		if (subject->trend[i] > 0)
			fputs(bars[(int)(subject->trend[i] / highest * 7)], out);
		else
			fputc(' ', out);
	}
	return !out || fclose(out) ? NULL : text;
}
