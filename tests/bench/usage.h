/* SPDX-License-Identifier: GPL-2.0 */
/* Who used how much CPU time, in ns since some beginning: only differences mean something. */
#ifndef WEIR_TESTS_BENCH_USAGE_H
#define WEIR_TESTS_BENCH_USAGE_H

#include <stdint.h>
#include <sys/types.h>

#define USAGE_CPUS 256
#define USAGE_PROCESSES 16

struct usage {
	uint64_t wall_ns;
	uint64_t own_ns; /* of the caller's process */
	uint64_t idle_ns[USAGE_CPUS];
	uint64_t process_ns[USAGE_PROCESSES];
};

uint64_t now_ns(void);

/* 0, or a negative errno: a process is gone, or /proc/stat cannot be read. */
int usage_read(struct usage *usage, const pid_t *processes, int n_processes);

#endif
