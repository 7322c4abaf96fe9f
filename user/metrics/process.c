/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's own process, by the names that Prometheus' client libraries have given them. */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "metrics/metrics.h"

static __u64 count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	__u64 n = 0;

	if (!dir)
		return 0;
	for (struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n ? n - 1 : 0; /* without the folder's own */
}

/* The first two fields of /proc/self/statm, in pages. */
static void read_memory(struct metrics_process *process)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long all, resident;

	if (!file)
		return;
	if (fscanf(file, "%llu %llu", &all, &resident) == 2) {
		process->virtual_bytes = all * sysconf(_SC_PAGESIZE);
		process->resident_bytes = resident * sysconf(_SC_PAGESIZE);
	}
	fclose(file);
}

static double seconds_of(const struct timeval *time)
{
	return time->tv_sec + time->tv_usec / 1e6;
}

struct metrics_process metrics_process_read(void)
{
	struct rusage usage = { 0 };
	struct metrics_process process;
	struct rlimit files = { 0 };

	getrusage(RUSAGE_SELF, &usage);
	getrlimit(RLIMIT_NOFILE, &files);
	process = (struct metrics_process){
		.cpu_s = seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime),
		.open_fds = count_files(),
		.max_fds = files.rlim_cur,
	};
	read_memory(&process);
	return process;
}

void metrics_add_process(json_t *families, const struct metrics_process *process)
{
	const struct {
		const char *name, *type, *help;
		json_t *value;
	} singles[] = {
		{ "process_cpu_seconds_total", "counter", "CPU time of the agent, in user mode and in the kernel.",
		  json_real(process->cpu_s) },
		{ "process_resident_memory_bytes", "gauge", "Memory of the agent that is in RAM.",
		  json_integer(process->resident_bytes) },
		{ "process_virtual_memory_bytes", "gauge", "Address space of the agent.",
		  json_integer(process->virtual_bytes) },
		{ "process_start_time_seconds", "gauge", "Start time of the agent, in Unix time.",
		  json_real(process->start_time_s) },
		{ "process_open_fds", "gauge", "File descriptors that the agent has open.",
		  json_integer(process->open_fds) },
		{ "process_max_fds", "gauge", "File descriptors that it may have open.",
		  json_integer(process->max_fds) },
	};

	for (size_t i = 0; i < sizeof(singles) / sizeof(*singles); i++)
		metrics_add_sample(metrics_add_family(families, singles[i].name, singles[i].type, singles[i].help),
				   json_object(), singles[i].value);
}
