/* SPDX-License-Identifier: GPL-2.0 */
/* The host around the kernel side in memory: its namespaces, who listens there, and what a probe finds. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "fake_datapath.h"
#include "probe/read.h"
#include "sys/netns.h"
#include "sys/socket_diag.h"
#include "sys/sockmap.h"

#define MAX_FDS 64

static __u64 cookies[MAX_FDS]; /* by descriptor of a namespace */

int netns_open(const char *path, struct error *err)
{
	static const char prefix[] = "/netns/";
	bool known = !path || strncmp(path, prefix, strlen(prefix)) == 0;
	__u64 cookie = path && known ? strtoull(path + strlen(prefix), NULL, 10) : 1;
	int fd;

	if (!known || cookie >= FAKE_NETS)
		return error_set(err, -ENOENT, "there is no namespace %s", path);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fd < MAX_FDS)
		cookies[fd] = cookie;
	return fd;
}

int netns_cookie(int netns_fd, __u64 *cookie, struct error *err)
{
	(void)err;
	*cookie = cookies[netns_fd];
	return 0;
}

int netns_run(int netns_fd, int (*run)(void *arg), void *arg, struct error *err)
{
	(void)netns_fd;
	(void)err;
	return run(arg);
}

const struct socket_listener *fake_listeners;
size_t n_fake_listeners;
__u16 fake_udp_port;
bool fake_sockmap;

int socket_diag_listeners(socket_diag_listener_t call, void *arg)
{
	struct error err = { 0 };
	struct socket_listener listener = { 0 };
	int ret = fake_fails(__func__, &err);

	for (size_t i = 0; fake_listeners && i < n_fake_listeners; i++)
		call(&fake_listeners[i], arg);
	if (fake_listeners || ret)
		return ret;
	for (listener.port = 1; listener.port < 10000; listener.port++)
		call(&listener, arg);
	return 0;
}

/* By UDP: those whom a test names alone. */
int socket_diag_udp(socket_diag_listener_t call, void *arg)
{
	struct socket_listener listener = { .port = fake_udp_port };

	if (fake_udp_port)
		call(&listener, arg);
	return 0;
}

/* Those of the machine are not the test's. */
char *sockmap_programs(void)
{
	return fake_sockmap ? strdup("redirect (id 12)") : NULL;
}

/* All that a probe asks for is there. */
void probe_read(struct probe *probe, int netns_fd, const char *pin_dir)
{
	(void)netns_fd;
	(void)pin_dir;
	for (int fact = 0; fact < PROBE_FACT_COUNT; fact++)
		probe_set(probe, fact, PROBE_YES, "%s", "");
}

const char *datapath_no_hold(const struct datapath *dp)
{
	(void)dp;
	return "";
}
