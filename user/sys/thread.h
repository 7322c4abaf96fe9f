/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SYS_THREAD_H
#define WEIR_USER_SYS_THREAD_H

#include <pthread.h>

/* Starts a thread that takes no signals: they are the event loop's. 0 or a negative errno. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/* A condition whose timed waits end by CLOCK_MONOTONIC. */
void thread_condition(pthread_cond_t *condition);

#endif
