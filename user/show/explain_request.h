/* SPDX-License-Identifier: GPL-2.0 */
/* The request, or the connection, that `weir explain` is asked about: as JSON, and as the bytes that a client would send. */
#ifndef WEIR_USER_SHOW_EXPLAIN_REQUEST_H
#define WEIR_USER_SHOW_EXPLAIN_REQUEST_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "model/identity.h"

struct explain_request {
	int connection; /* a new one is asked about: of all below only the source matters */
	const char *method, *path;
	const char *user;   /* NULL: as the headers and the source have it */
	json_t *groups;	    /* names; NULL: none */
	json_t *headers;    /* "Name: value"; NULL: none */
	const char *source; /* the peer's address; NULL: 127.0.0.1 */
	const char *body;   /* NULL: none */
	__u8 address[16];   /* of the source, as the kernel has it */
};

/* 0, or -EINVAL: such a thing cannot stand in a request. */
int explain_check_method(const char *text, struct error *err);
int explain_check_path(const char *text, struct error *err);
int explain_check_header(const char *text, struct error *err);
int explain_check_source(const char *text, __u8 address[static 16], struct error *err);

/* Borrows from the JSON, whose members are those of the struct; -EINVAL. */
int explain_request_from_json(json_t *json, struct explain_request *out, struct error *err);

/* *length is 0 of a connection. User and groups become the headers of these names. The caller frees it; NULL without memory. */
char *explain_request_bytes(const struct explain_request *request, const struct identity_settings *identity,
			    size_t *length);

#endif
