/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath/open_requests.h"

#include <errno.h>
#include <stdlib.h>

int open_requests_add(struct open_requests *open, __u32 server, __u64 subject)
{
	if (open->n == open->room) {
		size_t room = open->room ? open->room * 2 : 256;
		struct open_request *of = reallocarray(open->of, room, sizeof(*of));

		if (!of)
			return -ENOMEM;
		open->of = of;
		open->room = room;
	}
	open->of[open->n++] = (struct open_request){ .server = server, .subject = subject };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct open_request *x = a, *y = b;

	if (x->server != y->server)
		return x->server < y->server ? -1 : 1;
	return x->subject < y->subject ? -1 : x->subject > y->subject;
}

void open_requests_sort(struct open_requests *open)
{
	if (open->n)
		qsort(open->of, open->n, sizeof(*open->of), compare);
}

/* The first that is not before it. */
static size_t first_from(const struct open_requests *open, const struct open_request *from)
{
	size_t low = 0, high = open->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&open->of[middle], from) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t open_requests_of(const struct open_requests *open, __u32 server, __u64 subject)
{
	const struct open_request wanted = { .server = server, .subject = subject };
	size_t first = first_from(open, &wanted), n = first;

	while (n < open->n && !compare(&open->of[n], &wanted))
		n++;
	return n - first;
}

size_t open_requests_of_server(const struct open_requests *open, __u32 server)
{
	return first_from(open, &(struct open_request){ .server = server + 1 }) -
	       first_from(open, &(struct open_request){ .server = server });
}

void open_requests_clear(struct open_requests *open)
{
	free(open->of);
	*open = (struct open_requests){};
}
