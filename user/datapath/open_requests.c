/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath/open_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

int open_requests_add(struct open_requests *open, enum weir_heavy_by by, const struct weir_asked *asked, bool doubtful)
{
	struct open_request *grown = array_grow(open->of, open->n, sizeof(*grown));
	struct weir_heavy_what what;

	if (!grown)
		return -ENOMEM;
	open->of = grown;
	if (!weir_asked_what(asked, by, &what))
		what = (struct weir_heavy_what){ .server = asked->server, .by = WEIR_HEAVY_BYS };
	open->of[open->n++] = (struct open_request){ .what = what, .doubtful = doubtful };
	return 0;
}

/* Those of a server stand together, and there those of a row. */
static int compare(const void *a, const void *b)
{
	const struct weir_heavy_what *x = a, *y = b; /* the first member of each */

	if (x->server != y->server)
		return x->server < y->server ? -1 : 1;
	/* All their bytes are set, padding and union. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
	return memcmp(x, y, sizeof(*x));
}

void open_requests_sort(struct open_requests *open)
{
	if (open->n)
		qsort(open->of, open->n, sizeof(*open->of), compare);
}

/* The first that is not before it. */
static size_t first_from(const struct open_requests *open, const struct weir_heavy_what *from)
{
	size_t low = 0, high = open->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&open->of[middle].what, from) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void count(struct open_count *counted, const struct open_request *request)
{
	if (request->doubtful)
		counted->doubtful++;
	else
		counted->n++;
}

struct open_count open_requests_of(const struct open_requests *open, const struct weir_heavy_what *what)
{
	struct open_count counted = { 0 };

	for (size_t i = first_from(open, what); i < open->n && !compare(&open->of[i].what, what); i++)
		count(&counted, &open->of[i]);
	return counted;
}

struct open_count open_requests_of_server(const struct open_requests *open, __u32 server)
{
	const struct weir_heavy_what first = { .server = server };
	struct open_count counted = { 0 };

	for (size_t i = first_from(open, &first); i < open->n && open->of[i].what.server == server; i++)
		count(&counted, &open->of[i]);
	return counted;
}

void open_requests_clear(struct open_requests *open)
{
	free(open->of);
	*open = (struct open_requests){};
}
