/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel side of one network namespace: its maps and programs, pinned in one directory, and the links of its
 * interfaces. All functions return 0 or a negative errno with err filled in. Nothing here prints.
 *
 * One thread at a time works with a datapath. Another one may meanwhile use what only reads the kernel's counts and names
 * (datapath_counters(), _limit_counts(), _in_flight(), _top(), _name(), _subject(), _conns_max(), _links()), and the
 * functions of the trace; a third one may sweep.
 *
 * Pins: PIN_DIR/net-COOKIE/{map name}, .../prog-{ingress,egress}, .../link-IFINDEX-{ingress,egress} (tcx only),
 * .../link-{cgroup,sockops}-ID, .../link-IFINDEX-xdp.
 * Everything survives the process: datapath_close() leaves it in force, datapath_open() takes over what is there,
 * replaces the programs on the links it finds and never resets a map.
 */
#ifndef WEIR_USER_DATAPATH_DATAPATH_H
#define WEIR_USER_DATAPATH_DATAPATH_H

#include "weir/abi/abi.h"

#include "base/error.h"
#include "datapath/address.h"
#include "datapath/conns.h"
#include "datapath/counters.h"
#include "datapath/explain.h"
#include "datapath/heavy.h"
#include "datapath/hold.h"
#include "datapath/identity.h"
#include "datapath/limits.h"
#include "datapath/links.h"
#include "datapath/names.h"
#include "datapath/part.h"
#include "datapath/rules.h"
#include "datapath/servers.h"
#include "datapath/trace.h"
#include "datapath/try.h"

struct datapath;

struct datapath_options {
	const char *pin_dir; /* on a bpffs */
	int netns_fd;	     /* owned by the caller; must stay open as long as the datapath */
	__u64 netns_cookie;
	__u32 conns_max; /* 0: WEIR_DEFAULT_CONNS */
};

/*
 * Where the kernel refuses the program that holds what cannot be read, it goes without it: datapath_hold_sync() fails then.
 * Any other program that is refused is an error.
 */
int datapath_open(struct datapath **out, const struct datapath_options *options, struct error *err);
/* dir: PIN_DIR/net-COOKIE. 0: this version can take over what is pinned there, if anything is. -EPROTO: another version has made it. */
int datapath_version_check(const char *dir, struct error *err);
void datapath_close(struct datapath *dp);

/*
 * What all servers of the namespace share: settings, answers, pins; and entries of servers that are not among these are
 * dropped.
 */
struct datapath_servers {
	bool has[WEIR_MAX_SERVERS];
};
int datapath_shared_sync(struct datapath *dp, const struct datapath_servers *servers, struct error *err);

/* Since it was opened. */
const struct datapath_written *datapath_written(const struct datapath *dp);

/* Takes programs off every interface and removes every pin of this namespace. The datapath must then be closed. */
int datapath_remove(struct datapath *dp, struct error *err);

#endif
