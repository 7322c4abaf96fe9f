/* SPDX-License-Identifier: GPL-2.0 */
/* An agent without a file descriptor to spare: it says so once, and when it is over. */
#ifndef WEIR_USER_DAEMON_DESCRIPTORS_H
#define WEIR_USER_DAEMON_DESCRIPTORS_H

#include <stdbool.h>

struct descriptors {
	bool missing;
	unsigned int calm; /* looks in a row that have found one since */
};

/* Every second or so. */
void descriptors_look(struct descriptors *descriptors);

#endif
