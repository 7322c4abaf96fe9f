/* SPDX-License-Identifier: GPL-2.0 */
#include "usage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_NS (1000000000 / 100) /* USER_HZ */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/*
 * Of a line of /proc/stat. Idle time is measured at every way in and out of idleness, where busy time may be sampled by
 * the tick: what is busy is told by what is not idle. What the hypervisor took (steal) was not ours to be busy in.
 */
static uint64_t idle_ns(char *fields)
{
	enum {
		USER,
		NICE,
		SYSTEM,
		IDLE,
		IOWAIT,
		IRQ,
		SOFTIRQ,
		STEAL,
		FIELDS
	};
	uint64_t ticks[FIELDS];

	for (int i = 0; i < FIELDS; i++)
		ticks[i] = strtoull(fields, &fields, 10);
	return (ticks[IDLE] + ticks[IOWAIT] + ticks[STEAL]) * TICK_NS;
}

static int read_cpus(struct usage *usage)
{
	FILE *file = fopen("/proc/stat", "re");
	char line[512], *fields;
	unsigned long cpu;

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "cpu", 3) || line[3] == ' ')
			continue;
		cpu = strtoul(line + 3, &fields, 10);
		if (cpu < USAGE_CPUS)
			usage->idle_ns[cpu] = idle_ns(fields);
	}
	fclose(file);
	return 0;
}

int usage_read(struct usage *usage, const pid_t *processes, int n_processes)
{
	clockid_t clock;
	int ret;

	memset(usage, 0, sizeof(*usage));
	for (int i = 0; i < n_processes; i++) {
		ret = clock_getcpuclockid(processes[i], &clock);
		if (ret)
			return -ret;
		usage->process_ns[i] = clock_ns(clock);
	}
	ret = read_cpus(usage);
	usage->own_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	usage->wall_ns = now_ns();
	return ret;
}
