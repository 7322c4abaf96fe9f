/* SPDX-License-Identifier: GPL-2.0 */
/* A connection whose server may not take, or may never get, what was read of the client's: its socket can be asked. */
#ifndef WEIR_TESTS_DOUBT_SCENE_H
#define WEIR_TESTS_DOUBT_SCENE_H

#include "weir/conn/conn.h"

#define CLIENT 0xffffff80U /* the stream wraps around */
#define SERVER 1000U
#define WINDOW 500
#define SCALE 3

#define GET "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
#define DECOY "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n"
#define OK "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

struct doubt_scene {
	struct weir_conn conn;
	struct weir_busy busy;
	struct weir_socket socket; /* what the kernel would say */
	__u32 asks;
	__u32 got;   /* requests that were read in the latest segment */
	__u32 start; /* of what was cut off it */
	__u32 sent;  /* of the server */
	bool serves_bodies;
	enum weir_reason why;
};

void doubt_open(struct doubt_scene *s);
struct weir_segment doubt_segment(const struct doubt_scene *s, __u32 at, __u32 length);
/* A segment of the client's, as the program on its way takes it. */
enum weir_action doubt_offer(struct doubt_scene *s, const struct weir_segment *g, const char *text, bool shed);
/* The same of an ordinary one, of which nothing is shed. */
enum weir_action doubt_send(struct doubt_scene *s, __u32 at, const char *text);
/* The server has the client's stream up to `next`, says so, and answers if it has anything to say. */
void doubt_server_has(struct doubt_scene *s, __u32 next, const char *text);
/* The same; why the connection cannot be read on. */
enum weir_reason doubt_server_says(struct doubt_scene *s, __u32 next, const char *text);
/* The same, where that answers a request whose body has not come to its end. */
void doubt_server_answers_early(struct doubt_scene *s, __u32 next, const char *text);
/* What was under way has arrived, or is lost. */
void doubt_later(struct doubt_scene *s);
void doubt_check_at(const struct doubt_scene *s, __u32 next, __u32 requests);

#endif
