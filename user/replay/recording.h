/* SPDX-License-Identifier: GPL-2.0 */
/* A recording: what `weir trace --json` has printed, a request in each line. */
#ifndef WEIR_USER_REPLAY_RECORDING_H
#define WEIR_USER_REPLAY_RECORDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "weir/base/reason.h"
#include "weir/base/types.h"

#include "base/error.h"

/* No line is longer: the names of 127 groups, of up to 1024 bytes each, are the most of it. */
#define RECORDED_LINE_MAX (1U << 20)
#define RECORDED_TOO_LONG "it is longer than 1 MiB. Name a file that weir trace --json has written"

/* What a line does not say, and what is taken instead. */
enum recorded_missing {
	RECORDED_NO_TARGET,  /* GET / */
	RECORDED_CUT_TARGET, /* as far as it goes */
	RECORDED_NO_GROUPS,  /* none */
	RECORDED_MISSING,
};

/* All texts are borrowed from the line. */
struct recorded {
	const char *server;
	const char *user;      /* NULL: nobody: it is told apart by its address */
	const char *namespace; /* NULL: none */
	const char *client;
	const char *method;
	const char *target;
	json_t *groups;		   /* NULL: none */
	enum weir_reason decision; /* of the group DECISION */
	__u8 address[16];	   /* the client's */
	__u64 monotonic_ns;	   /* 0: not recorded */
	__u64 time_ns;		   /* since 1970 */
	bool missing[RECORDED_MISSING];
};

void recorded_clear(struct recorded *recorded);

/* -EINVAL: it is no such line. It is written to (line.h). The caller clears *out, on failure too. */
int recorded_read(char *line, size_t length, struct recorded *out, struct error *err);

#endif
