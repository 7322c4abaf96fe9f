/* SPDX-License-Identifier: GPL-2.0 */
/* What a command does itself, without the agent, and what may take long. */
#ifndef WEIR_USER_CLI_SLOW_H
#define WEIR_USER_CLI_SLOW_H

#include <pthread.h>
#include <stdbool.h>

#define SLOW_MS 2000 /* nobody is left longer without a word */

struct slow {
	const char *text;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool watched, over;
};

/* If slow_end() does not come before SLOW_MS, the text is said on stderr (cli_progress()). It is borrowed until then. */
void slow_begin(struct slow *slow, const char *text);
void slow_end(struct slow *slow);
#define CLEANUP_SLOW __attribute__((cleanup(slow_end)))

#endif
