/* SPDX-License-Identifier: GPL-2.0 */
#include "probe/read.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "datapath/datapath.h"
#include "sys/attach.h"
#include "sys/cgroup.h"
#include "sys/conntrack.h"
#include "sys/netns.h"
#include "sys/pace.h"
#include "sys/pins.h"
#include "sys/socket_diag.h"

static const char no_root[] = "it takes root to find out";

/* --- of the kernel */

static void read_kernel(struct probe *probe)
{
	struct utsname kernel;
	struct error err;
	int ret = datapath_kernel_check(&err);
	bool btf = !access(DATAPATH_KERNEL_BTF, R_OK);

	uname(&kernel);
	if (ret && btf)
		probe_set(probe, PROBE_KERNEL, PROBE_NO, "%s", err.text);
	else
		probe_set(probe, PROBE_KERNEL, PROBE_YES, "Linux %s", kernel.release);
	probe_set(probe, PROBE_BTF, btf ? PROBE_YES : PROBE_NO, "%s", DATAPATH_KERNEL_BTF);
}

static void read_cgroup(struct probe *probe)
{
	CLEANUP_FREE char *root = cgroup_root();

	if (root)
		probe_set(probe, PROBE_CGROUP2, PROBE_YES, "mounted on %s", root);
	else
		probe_set(probe, PROBE_CGROUP2, PROBE_NO, "no cgroup2 hierarchy is mounted");
}

static void read_pins(struct probe *probe, const char *pin_dir)
{
	int own = pins_private(pin_dir);

	if (!pins_possible(pin_dir))
		probe_set(probe, PROBE_PINS, PROBE_NO, "%s is not on a bpffs", pin_dir);
	else if (own < 0)
		probe_set(probe, PROBE_PINS, PROBE_UNKNOWN, "%s",
			  own != -EACCES ? strerror(-own) :
			  geteuid()	 ? no_root :
					   "no process above this one can be looked at");
	else if (own)
		probe_set(probe, PROBE_PINS, PROBE_NO, "%s is visible only in this mount namespace, and ends with it",
			  pin_dir);
	else
		probe_set(probe, PROBE_PINS, PROBE_YES, "%s", pin_dir);
}

/* What is in force of this namespace, if anything is. */
static void read_maps(struct probe *probe, int netns_fd, const char *pin_dir)
{
	char dir[PATH_MAX];
	struct error err;
	__u64 cookie;
	int ret = geteuid() ? -EPERM : netns_cookie(netns_fd, &cookie, &err);

	if (!ret) {
		pins_path(dir, pin_dir, "net-%llu", cookie);
		ret = datapath_version_check(dir, &err);
	}
	if (ret == -EPERM)
		probe_set(probe, PROBE_MAPS, PROBE_UNKNOWN, "%s", no_root);
	else
		probe_set(probe, PROBE_MAPS,
			  !ret		 ? PROBE_YES :
			  ret == -EPROTO ? PROBE_NO :
					   PROBE_UNKNOWN,
			  "%s", ret ? err.text : "");
}

void probe_programs(struct probe *probe)
{
	struct error no_hold, err;
	int ret = geteuid() ? -EPERM : datapath_try(&no_hold, &err);

	if (ret == -EPERM) {
		probe_set(probe, PROBE_PROGRAMS, PROBE_UNKNOWN, "%s", no_root);
		probe_set(probe, PROBE_HOLD_PROGRAM, PROBE_UNKNOWN, "%s", no_root);
		return;
	}
	probe_set(probe, PROBE_PROGRAMS, ret ? PROBE_NO : PROBE_YES, "%s", ret ? err.text : "");
	probe_set(probe, PROBE_HOLD_PROGRAM, ret || no_hold.text[0] ? PROBE_NO : PROBE_YES, "%s",
		  ret ? err.text : no_hold.text);
}

/* --- by trying, in a namespace that ends with its descriptor */

static int namespace_make(void *unused)
{
	(void)unused;
	return unshare(CLONE_NEWNET) ? -errno : netns_open(NULL, NULL);
}

static int try_clsact(void *unused)
{
	(void)unused;
	return attach_try_clsact();
}

static int try_fq(void *unused)
{
	(void)unused;
	return pace_try_fq();
}

static int try_ifb(void *unused)
{
	(void)unused;
	return pace_try_ifb();
}

static int try_cookies(void *unused)
{
	int makes = datapath_try_cookies();

	(void)unused;
	return makes < 0 ? makes : makes ? 0 : -EOPNOTSUPP;
}

/* -ENOENT, -EOPNOTSUPP: how the kernel says that it does not know a kind. */
static void try_it(struct probe *probe, enum probe_fact fact, int netns_fd, int (*try)(void *unused))
{
	int ret = netns_fd < 0 ? netns_fd : netns_run(netns_fd, try, NULL, NULL);

	if (!ret)
		probe_set(probe, fact, PROBE_YES, "%s", "");
	else if (ret == -ENOENT || ret == -EOPNOTSUPP)
		probe_set(probe, fact, PROBE_NO, "not in this kernel");
	else
		probe_set(probe, fact, PROBE_UNKNOWN, "%s", ret == -EPERM ? no_root : strerror(-ret));
}

static void read_by_trying(struct probe *probe)
{
	CLEANUP_CLOSE int home = netns_open(NULL, NULL);
	CLEANUP_CLOSE int fresh = home < 0 || geteuid() ? -EPERM : netns_run(home, namespace_make, NULL, NULL);

	try_it(probe, PROBE_COOKIES, fresh, try_cookies);
	try_it(probe, PROBE_CLSACT, fresh, try_clsact);
	try_it(probe, PROBE_FQ, fresh, try_fq);
	if (pace_ifb_would_load())
		probe_set(probe, PROBE_IFB, PROBE_YES, "a module that is not loaded yet");
	else
		try_it(probe, PROBE_IFB, fresh, try_ifb);
}

/* --- of the namespace */

static int read_inside(void *arg)
{
	static const struct weir_flow nobody = { 0 };
	CLEANUP_NETLINK struct mnl_socket *nl = netlink_open(NETLINK_SOCK_DIAG);
	int tracked = conntrack_tracks_loopback(), diag = nl ? socket_diag_find(nl, &nobody) : -errno;
	__u32 ids[ATTACH_TCX_MAX];
	int tcx = attach_tcx_programs(1, ATTACH_INGRESS, ids);
	struct probe *probe = arg;

	if (tracked < 0)
		probe_set(probe, PROBE_UNTRACKED, PROBE_UNKNOWN, "%s", strerror(-tracked));
	else
		probe_set(probe, PROBE_UNTRACKED, tracked ? PROBE_NO : PROBE_YES, "%s",
			  tracked ? "conntrack tracks loopback: a 429 on loopback closes its connection" : "");
	probe_set(probe, PROBE_SOCK_DIAG, diag < 0 ? PROBE_NO : PROBE_YES, "%s", diag < 0 ? strerror(-diag) : "");
	if (tcx == -EPERM)
		probe_set(probe, PROBE_TCX, PROBE_UNKNOWN, "%s", no_root);
	else
		probe_set(probe, PROBE_TCX, tcx == -EINVAL ? PROBE_NO : PROBE_YES, "%s",
			  tcx == -EINVAL ? "this kernel is older than Linux 6.6" : "");
	return 0;
}

void probe_read(struct probe *probe, int netns_fd, const char *pin_dir)
{
	read_kernel(probe);
	read_cgroup(probe);
	read_pins(probe, pin_dir);
	read_maps(probe, netns_fd, pin_dir);
	read_by_trying(probe);
	if (netns_run(netns_fd, read_inside, probe, NULL) && geteuid())
		read_inside(probe);
}
