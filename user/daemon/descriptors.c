/* SPDX-License-Identifier: GPL-2.0 */
#include "daemon/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"

#define CALM 5 /* where one comes and goes, not every change is told */

static const char *what_to_do(int error)
{
	return error == ENFILE ? "the whole machine has none left (fs.file-max)" :
				 "give the agent more (LimitNOFILE= of its service)";
}

void descriptors_look(struct descriptors *descriptors)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0) {
		if (!descriptors->missing)
			log_error(
				"no file descriptor is left: %s: %s. Limits stay in force; commands are refused, and metrics wait",
				strerror(errno), what_to_do(errno));
		*descriptors = (struct descriptors){ .missing = true };
		return;
	}
	close(fd);
	if (!descriptors->missing || ++descriptors->calm < CALM)
		return;
	log_info("there are file descriptors to spare again");
	descriptors->missing = false;
}
