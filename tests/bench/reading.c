/* SPDX-License-Identifier: GPL-2.0 */
#include "reading.h"

#include <stdio.h>
#include <string.h>

#include "turned.h"

void measure_reading(const char *name, bool from_server, const char *head, __u32 times)
{
	const __u32 length = strlen(head);
	struct packet packet = packet_of((struct spec){ .text = head, .n_text = length, .from_server = from_server });
	__u32 least = ~0U, unread_least = ~0U, empty_least = ~0U, ns;

	for (__u32 i = 0; i < times; i++) {
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
