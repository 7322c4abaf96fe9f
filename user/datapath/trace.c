/* SPDX-License-Identifier: GPL-2.0 */
/* The ring into which the programs write what became of each request. */
#include <errno.h>
#include <string.h>

#include "datapath/private.h"
#include "weir/conn/trace.h"

#define READ_AT_ONCE 1024 /* records, so that a flood of them leaves the agent time for other things */

struct datapath_trace_reading {
	void (*tell)(void *arg, const struct weir_trace_record *record);
	void *arg;
	unsigned int n;
};

/* What ends before its line does is from programs of another version. */
static int take_record(void *context, void *data, size_t size)
{
	const struct weir_trace_record *record = data;
	struct datapath *dp = context;
	struct datapath_trace_reading *reading = dp->reading;

	if (size >= sizeof(record->trace) && size - sizeof(record->trace) >= record->trace.line_kept)
		reading->tell(reading->arg, record);
	return ++reading->n < READ_AT_ONCE ? 0 : -EAGAIN;
}

int datapath_trace_open(struct datapath *dp, struct error *err)
{
	dp->ring = ring_buffer__new(dp->maps.trace, take_record, dp, NULL);
	return dp->ring ? 0 : datapath_map_failed(err, -errno, "trace");
}

int datapath_trace_fd(const struct datapath *dp)
{
	return ring_buffer__epoll_fd(dp->ring);
}

bool datapath_trace_read(struct datapath *dp, void (*tell)(void *arg, const struct weir_trace_record *record),
			 void *arg)
{
	struct datapath_trace_reading reading = { .tell = tell, .arg = arg };

	dp->reading = &reading;
	return ring_buffer__consume(dp->ring) == -EAGAIN;
}
