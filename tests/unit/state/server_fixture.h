/* SPDX-License-Identifier: GPL-2.0 */
/* Servers for tests, made of what is saved of them. */
#ifndef WEIR_TESTS_SERVER_FIXTURE_H
#define WEIR_TESTS_SERVER_FIXTURE_H

#include "state/state.h"

/* A server that has something else than the default everywhere, as it is saved. */
extern const char server_with_all[];

/* As server_from_json(), of a text that is JSON. */
int read_server(const char *text, struct server **server, struct error *err);
/* The server of a text in which nothing is wrong. Caller frees it. */
struct server *make_server(const char *text);
/* A server in the namespace with this cookie; listens: a list, in JSON. Caller frees it. */
struct server *server_at(const char *name, __u64 cookie, const char *listens);

#endif
