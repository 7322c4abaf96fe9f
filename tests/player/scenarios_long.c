/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transfers of gigabytes before and after a cut, in segments of a megabyte, straight through the connection logic: every
 * number is compared with one that was reckoned in 64 bits.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../busy_keeper.h"
#include "../digest_keys.h"
#include "scenarios.h"

#define MIB (1U << 20)
#define LONG_MIB (3 * 1024ULL) /* more than half the number space, and more than the marks may trail */
#define ANSWER 100

struct flow {
	struct world *w;
	struct weir_conn c;
	struct weir_busy busy;
	const uint8_t *filler; /* a megabyte */
	uint32_t client_isn, server_isn;
	uint64_t client_at, server_at; /* next byte of each, in its own numbers */
	uint64_t cut, put;	       /* bytes cut from the client's stream, put into the server's */
};

static bool expect_number(struct flow *f, const char *what, uint32_t is, uint32_t should)
{
	if (is != should)
		world_fail(f->w, "%s is %u and should be %u, client at %llu, server at %llu", what, is, should,
			   (unsigned long long)f->client_at, (unsigned long long)f->server_at);
	return is == should;
}

static struct weir_segment client_segment(const struct flow *f, uint32_t length)
{
	return (struct weir_segment){
		.seq = f->client_isn + f->client_at,
		.ack = f->server_isn + f->server_at + f->put,
		.len = length,
		.flags = WEIR_TCP_ACK,
		.window = 1000,
	};
}

static enum weir_action client_steps(struct flow *f, const struct weir_segment *g, const uint8_t *data, bool shed)
{
	static const struct weir_socket nobody = { .asked = 1 };
	static const struct weir_reading reading;
	struct weir_request_reader r = { 0 };
	enum weir_reason why = WEIR_REASON_NONE;
	enum weir_action action = weir_conn_begin_client(&f->c, busy_there(&f->c, &f->busy), &nobody, g, &r, &why);

	if (action != WEIR_FRAME)
		return action;
	while (seq_before(r.next, g->seq + g->len)) {
		if (weir_request_reader_feed(&r, &reading, &digest_keys, data[r.next - g->seq]) != WEIR_FRAME_HEAD)
			continue;
		r.shed = shed && r.why_not == WEIR_REASON_NONE;
		if (r.shed)
			break;
		weir_request_reader_passed(&r);
	}
	r.answer = (struct weir_answer_choice){ .length = ANSWER, .kind = WEIR_ANSWER_KEEP };
	return kept_commit_client(&f->c, &f->busy, g, &r, &why);
}

static bool client_passes(struct flow *f, const uint8_t *data, uint32_t length)
{
	struct weir_segment g = client_segment(f, length);
	struct weir_view view = { 0 };

	if (!expect(f->w, client_steps(f, &g, data, false) == WEIR_PASS, "a client's segment passes"))
		return false;
	weir_conn_look(&f->c, &g, WEIR_PASS, &view);
	weir_splice_to_server(&view.splice, &g);
	if (!expect_number(f, "seq to the server", g.seq, f->client_isn + f->client_at - f->cut) ||
	    !expect_number(f, "ack to the server", g.ack, f->server_isn + f->server_at))
		return false;
	f->client_at += length;
	return true;
}

static bool server_passes(struct flow *f, const uint8_t *data, uint32_t length)
{
	struct weir_segment g = {
		.seq = f->server_isn + f->server_at,
		.ack = f->client_isn + f->client_at - f->cut,
		.len = length,
		.flags = WEIR_TCP_ACK,
		.window = 1000,
	};
	struct weir_response_reader r = { 0 };
	enum weir_reason why = WEIR_REASON_NONE;
	enum weir_action action = weir_conn_begin_server(&f->c, busy_there(&f->c, &f->busy), &g, &r, &why);
	struct weir_view view = { 0 };

	if (action == WEIR_FRAME) {
		while (r.lost == WEIR_REASON_NONE && seq_before(r.next, g.seq + g.len))
			weir_response_reader_feed(&r, data[r.next - g.seq]);
		kept_commit_server(&f->c, &f->busy, &r, &why);
	}
	if (!expect(f->w, action != WEIR_DROP && why == WEIR_REASON_NONE, "a server's segment passes and is followed"))
		return false;
	weir_conn_look(&f->c, &g, WEIR_PASS, &view);
	weir_splice_to_client(&view.splice, &g);
	if (!expect_number(f, "seq to the client", g.seq, f->server_isn + f->server_at + f->put) ||
	    !expect_number(f, "ack to the client", g.ack, f->client_isn + f->client_at))
		return false;
	f->server_at += length;
	return true;
}

static bool request(struct flow *f, uint64_t body)
{
	char text[100];
	int length = snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nContent-Length: %llu\r\n\r\n",
			      (unsigned long long)body);

	return client_passes(f, (const uint8_t *)text, length) && server_passes(f, NULL, 0);
}

static bool response(struct flow *f, uint64_t body)
{
	char text[100];
	int length = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n",
			      (unsigned long long)body);

	return server_passes(f, (const uint8_t *)text, length) && client_passes(f, NULL, 0);
}

static bool shed(struct flow *f)
{
	static const char text[] = "GET / HTTP/1.1\r\n\r\n";
	struct weir_segment g = client_segment(f, sizeof(text) - 1), reply;
	enum weir_action action = client_steps(f, &g, (const uint8_t *)text, true);
	struct weir_view view = { 0 };

	if (!expect(f->w, action == WEIR_ANSWER, "the request is answered"))
		return false;
	weir_conn_look(&f->c, &g, action, &view);
	weir_view_reply(&view, &g, action, &reply);
	f->client_at += g.len;
	if (!expect_number(f, "seq of the answer", reply.seq, f->server_isn + f->server_at + f->put) ||
	    !expect_number(f, "ack of the answer", reply.ack, f->client_isn + f->client_at))
		return false;
	f->cut += g.len;
	f->put += ANSWER;
	return client_passes(f, NULL, 0);
}

static bool shed_some(struct flow *f, int n)
{
	while (n--) {
		if (!shed(f))
			return false;
	}
	return true;
}

static bool upload(struct flow *f, uint64_t mib)
{
	if (!request(f, mib * MIB))
		return false;
	for (uint64_t i = 0; i < mib; i++) {
		if (!client_passes(f, f->filler, MIB) || !server_passes(f, NULL, 0))
			return false;
	}
	return response(f, 0);
}

static bool download(struct flow *f, uint64_t mib)
{
	if (!request(f, 0) || !response(f, mib * MIB))
		return false;
	for (uint64_t i = 0; i < mib; i++) {
		if (!server_passes(f, f->filler, MIB) || !client_passes(f, NULL, 0))
			return false;
	}
	return true;
}

static struct flow flow(struct world *w)
{
	static uint8_t filler[MIB];
	struct flow f = {
		.w = w, .filler = filler, .client_isn = -5U, .server_isn = 0x7ffffff0, .client_at = 1, .server_at = 1
	};

	w->failed = false;
	memset(filler, 'x', sizeof(filler));
	weir_conn_open(&f.c, 0, WEIR_PHASE_FOLLOWED, f.client_isn + 1, f.server_isn + 1, 1000);
	return f;
}

static bool play_long(struct world *w, uint64_t up_mib, uint64_t down_mib)
{
	struct flow f = flow(w);

	for (int i = 0; i < 4; i++) {
		if (!shed_some(&f, 2) || !upload(&f, up_mib) || !shed_some(&f, 1) || !download(&f, down_mib) ||
		    !shed_some(&f, 1) || !upload(&f, 1))
			return false;
	}
	return expect(w, f.c.splice.cuts == 16, "every cut was made");
}

static bool long_upload(struct world *w)
{
	return play_long(w, LONG_MIB, 1);
}

static bool long_download(struct world *w)
{
	return play_long(w, 1, LONG_MIB);
}

static bool long_before(struct world *w)
{
	struct flow up = flow(w), down = up;

	return upload(&up, LONG_MIB) && shed_some(&up, 2) && download(&down, LONG_MIB) && shed_some(&down, 2);
}

const struct scenario scenarios_long[] = {
	{ "gigabytes upwards after a cut", long_upload },
	{ "gigabytes downwards after a cut", long_download },
	{ "gigabytes before the first cut", long_before },
	{ 0 },
};
