/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a server makes segments of a path (--paths), and which of them, or which header, names the namespace that a request
 * is charged to (--namespace-from): as words, and as the programs want them.
 */
#ifndef WEIR_USER_MODEL_TENANCY_H
#define WEIR_USER_MODEL_TENANCY_H

#include "base/choice.h"
#include "base/error.h"
#include "datapath/datapath.h"
#include "model/parse.h"

#define TENANCY_PREFIX 496				   /* bytes of a prefix, with a NUL */
#define TENANCY_TEXT (TENANCY_PREFIX + sizeof("prefix=/")) /* where the namespace comes from */

struct tenancy {
	enum weir_paths paths;
	enum weir_tenant tenant;
	__u32 segments;			/* with SEGMENT and PREFIX */
	char prefix[TENANCY_PREFIX];	/* with PREFIX: its segments, a slash before each */
	char header[PARSE_HEADER_SIZE]; /* with HEADER: its name in lower case; else empty */
};

extern const struct choice paths_modes; /* enum weir_paths */

/* `path`, `segment=N`, `prefix=/A/B/` or `header=NAME`. Sets all of *out but its paths; on failure it is untouched. */
int namespace_from_parse(const char *text, struct tenancy *out, struct error *err);
void namespace_from_format(const struct tenancy *tenancy, char text[static TENANCY_TEXT]);

/* In the namespace of dp, whose names have subjects of their own. */
void tenancy_apply(const struct tenancy *tenancy, const struct datapath *dp, struct weir_reading *reading);

#endif
