/* SPDX-License-Identifier: GPL-2.0 */
/* The client: writes requests, and expects exactly their answers, in order. */
#ifndef PLAYER_CLIENT_H
#define PLAYER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

struct world;

enum farewell {
	FAREWELL_CLOSE,
	FAREWELL_SHUTDOWN, /* and read on until the server closes */
	FAREWELL_ABORT,
	FAREWELL_STAY, /* until the server closes */
};

struct client_options {
	unsigned int exchanges;
	unsigned int depth;				 /* requests written ahead of answers: 1 for one at a time */
	unsigned int body, head, chunked, expect, close; /* per mille of requests */
	unsigned int ambiguous;				 /* likewise */
	uint64_t body_most, filler_most;
	uint64_t write_most;		/* bytes in one go; 0: all */
	uint64_t pause_ns;		/* between writes, at most */
	uint64_t think_ns;		/* before a request, at most */
	uint64_t abort_ns, shutdown_ns; /* at that time; NEVER */
	uint64_t notice_ns;		/* it notices the server's FIN so long after */
	enum farewell farewell;
	bool last_with_fin; /* the last request's last bytes bring the FIN */
	bool gives_up_body; /* closes when it is answered before its body is written */
};

struct client {
	uint64_t timer;	   /* nothing is written before */
	uint64_t composed; /* bytes of requests made so far, not all of them written */
	uint64_t at;	   /* of the server's stream: behind the last whole answer */
	uint64_t interim;  /* of the server's stream: behind what was looked at */
	unsigned int made, answered;
	bool continued;	     /* 100 has come for the request being written */
	uint64_t notices_at; /* the server's FIN; 0: it has not come */
	bool leaving;	     /* it has said its farewell */
	bool early;	     /* it did so before its last answer */
	bool ended;	     /* it has seen the connection's end */
};

void client_reset(struct world *w);
void client_step(struct world *w);
void client_check_rest(struct world *w);

#endif
