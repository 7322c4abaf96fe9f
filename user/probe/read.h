/* SPDX-License-Identifier: GPL-2.0 */
/* The facts of probe.h, and what is on the devices of a namespace. Nothing is left behind. */
#ifndef WEIR_USER_PROBE_READ_H
#define WEIR_USER_PROBE_READ_H

#include <jansson.h>

#include "base/error.h"
#include "probe/probe.h"

/* All but PROGRAMS and HOLD_PROGRAM, which take a second: probe_programs() has them. */
void probe_read(struct probe *probe, int netns_fd, const char *pin_dir);
void probe_programs(struct probe *probe);

/*
 * *out: [{name, attached: null or why the programs are not for it, ingress, egress: [{by, program, id, priority, weir}] in the
 * order in which they run, with weir's own where they will be, offloads: [NAME], big_tcp, gso_max, gro_max}].
 */
int probe_devices(int netns_fd, json_t **out, struct error *err);

#endif
