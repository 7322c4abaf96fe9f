/* SPDX-License-Identifier: GPL-2.0 */
/* A client's stream on its way to the socket, piece by piece, and what came of it. */
#ifndef WEIR_TESTS_HOLD_SCENE_H
#define WEIR_TESTS_HOLD_SCENE_H

#include "weir/conn/hold.h"
#include "weir/conn/hold_ahead.h"
#include "weir/conn/server.h"

#define START 0xfffffff0U /* the stream wraps around */
#define ROOM 8192

/* A connection, the client's stream, and what came of it. */
struct hold_scene {
	bool unseen; /* what is offered has come by a way on which nothing is read */
	struct weir_conn conn;
	struct weir_socket socket;
	__u8 stream[ROOM];
	__u32 size;
	__u64 now_ns, held_ns;
	__u32 records, weight;
	enum weir_reason why;
};

void hold_open(struct hold_scene *s, enum weir_phase phase);
void hold_open_tls(struct hold_scene *s);
/* A record of so many bytes of body at the stream's end. */
void hold_add(struct hold_scene *s, __u8 type, __u32 length);

struct weir_segment hold_segment(__u32 at, __u32 length);
/* The reader has begun a segment: it is fed those bytes of the stream, which begins at START. */
void hold_read(const __u8 *stream, const struct weir_segment *g, struct weir_hold_reader *r);
/* One segment on its way to the socket; `refuse`: the limits do so if it weighs anything. */
enum weir_action hold_offer(struct hold_scene *s, __u32 at, __u32 length, bool refuse);
/* The same of one that ends the stream. */
enum weir_action hold_offer_end(struct hold_scene *s, __u32 at, __u32 length, bool refuse);
/* The server's first segment, before anybody has asked; why the connection is not read behind it. */
enum weir_reason hold_server_speaks(struct hold_scene *s, const __u8 *bytes, __u32 length);
/* So much has passed. */
void hold_check(const struct hold_scene *s, __u32 records, __u32 weight);

#endif
