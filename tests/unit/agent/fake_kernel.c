/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel side in memory: what a test has in its hands, one thing at a time, and failures that are ordered. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "fake_datapath.h"

struct datapath fake_nets[FAKE_NETS];
const char *fake_failing;
void (*fake_asked)(void);
void (*fake_failed)(void), (*fake_opening)(void), (*fake_sweeping)(void), (*fake_explaining)(void),
	(*fake_syncing)(void);
atomic_bool fake_sweep_stopped;
static int failures_left;
static pthread_mutex_t kernel_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int kernel_depth; /* functions call each other */

void *fake_kernel_read(void)
{
	if (!kernel_depth++)
		pthread_mutex_lock(&kernel_lock);
	return &kernel_depth;
}

void *fake_kernel(void)
{
	if (!kernel_depth && fake_asked)
		fake_asked();
	return fake_kernel_read();
}

void fake_kernel_leave(void *kernel)
{
	(void)kernel;
	if (!--kernel_depth)
		pthread_mutex_unlock(&kernel_lock);
}

int fake_fails(const char *function, struct error *err)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();

	if (!fake_failing || strcmp(fake_failing, function) != 0 || failures_left == 0)
		return 0;
	failures_left--;
	if (fake_failed)
		fake_failed();
	return error_set(err, -EIO, "%s failed", function);
}

void fake_fail(const char *function, int times)
{
	CLEANUP_KERNEL void *kernel = fake_kernel();

	fake_failing = function;
	failures_left = times;
}

void fake_reset(void)
{
	memset(fake_nets, 0, sizeof(fake_nets));
	fake_failing = NULL;
	fake_asked = NULL;
	fake_failed = NULL;
	fake_opening = NULL;
	fake_sweeping = NULL;
	fake_explaining = NULL;
	fake_syncing = NULL;
	failures_left = 0;
}
