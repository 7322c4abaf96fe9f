/* SPDX-License-Identifier: GPL-2.0 */
/* What a server's binary is, and where its requests can be seen: its findings (golang/find.h) as the programs follow them. */
#ifndef WEIR_USER_INSIDE_BINARY_H
#define WEIR_USER_INSIDE_BINARY_H

#include "base/error.h"
#include "datapath/inside.h"

#define INSIDE_WHAT_SIZE 160

struct inside_binary {
	struct datapath_binary see; /* without file, device and inode */
	struct datapath_binary
		answer; /* the same, where requests are to be refused, too; without probes: they cannot be */
	struct datapath_binary write;	  /* the same, where they are refused by memory (attach --write-memory) */
	struct weir_inside_layout layout; /* addresses as in the file */
	__u64 code;			  /* where the file has its code begin */
	bool pie;			  /* a process adds to that, and to all addresses, what it was loaded at */
	char what[INSIDE_WHAT_SIZE];	  /* "kube-apiserver v1.20.2, go1.19.8" */
	struct error no_answer;		  /* why they cannot be refused */
	struct error no_write;		  /* nor by memory */
};

/* name: of the program, for `what`. Negative errno: it is no server that can be looked into, and err says why. */
int inside_binary_read(int fd, const char *name, struct inside_binary *out, struct error *err);

/* What a process whose code begins there adds to the addresses of its binary. */
int inside_load_bias(const struct inside_binary *binary, __u64 code, __u64 *bias, struct error *err);
/* Adds it to those of the layout. */
void inside_layout_move(struct weir_inside_layout *layout, __u64 bias);

#endif
