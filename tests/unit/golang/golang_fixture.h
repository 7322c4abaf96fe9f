/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A binary as Go would make one, small enough to write by hand: it never runs, but has the tables, types and functions of a
 * Kubernetes API server that weir looks for, in the form of a version of Go.
 */
#ifndef WEIR_TESTS_GOLANG_FIXTURE_H
#define WEIR_TESTS_GOLANG_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "weir/base/types.h"

#define GOLANG_FIXTURE_SIZE 0x9000

struct golang_fixture {
	__u8 file[GOLANG_FIXTURE_SIZE];
	/* What a test compares with. */
	__u64 serve, handle;		 /* addresses of functions */
	__u64 serve_begin, serve_return; /* of instructions */
	__u64 send, behind_send;
	__u64 user_itab, user_key;
	__u64 handed;  /* where Handle calls a function */
	__u64 nothing; /* a func value that does nothing */
};

enum golang_fixture_nothing {
	FIXTURE_NOTHING,
	FIXTURE_NO_NOTHING,
	FIXTURE_NOTHING_WRITABLE, /* its func value is in data that may be written to */
};

struct golang_fixture_want {
	unsigned int minor;   /* Go 1.minor */
	bool twice;	      /* a second vendored Handle */
	bool other_method;    /* the itab of flowcontrol.Interface calls another function */
	bool other_field;     /* user.DefaultInfo has its name under another name */
	bool inlined;	      /* nobody calls serverHandler.ServeHTTP */
	bool dropped_tracker; /* as Kubernetes has it from 1.28 on */
	bool unchecked;	      /* functions do not check their stack */
	bool odd_frame;	      /* frames are made by an instruction that Go does not use */
	bool other_key;	      /* a context is asked for the user under a key of another package */
	enum golang_fixture_nothing nothing;
	const char *handle;  /* its instructions before its first call: what it is to execute comes in R11 */
	size_t handle_size;  /* of them, in bytes */
	bool handle_runtime; /* that call is of a function of package runtime */
	const char *version; /* in the place of "go1.MINOR.1" */
};

void golang_fixture_make(const struct golang_fixture_want *want, struct golang_fixture *out);

/* A descriptor of a file in memory with these bytes; the caller closes it. */
int golang_fixture_open(const void *bytes, size_t size);

#endif
