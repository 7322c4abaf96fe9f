/* SPDX-License-Identifier: GPL-2.0 */
/* A policy file, and what is said of it. */
#ifndef WEIR_TESTS_POLICY_SCENE_H
#define WEIR_TESTS_POLICY_SCENE_H

#include "policy/policy.h"

/* Reads a text as a file, and checks it. */
void policy_read_as_file(struct policy *policy, const char *text);
/* Each line of `expected` is "line:column path: text", of which the problem must have the beginning; behind the last one is NULL. */
void policy_check_problems(const char *text, const char *const *expected);
/* The same server with a Throttle that says this. The caller frees it. */
struct server *policy_server_with(const struct server *server, const char *spec);

#define PROBLEMS(text, ...) policy_check_problems(text, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

#endif
