/* SPDX-License-Identifier: GPL-2.0 */
/* Requests in flight, counted by server and subject. */
#ifndef WEIR_USER_DATAPATH_OPEN_REQUESTS_H
#define WEIR_USER_DATAPATH_OPEN_REQUESTS_H

#include <stddef.h>

#include "weir/base/types.h"

struct open_request {
	__u32 server;
	__u64 subject;
};

struct open_requests {
	struct open_request *of;
	size_t n, room;
};

int open_requests_add(struct open_requests *open, __u32 server, __u64 subject);
/* Before they are counted, and after the last one was added. */
void open_requests_sort(struct open_requests *open);
size_t open_requests_of(const struct open_requests *open, __u32 server, __u64 subject);
size_t open_requests_of_server(const struct open_requests *open, __u32 server);
void open_requests_clear(struct open_requests *open);

#endif
