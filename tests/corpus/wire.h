/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client that sends one stream, and weir's side of the connection (weir/conn/conn.h) in front of a server that takes bytes
 * as they come. The way to weir loses, repeats and reorders segments, cut and overlapping at random; behind it nothing is
 * lost. Nobody is refused.
 */
#ifndef CORPUS_WIRE_H
#define CORPUS_WIRE_H

#include "reading.h"

struct wire_options {
	uint64_t seed;
	uint32_t largest;			     /* bytes of a segment */
	bool preamble;				     /* the stream begins with one, of which `whole` knows nothing */
	unsigned int loss, repeat, reorder, overlap; /* per mille of segments */
};

/*
 * Plays until the server has the whole stream; false: it never gets it. `r` is what was read on the way; `whole`, from
 * which the server knows where messages end, what is read when the stream comes in one piece.
 */
bool wire_play(const struct stream *s, const struct reading *whole, const struct weir_reading *how,
	       const struct wire_options *o, struct reading *r);

#endif
