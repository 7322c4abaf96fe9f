/* SPDX-License-Identifier: GPL-2.0 */
/* Whether conntrack follows loopback connections: it would see both sequence spaces of a translated one. */
#ifndef WEIR_USER_SYS_CONNTRACK_H
#define WEIR_USER_SYS_CONNTRACK_H

/*
 * Opens loopback connections of its own in the caller's network namespace and asks whether they are tracked (in the
 * default zone). 1 yes, 0 no. -errno: there is no telling, as no connection could be made; -ETIMEDOUT: in good time.
 */
int conntrack_tracks_loopback(void);

#endif
