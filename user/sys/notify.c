/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/notify.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

/* A path, or a name in the abstract namespace, written with an @. */
static int address_of(const char *name, struct sockaddr_un *address, socklen_t *length)
{
	size_t n = strlen(name);

	if ((*name != '/' && *name != '@') || n < 2 || n >= sizeof(address->sun_path))
		return -EINVAL;
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path, name, n);
	if (*name == '@')
		address->sun_path[0] = '\0';
	*length = offsetof(struct sockaddr_un, sun_path) + n;
	return 0;
}

/* It never waits: a manager that does not read must not hold up the event loop. */
int notify_send(const char *lines)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	socklen_t length;
	int ret = name ? address_of(name, &address, &length) : 0;
	CLEANUP_CLOSE int fd = -1;

	if (ret || !name)
		return ret;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	return sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (struct sockaddr *)&address, length) < 0 ? -errno : 0;
}

/* False: it is not there, or no number. */
static bool number_of(const char *name, __u64 *out)
{
	const char *text = getenv(name);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return !errno && !*end;
}

__u64 notify_watchdog_us(void)
{
	__u64 us, pid;

	if (!number_of("WATCHDOG_USEC", &us) || (number_of("WATCHDOG_PID", &pid) && pid != (__u64)getpid()))
		return 0;
	return us;
}
