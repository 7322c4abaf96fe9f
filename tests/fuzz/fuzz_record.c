/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client's TLS stream: byte by byte, again with bodies skipped, and through the hold of a connection in segments. The
 * input's first byte tells whether it is joined in mid-stream (bit 0) and how long the segments are (the others).
 */
#include "weir/conn/hold.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* What came out of a stream. */
struct outcome {
	uint64_t events;
	uint32_t records, weight;
	size_t used;
	bool lost;
};

static void note(struct outcome *o, const struct weir_record *r, enum weir_frame_event event)
{
	o->events = (o->events ^ (o->used * 4 + event)) * 0x9e3779b97f4a7c15ULL;
	o->lost = event == WEIR_FRAME_LOST;
	if (event != WEIR_FRAME_HEAD)
		return;
	assert(r->type >= WEIR_RECORD_CIPHER && r->type <= WEIR_RECORD_HEARTBEAT && r->minor <= 4);
	assert(r->length <= WEIR_RECORD_MAX && weir_record_skippable(r) == r->length);
	assert(weir_record_weight(r) <= 1 + (WEIR_RECORD_MAX - 1) / WEIR_RECORD_SHARE);
	assert(!weir_record_weight(r) || r->type == WEIR_RECORD_DATA || !r->flight);
	o->records += !!weir_record_weight(r);
	o->weight += weir_record_weight(r);
}

/* step 0: never skips */
static void run(struct outcome *o, bool midway, const uint8_t *data, size_t size, size_t step)
{
	struct weir_record r;

	memset(o, 0, sizeof(*o));
	memset(&r, 0xa5, sizeof(r));
	if (midway)
		weir_record_start_midway(&r);
	else
		weir_record_start(&r);
	while (o->used < size && !o->lost) {
		size_t n = weir_record_skippable(&r), left = size - o->used;
		enum weir_frame_event event;

		n = n < left ? n : left;
		n = n < step ? n : step;
		event = n ? weir_record_skip(&r, n) : weir_record_byte(&r, data[o->used]);
		o->used += n ? n : 1;
		if (event != WEIR_FRAME_MORE)
			note(o, &r, event);
	}
}

/* As one segment after the other; what it costs until a record is lost is what the machine said. */
static void run_held(struct outcome *o, bool midway, const uint8_t *data, size_t size, size_t segment)
{
	const struct weir_socket socket = { .listens = 1 };
	struct weir_conn c = {};

	memset(o, 0, sizeof(*o));
	weir_conn_open(&c, 0, WEIR_PHASE_FOLLOWED, 0, 0, 0);
	weir_conn_opaque(&c, 0, WEIR_TLS);
	if (midway)
		weir_record_start_midway(&c.hold.record);
	for (size_t at = 0; at < size && !o->lost; at += segment) {
		struct weir_segment g = { .seq = at, .len = size - at < segment ? size - at : segment };
		enum weir_reason why = WEIR_REASON_NONE;
		struct weir_hold_reader r;
		__u64 held_ns = 0;

		if (weir_hold_begin(&c, &socket, &g, true, &r, &why) != WEIR_FRAME)
			continue;
		while (r.by_records && r.next < g.seq + g.len)
			weir_hold_reader_feed(&r, data[r.next]);
		o->lost = !r.by_records;
		weir_hold_reader_end(&r, &g);
		assert(weir_hold_commit(&c, &r, 1, &held_ns, &why) == WEIR_PASS && why == WEIR_REASON_NONE && !held_ns);
		/* What was lost may be HTTP: it is charged until the server has it, so the position is the socket's. */
		assert(o->lost ? c.hold.next == r.acked : c.hold.next - g.seq >= g.len);
		if (o->lost)
			break;
		o->records += r.records;
		o->weight += r.weight;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = { 1, 3, SIZE_MAX };
	struct outcome one, other;
	bool midway;

	if (!size)
		return 0;
	midway = data[0] & 1;
	run(&one, midway, data + 1, size - 1, 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		run(&other, midway, data + 1, size - 1, steps[i]);
		assert(one.events == other.events && one.used == other.used && one.weight == other.weight);
	}
	run_held(&other, midway, data + 1, size - 1, (data[0] >> 1) + 1);
	assert(one.lost == other.lost);
	assert(one.lost || (one.records == other.records && one.weight == other.weight));
	return 0;
}
