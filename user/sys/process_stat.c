/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/*
 * The state is the third field, the parent the fourth, the start the 22nd, the code's beginning the 26th, the stack's the 28th. The second is
 * the command in parentheses, with whatever characters it has.
 */
int process_stat_parse(char *text, struct process_stat *out)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	unsigned long long start, code, stack;
	struct process_stat stat = { 0 };

	if (!open || !close || close < open)
		return -EPROTO;
	*close = 0;
	snprintf(stat.command, sizeof(stat.command), "%s", open + 1);
	if (sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu %*u %*d %*u %llu %*u %llu",
		   &stat.state, &stat.parent, &start, &code, &stack) != 5)
		return -EPROTO;
	stat.start = start;
	stat.code = code;
	stat.stack = stack;
	*out = stat;
	return 0;
}

int process_stat_read(pid_t id, struct process_stat *out)
{
	char path[64], text[1024];
	CLEANUP_CLOSE int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", id);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return fd < 0 && errno != ENOENT ? -errno : -ESRCH;
	text[n] = 0;
	return process_stat_parse(text, out);
}
