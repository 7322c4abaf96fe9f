/* SPDX-License-Identifier: GPL-2.0 */
/* A whole agent in a thread, with its event loop, over a kernel side that takes its time to load programs; and clients of it. */
#ifndef WEIR_TESTS_LOOP_SCENE_H
#define WEIR_TESTS_LOOP_SCENE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "daemon/daemon.h"

struct loop_scene {
	char state_dir[32], pin_dir[32], metrics[32];
	__u16 port;
	struct agent_options options;
	pthread_t agent;
	int ended; /* what agent_run() has returned */
	int log, stderr_before;
	off_t log_began;
};

/* A client in a thread of its own, which waits for its answer. */
struct loop_client {
	const struct loop_scene *f;
	const char *command, *arguments;
	pthread_t thread;
	atomic_bool answered;
	bool succeeded;
	struct error err;
};

/* Programs are loaded when this is set. */
extern atomic_bool loop_may_open;

/* Since it was started. */
bool loop_has_logged(const struct loop_scene *f, const char *word);

/* start: until it is told to stop; stop: it has been told; join: it has ended. */
void loop_start(struct loop_scene *f);
void loop_start_and_wait(struct loop_scene *f);
void loop_stop(struct loop_scene *f);
void loop_join(struct loop_scene *f);

/* Programs are loaded slowly from now on; some are being loaded. */
void loop_block_openings(void);
void loop_wait_for_opening(void);

/* cmocka's. */
int loop_set_up(void **state);
int loop_tear_down(void **state);

/* Clients. */
void loop_succeed(const struct loop_scene *f, const char *command, const char *arguments);
void loop_assert_mode(const struct loop_scene *f, size_t server, const char *wanted);
void loop_send_command(struct loop_client *c);
void loop_expect_success(struct loop_client *c);

/* A command that the agent has read when this returns, but not answered: the stream that its answer comes by. */
FILE *loop_send_behind_status(const struct loop_scene *f, const char *line);
void loop_expect_line(FILE *stream, const char *word);
void loop_expect_metrics(const struct loop_scene *f);

#endif
