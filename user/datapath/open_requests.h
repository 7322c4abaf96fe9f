/* SPDX-License-Identifier: GPL-2.0 */
/* Requests in flight, counted by server, and by the row of who makes the load that they are of. */
#ifndef WEIR_USER_DATAPATH_OPEN_REQUESTS_H
#define WEIR_USER_DATAPATH_OPEN_REQUESTS_H

#include <stddef.h>

#include "weir/top/asked.h"

struct open_request {
	struct weir_heavy_what what;
	bool doubtful; /* it may have ended, or it may be none */
};

struct open_requests {
	struct open_request *of;
	size_t n;
};

struct open_count {
	size_t n;
	size_t doubtful; /* so many more there may be */
};

/* One that is of no row of this kind counts for its server alone. */
int open_requests_add(struct open_requests *open, enum weir_heavy_by by, const struct weir_asked *asked, bool doubtful);
/* Before they are counted, and after the last one was added. */
void open_requests_sort(struct open_requests *open);
struct open_count open_requests_of(const struct open_requests *open, const struct weir_heavy_what *what);
struct open_count open_requests_of_server(const struct open_requests *open, __u32 server);
void open_requests_clear(struct open_requests *open);

#endif
