/* SPDX-License-Identifier: GPL-2.0 */
/* Warnings of what a Throttle says in vain, where requests inside its server are limited (inside). */
#ifndef WEIR_USER_POLICY_INSIDE_H
#define WEIR_USER_POLICY_INSIDE_H

#include <stdbool.h>

struct policy;
struct policy_object;
struct server;

/* server: as the Throttle makes it. Is it to be looked into, whatever it is? */
bool policy_asks_inside(const struct server *server);
void warn_inside(struct policy *policy, const struct policy_object *throttle, const struct server *server);

#endif
