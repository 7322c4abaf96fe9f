/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One end of a TCP connection (RFC 9293, with RFC 2018, 2883, 5961, 7323 and 8985's probe), written apart from the code
 * under test: inside it every position is a 64-bit offset from the initial sequence number (0 the SYN, 1 the first
 * byte), and only what goes over the wire is cut to 32 bits. It forgives nothing: an acknowledgement of what was never
 * sent, bytes that differ from those received before, or an echoed time stamp of the future fail the schedule.
 */
#ifndef PLAYER_TCP_H
#define PLAYER_TCP_H

#include "net.h"
#include "ranges.h"

#define STREAM_ROOM (2U << 20) /* bytes that one side may send in one schedule */

struct world;

enum side {
	CLIENT,
	SERVER,
	SIDES,
};

enum tcp_state {
	TCP_CLOSED, /* answers everything with RST */
	TCP_LISTEN,
	TCP_SYN_SENT,
	TCP_SYN_RECEIVED,
	TCP_OPEN, /* ESTABLISHED, and what follows it until both FINs are acknowledged */
	TCP_TIME_WAIT,
};

enum tcp_timer {
	TCP_RETRANSMIT, /* also the persist timer */
	TCP_TAIL_PROBE,
	TCP_DELAYED_ACK,
	TCP_KEEPALIVE,
	TCP_LINGER,
	TCP_TIMERS,
};

enum tcp_end {
	TCP_END_NONE,
	TCP_END_CLEAN, /* both FINs acknowledged */
	TCP_END_RESET, /* by the peer */
	TCP_END_ABORT, /* by this side's application */
	TCP_END_TIMEOUT,
};

struct tcp_options {
	uint32_t isn, mss;
	uint32_t room;	 /* receive buffer in bytes */
	uint32_t flight; /* segments sent ahead of acknowledgements, at most */
	uint32_t clock;	 /* time stamps' origin */
	uint64_t rto_ns, tail_probe_ns, delayed_ack_ns, keepalive_ns; /* 0: none, for the middle two */
	uint8_t scale;
	bool timestamps, sack; /* both sides alike */
	bool keepalive_byte, window_probe_byte, fin_apart;
	unsigned int resegment; /* per mille of segments cut at a random place */
};

struct tcp {
	struct world *w;
	enum side side;
	struct tcp_options o;
	enum tcp_state state;
	enum tcp_end end;
	uint64_t timer[TCP_TIMERS];

	uint32_t iss, irs;
	uint8_t *out;	  /* what the application wrote, STREAM_ROOM bytes */
	uint64_t written; /* bytes */
	bool shut;	  /* no more will be written */
	uint64_t una, next;
	uint64_t window;    /* bytes the peer takes beyond una */
	uint64_t window_at; /* peer's offset of the segment that set the window */
	struct ranges sacked;
	bool recovering, probed;
	uint64_t recover, resend;
	unsigned int backoff, tries, duplicates;

	uint8_t *in;	   /* STREAM_ROOM bytes; valid below `received` and in `early` */
	uint64_t received; /* next offset expected */
	uint64_t read;	   /* next offset the application has not taken */
	uint64_t edge;	   /* right edge of the window as offered */
	struct ranges early;
	uint64_t early_last;	   /* start of what came early last: its SACK block goes first */
	struct range again;	   /* to be reported as a D-SACK */
	uint64_t fin_at;	   /* the peer's FIN, with fin_known */
	bool fin_known, fin_first; /* fin_first: it came before this side's own */
	bool read_shut;		   /* the application wants no more: new data is answered with RST */
	unsigned int unacknowledged;
	uint32_t ts_recent;
	uint64_t acked;		/* latest acknowledgement sent */
	uint64_t challenged_ns; /* no answer before to what is not acceptable and carries nothing */
};

void tcp_reset(struct tcp *t, struct world *w, enum side side, const struct tcp_options *o);
void tcp_listen(struct tcp *t);
void tcp_connect(struct tcp *t);
void tcp_receive(struct tcp *t, const struct packet *p);
void tcp_timer(struct tcp *t, enum tcp_timer which);

/* For the application. Bytes are put into t->out by the caller; this many more of them may go, `last`: and a FIN. */
void tcp_write(struct tcp *t, uint64_t length, bool last);
void tcp_shutdown(struct tcp *t);
void tcp_close(struct tcp *t);
void tcp_abort(struct tcp *t);
/* Takes up to `length` bytes that have come in order. */
void tcp_read(struct tcp *t, uint64_t length);
/* The peer's FIN has come, and all before it was read. */
bool tcp_at_eof(const struct tcp *t);

/* Between the files of this endpoint. */
void tcp_send(struct tcp *t, uint64_t at, uint64_t length, uint8_t flags);
void tcp_acknowledge(struct tcp *t);
void tcp_output(struct tcp *t);
void tcp_finish(struct tcp *t, enum tcp_end end);
uint32_t tcp_clock(const struct tcp *t);

static inline uint64_t tcp_data_end(const struct tcp *t)
{
	return 1 + t->written;
}

static inline bool tcp_fin_sent(const struct tcp *t)
{
	return t->shut && t->next > tcp_data_end(t);
}

static inline bool tcp_fin_acked(const struct tcp *t)
{
	return t->shut && t->una > tcp_data_end(t);
}

static inline bool tcp_fin_received(const struct tcp *t)
{
	return t->fin_known && t->received > t->fin_at;
}

#endif
