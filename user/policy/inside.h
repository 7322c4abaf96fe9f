/* SPDX-License-Identifier: GPL-2.0 */
/* Warnings of what a Throttle says in vain, where requests inside its server are limited (inside). */
#ifndef WEIR_USER_POLICY_INSIDE_H
#define WEIR_USER_POLICY_INSIDE_H

struct policy;
struct policy_object;
struct server;

/* server: as the Throttle makes it. */
void warn_inside(struct policy *policy, const struct policy_object *throttle, const struct server *server);

#endif
