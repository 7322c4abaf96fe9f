/* SPDX-License-Identifier: GPL-2.0 */
#include "reading.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "turned.h"
#include "weir/http/head_cache.h"

/* The head of round n. */
static struct packet packet_of_round(bool from_server, const char *head, __u32 n)
{
	char text[WEIR_CACHE_MAX + 1];

	if (strlen(head) > WEIR_CACHE_MAX)
		die("a head that is not cached", EINVAL);
	strcpy(text, head);
	for (char *digit = text; (digit = strchr(digit, '#')); n /= 10)
		*digit = '0' + n % 10;
	return packet_of((struct spec){ .text = text, .n_text = strlen(text), .from_server = from_server });
}

void measure_reading(const char *name, bool from_server, const char *head, __u32 times)
{
	const __u32 length = strlen(head);
	struct packet packet;
	__u32 least = ~0U, unread_least = ~0U, empty_least = ~0U, ns;

	for (__u32 i = 0; i < times; i++) {
		packet = packet_of_round(from_server, head, i);
		ns = run_ns(turned_program(TURNED_NOTHING), &packet, 1);
		empty_least = ns < empty_least ? ns : empty_least;
		ns = turned_unread_ns(from_server, &packet, length);
		unread_least = ns < unread_least ? ns : unread_least;
		ns = turned_read_ns(from_server, &packet, length);
		least = ns < least ? ns : least;
	}
	printf("{\"reading\": \"%s\", \"ns\": %u, \"unread_ns\": %u, \"empty_ns\": %u}\n", name, least, unread_least,
	       empty_least);
}
