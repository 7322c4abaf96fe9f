/* SPDX-License-Identifier: GPL-2.0 */
/* What weir's request machine reads in a stream that comes in one piece. */
#ifndef CORPUS_READING_H
#define CORPUS_READING_H

#include "stream.h"
#include "weir/conn/conn.h"

#define MESSAGES_MAX 128

/* A request; offsets are in the stream. */
struct message {
	size_t start, head_end, end; /* end: 0 when it does not come to one */
	struct weir_request head;    /* as it was at the head's end */
};

struct reading {
	struct message message[MESSAGES_MAX];
	unsigned int messages;
	size_t rest; /* offset behind the last message that came to its end */
	struct weir_preamble preamble;
	__u16 lost; /* enum weir_reason; WEIR_REASON_NONE: it was not */
	char *text; /* as it stands in a stream's file */
};

void reading_make(struct reading *r, const struct stream *s, const struct weir_reading *how);
void reading_free(struct reading *r);

#endif
