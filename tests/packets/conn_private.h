/* SPDX-License-Identifier: GPL-2.0 */
/* Inside a connection. */
#ifndef WEIR_TESTS_PACKETS_CONN_PRIVATE_H
#define WEIR_TESTS_PACKETS_CONN_PRIVATE_H

#include "conn.h"

#define MSS 1460
#define WINDOW 60000

bool conn_chance(struct conn *c, unsigned int per_mille);
uint32_t conn_below(struct conn *c, uint32_t n);
void conn_play(struct conn *c, const struct trick *const *tricks, size_t n, struct segment *segment,
	       struct shape *shape);
void conn_send(struct conn *c, const struct segment *segment, const struct shape *shape);
void conn_stamp(struct conn *c, struct segment *segment);
struct segment conn_segment(struct conn *c, uint8_t flags, uint32_t offset);
struct segment conn_data(struct conn *c, const struct stream *stream, uint32_t offset, uint32_t length);
void conn_send_by_road(struct conn *c, struct segment *segment);
uint32_t conn_some_length(struct conn *c, uint32_t offset);
void conn_note_sent(struct conn *c, uint32_t end);
void conn_send_next(struct conn *c);
void conn_send_decoy(struct conn *c);
void conn_rewrite(struct conn *c);
void conn_send_ahead(struct conn *c);
void conn_send_burst(struct conn *c);
void conn_send_crumbs(struct conn *c);
void conn_send_control(struct conn *c);

#endif
