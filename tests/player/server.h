/* SPDX-License-Identifier: GPL-2.0 */
/* The server: takes requests apart, checks them byte for byte and answers them in order. */
#ifndef PLAYER_SERVER_H
#define PLAYER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct world;

struct server_options {
	uint64_t delay_ns; /* before an answer, at most */
	uint64_t body_most, filler_most;
	uint64_t write_most; /* bytes in one go; 0: all */
	uint64_t pause_ns;   /* between writes, at most */
	uint64_t read_most;  /* bytes taken at a time; 0: all */
	uint64_t read_pause_ns;
	uint64_t idle_ns;				    /* it closes after that long without a request */
	uint64_t abort_ns;				    /* at that time; NEVER */
	unsigned int early, interim, empty, chunked, close; /* per mille of answers */
	bool half_close;				    /* only its own side, and it reads on */
};

struct server {
	uint64_t timer;	  /* of the next write or answer */
	uint64_t read_at; /* of the next read */
	uint64_t idle_at;
	uint64_t at; /* of the client's stream: behind the last whole request */
	uint64_t composed;
	unsigned int next;	  /* no request below this may come any more */
	bool continued;		  /* 100 was said, or passed over, for the request being read */
	bool answering, answered; /* the request being read: an answer waits for its time; is made */
	bool closing;		  /* it closes when all is written */
	bool closed, ended;
};

void server_reset(struct world *w);
void server_step(struct world *w);
/* The connection is over: what is left of the client's stream must be the beginning of a request. */
void server_check_rest(struct world *w);

#endif
