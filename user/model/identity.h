/* SPDX-License-Identifier: GPL-2.0 */
/* How a server's requests are identified, as part of the desired state (state.h): plain values and their JSON. */
#ifndef WEIR_USER_MODEL_IDENTITY_H
#define WEIR_USER_MODEL_IDENTITY_H

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/texts.h"
#include "model/parse.h"

struct identity_settings {
	char user_header[PARSE_HEADER_SIZE], group_header[PARSE_HEADER_SIZE]; /* lower case */
	struct texts exempt_groups, exempt_users;			      /* the users canonical (parse_subject) */
	struct texts rule_groups; /* those that rules name, each in the place that is its bit (identity.c); "": free */
	char *token_file, *address_file; /* absolute paths; NULL: none */
	__u64 newcomers_per_ns; /* subjects new to a limit that may get a bucket: the rate as the kernel counts it */
	__u32 newcomers;	/* burst; 0: all of them */
	struct texts addresses; /* rows like those of the file (identity_file.h) */
};

/* A new reference. */
json_t *identity_settings_to_json(const struct identity_settings *settings);

/* json: NULL, or an object in which what is not given has its default. Caller clears *out, on failure too. */
int identity_settings_from_json(json_t *json, struct identity_settings *out, struct error *err);
/* QPS or QPS:BURST, as the command line has it. */
int newcomers_parse(const char *text, __u64 *per_ns, __u32 *burst, struct error *err);
void identity_settings_clear(struct identity_settings *settings);

#endif
