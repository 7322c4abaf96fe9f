/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/process_namespace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST_PROCESS_NAMESPACE 0xeffffffcU /* the kernel's PROC_PID_INIT_INO */

static bool proc_is_own(void)
{
	char self[16];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = '\0';
	return atoi(self) == getpid();
}

int process_namespace(__u32 *inode, struct error *err)
{
	struct stat st;

	if (!proc_is_own())
		return error_set(err, -ENOTSUP,
				 "/proc is of another process namespace than the agent: mount one of its own there");
	if (stat("/proc/self/ns/pid", &st))
		return error_set(err, -errno, "reading /proc/self/ns/pid: %s", strerror(errno));
	*inode = st.st_ino == HOST_PROCESS_NAMESPACE ? 0 : st.st_ino;
	return 0;
}
