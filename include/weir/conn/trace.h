/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What weir says of a request: the records in the ring `trace`. One is written for each request that was decided for
 * good, when its packet is committed, as long as someone reads them. Of the request's text only its line is in it:
 * headers may hold secrets.
 */
#ifndef WEIR_CONN_TRACE_H
#define WEIR_CONN_TRACE_H

#include "weir/conn/request_reader.h"
#include "weir/http/attributes.h"
#include "weir/tcp/segment.h"

#define WEIR_TRACE_LINE 512
#define WEIR_TRACE_REQUESTS (WEIR_OUTSTANDING_MAX + 1) /* that one packet may have decided */

/*
 * Refusals are reported even when nobody traces, but only so many of each server in an interval, to leave the agent time for other things.
 * The rest are only counted. CPUs count without a lock, so a few more may be reported.
 */
#define WEIR_SAMPLE_NS (WEIR_NS_PER_S / 10)
#define WEIR_SAMPLE_REFUSALS 50

struct weir_sample {
	__u64 since_ns; /* the interval's beginning */
	__u64 told;	/* in it */
};
WEIR_ASSERT_SIZE(struct weir_sample, 16);

/* May one more be reported? */
WEIR_INLINE bool weir_sample_take(struct weir_sample *s, __u64 now_ns)
{
	if (now_ns - s->since_ns >= WEIR_SAMPLE_NS) {
		s->since_ns = now_ns;
		s->told = 0;
	}
	if (s->told >= WEIR_SAMPLE_REFUSALS)
		return false;
	s->told++;
	return true;
}

/* The attributes that have names. */
enum weir_trace_name {
	WEIR_TRACE_NAMESPACE,
	WEIR_TRACE_GROUP,
	WEIR_TRACE_RESOURCE,
	WEIR_TRACE_SUBRESOURCE,
	WEIR_TRACE_OBJECT,
	WEIR_TRACE_NAMES,
};

/* Raw bytes of the request, from its first one. length 0: nowhere. */
struct weir_trace_span {
	__u16 offset;
	__u16 length;
};

struct weir_trace {
	__u64 time_ns;		   /* CLOCK_MONOTONIC, of the packet with the head's end */
	__u64 user;		   /* subject; 0: none */
	struct weir_groups groups; /* of its user, as far as settings name them */
	struct weir_attributes attributes;
	__u64 content_length; /* with WEIR_REQUEST_HAS_LENGTH */
	__u32 server;
	__u32 start; /* client's sequence number of its first byte, with line_kept */
	__u32 head_length;
	__u32 retry_s;	   /* of a refused request; 0: it is denied */
	__u16 client_port; /* network order */
	__u16 flags;	   /* enum weir_request_flags */
	__u16 line_length; /* as in struct weir_request */
	__u16 line_kept;   /* bytes of it that follow; 0: it came in an earlier packet */
	struct weir_trace_span names[WEIR_TRACE_NAMES];
	__u8 client[16];		/* network order, IPv4 as ::ffff:a.b.c.d */
	__u8 decision;			/* enum weir_reason, of the group DECISION */
	__u8 n_refused;			/* limits that refused it */
	__u8 method;			/* enum weir_method */
	__u8 by;			/* enum weir_identified_by */
	__u8 refused[WEIR_MATCHES_MAX]; /* their slots */
	__u8 named;			/* the one of them that the answer names */
	__u8 too_many;			/* the server itself answers, and always 429 */
	__u8 pad[6];
};
WEIR_ASSERT_SIZE(struct weir_trace, 192);

/* Is a refused request answered 403? Else 429. */
WEIR_INLINE bool weir_trace_forbids(const struct weir_trace *t)
{
	return !t->retry_s && !t->too_many;
}

/* As it stands in the ring, where it ends with the last byte of line that was kept. */
struct weir_trace_record {
	struct weir_trace trace;
	char line[WEIR_TRACE_LINE];
};
WEIR_ASSERT_SIZE(struct weir_trace_record, 704);

WEIR_INLINE struct weir_trace_span weir_trace_segment(const struct weir_path *p, __u32 at)
{
	struct weir_trace_span span = {};

	if (at <= WEIR_PATH_SELECTED) {
		span.offset = p->segments[at].offset;
		span.length = p->segments[at].length;
	}
	return span;
}

/* Fills in the record of the request whose head has just been read from segment g. */
WEIR_INLINE void weir_trace_request(struct weir_trace *t, const struct weir_request_reader *reader,
				    const struct weir_attributes *a, const struct weir_segment *g)
{
	const struct weir_request *r = &reader->request;
	__u32 here = g->seq + g->len - reader->start, kept = r->line_length;

	if (kept > here)
		kept = here;
	if (kept > WEIR_TRACE_LINE)
		kept = WEIR_TRACE_LINE;
	t->attributes = *a;
	t->names[WEIR_TRACE_NAMESPACE] = weir_trace_segment(&r->path, a->namespace_at);
	t->names[WEIR_TRACE_GROUP] = weir_trace_segment(&r->path, a->group_at);
	t->names[WEIR_TRACE_RESOURCE] = weir_trace_segment(&r->path, a->resource_at);
	t->names[WEIR_TRACE_SUBRESOURCE] = weir_trace_segment(&r->path, a->subresource_at);
	t->names[WEIR_TRACE_OBJECT] = weir_trace_segment(&r->path, a->name_at);
	t->content_length = r->content_length;
	t->start = reader->start;
	t->head_length = r->head_length;
	t->flags = r->flags;
	t->method = r->method;
	t->line_length = r->line_length;
	t->line_kept = reader->whole ? kept : 0;
}

#endif
