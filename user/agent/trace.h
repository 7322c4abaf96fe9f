/* SPDX-License-Identifier: GPL-2.0 */
/* Clients that are told of requests as they are decided; commands/trace.c begins it. */
#ifndef WEIR_USER_AGENT_TRACE_H
#define WEIR_USER_AGENT_TRACE_H

#include "agent/net.h"

#define ALL_SERVERS (-1)
#define NO_SERVER (-2) /* the one it was about has ended */

struct reader {
	struct agent *agent;
	struct control_client *client;
	LIST_ENTRY(reader) entry;
	int slot;      /* or ALL_SERVERS, NO_SERVER */
	json_t *lines; /* to be sent */
	bool over;     /* and then the last of all: */
	json_t *last;
	bool begins; /* its command is not answered yet: nothing is sent before */
	bool events; /* it wants refusals alone, as they are told when nobody traces (events.c) */
	bool decisions[WEIR_REASON_COUNT];
	__u64 since_ns;			   /* CLOCK_MONOTONIC: what came before is not for it */
	__u64 lost, told;		   /* requests it was not told of, and how many it knows it was not */
	__u64 ring_lost[WEIR_MAX_SERVERS]; /* the counters up to which `lost` has them */
};

static inline bool trace_follows(const struct reader *reader, int slot)
{
	return reader->slot == ALL_SERVERS || reader->slot == slot;
}

/* Reads what is in the ring now, and no more: new records may come as fast as they are read. */
void trace_read_all(struct agent *agent);
/* Brings the reader's count of what it was not told up to date. */
void trace_count_lost(struct reader *reader);
/* What was lost before is nobody's. */
void trace_begin_counting(struct reader *reader);
/* To write the requests that somebody follows, and no others. */
void trace_ask_kernel(struct agent *agent);
/* The client of the reader arg wants to end: it still gets what was decided up to now. */
void trace_reader_ended(void *arg);

/* Reads what the programs of a namespace have written, for the readers: any thread may. */
void trace_read(struct net *net);
/* Sends readers what there is for them: the event loop alone may. */
void trace_flush(struct agent *agent);
/* Has the kernel trace what readers want, for a while: to be called again each second. Tells them what was lost. */
void trace_refresh(struct agent *agent);
/* A server has come into force: who reads of all servers reads of it, too. */
void trace_server_begins(struct agent *agent);
/* A server is about to end: clients that follow this server alone are told. */
void trace_server_ends(struct agent *agent, int slot);

#endif
