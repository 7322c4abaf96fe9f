/* SPDX-License-Identifier: GPL-2.0 */
/* Which server owns which port and address. */
#ifndef WEIR_USER_DATAPATH_LISTENS_H
#define WEIR_USER_DATAPATH_LISTENS_H

#include "datapath/private.h"

/* -EADDRINUSE: one of them is another server's. */
int listens_check(struct datapath *dp, __u32 slot, const struct datapath_listen *listens, size_t n, struct error *err);
/* The server has these and no others. */
int listens_set(struct datapath *dp, __u32 slot, const struct datapath_listen *listens, size_t n, struct error *err);

/* The map of ports in our memory, as the kernel changes it: WEIR_PORTS entries, or NULL and errno. Unmapped by CLEANUP_PORTS. */
const struct weir_port *ports_map(const struct datapath *dp);
void ports_unmap(const struct weir_port **ports);
#define CLEANUP_PORTS __attribute__((cleanup(ports_unmap)))

#endif
