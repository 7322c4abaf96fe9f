/* SPDX-License-Identifier: GPL-2.0 */
/* Heads that have come before on this CPU, at the begin of a packet's payload: include/weir/http/head_cache.h on its maps. */
#ifndef WEIR_BPF_HEAD_CACHE_H
#define WEIR_BPF_HEAD_CACHE_H

#include "weir/http/head_cache.h"

#include "window.h"

/* Of each kind on each CPU; a power of 2. Where two have the same place, the later one has it. */
#define CACHED_HEADS 64

/* Random for each load (user/datapath/programs.c): what these programs have read is another reading to the next ones that are loaded. */
const volatile __u64 digest_keys[sizeof(struct weir_digest_keys) / 8] SEC(".rodata.keys") = {};

/* To a compiler they are all 0. */
static __always_inline const struct weir_digest_keys *digest_keys_of(void)
{
	const struct weir_digest_keys *keys = (const struct weir_digest_keys *)digest_keys;

	WEIR_BARRIER(keys);
	return keys;
}

/* Only weir_ingress has the first of these, and weir_egress the second: nobody else writes to an entry meanwhile. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CACHED_HEADS);
	__type(key, __u32);
	__type(value, struct weir_cached_request);
} request_cache SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CACHED_HEADS);
	__type(key, __u32);
	__type(value, struct weir_cached_response);
} response_cache SEC(".maps");

static __always_inline struct weir_cached_request *cached_request(const struct work *w)
{
	__u32 place = w->head.key % CACHED_HEADS;

	return bpf_map_lookup_elem(&request_cache, &place);
}

static __always_inline struct weir_cached_response *cached_response(const struct work *w)
{
	__u32 place = w->head.key % CACHED_HEADS;

	return bpf_map_lookup_elem(&response_cache, &place);
}

/* The key of a payload that stands apart from its headers, as what this host's own sockets send does, and what some devices bring. */
static __noinline __u64 head_key_apart(struct __sk_buff *skb, struct work *w, __u64 seal)
{
	__u32 n = size_up_to(WEIR_CACHE_MAX, w->packet.segment.len);
	__u64 key = 0;

	if (!bpf_skb_load_bytes(skb, w->packet.payload, w->head.bytes, n))
		key = weir_cache_key(digest_keys_of(), seal, w->head.bytes, w->head.bytes + sizeof(w->head.bytes), n);
	wipe(w->head.bytes, WEIR_CACHE_MAX, n);
	return key;
}

/* Sets w->head.key for the head with which the payload begins. seal: of what the reading hangs on. */
static __always_inline void head_key(struct __sk_buff *skb, struct work *w, __u64 seal)
{
	const __u8 *data = (const __u8 *)(long)skb->data, *end = (const __u8 *)(long)skb->data_end;
	__u32 payload = w->packet.payload, n = w->packet.segment.len;

	if (payload > HEADERS_MAX || !weir_cache_fits(n) || weir_cache_waits(&w->head.wait))
		return;
	w->head.key = weir_cache_key(digest_keys_of(), seal, data + payload, end, n);
	if (!w->head.key)
		w->head.key = head_key_apart(skb, w, seal);
}

static __always_inline bool head_is_found(struct work *w, __u64 key)
{
	if (key == w->head.key)
		weir_cache_hit(&w->head.wait);
	else
		weir_cache_missed(&w->head.wait);
	return key == w->head.key;
}

/* Has a request's head been read before that begins the payload? Then it is read, but for its last LF. Inline, there would be no stack for it. */
static __noinline bool request_recall(struct __sk_buff *skb, struct work *w, const struct weir_server *server)
{
	struct weir_request_reader *r = &w->request;
	struct weir_cached_request *cached;

	w->head.key = 0;
	w->head.digest = 0;
	w->head.seal = server->reading.seal;
	if (w->head.seal && r->next == w->packet.segment.seq &&
	    (weir_request_fresh(&r->request) || weir_request_ended(&r->request)))
		head_key(skb, w, w->head.seal);
	if (!w->head.key)
		return false;
	cached = cached_request(w);
	if (!cached || !head_is_found(w, cached->key))
		return false;
	weir_request_reader_begin(r);
	weir_cache_copy_request(&r->request, &cached->request);
	w->head.digest = cached->digest;
	r->next += r->request.framing.position;
	return true;
}

/*
 * The last LF of a head is next, or of trailers: keeps what was read, if that may be. Not if the server's settings have changed since it was
 * looked for.
 */
static __always_inline void request_keep(struct work *w, const struct weir_server *server)
{
	const struct weir_request_reader *r = &w->request;
	struct weir_cached_request *cached;

	if (!w->head.key || !weir_cache_takes_request(&r->request, w->packet.segment.seq, r->next) ||
	    weir_reading_seal(&server->reading) != w->head.seal)
		return;
	cached = cached_request(w);
	if (!cached)
		return;
	cached->key = w->head.key;
	cached->digest = 0;
	weir_cache_copy_request(&cached->request, &r->request);
}

/* Sets the digest of what was read. With the same payload all is read as it was, so it is kept with the head. */
static __always_inline void request_digest(struct work *w)
{
	struct weir_request_reader *r = &w->request;
	bool one = w->head.key && weir_request_reader_has_one(r) && is_read_whole(w, r->next);
	struct weir_cached_request *cached;

	if (one && w->head.digest) {
		r->digest = w->head.digest;
		return;
	}
	weir_request_reader_digest(r, digest_keys_of());
	if (!one)
		return;
	cached = cached_request(w);
	if (cached && cached->key == w->head.key)
		cached->digest = r->digest;
}

/* The same of a response's head, which somebody has asked for. */
static __always_inline bool response_recall(struct __sk_buff *skb, struct work *w)
{
	struct weir_response_reader *r = &w->response;
	struct weir_cached_response *cached;

	w->head.key = 0;
	if (r->outstanding && r->next == w->packet.segment.seq &&
	    (weir_response_fresh(&r->response) || weir_response_ended(&r->response)))
		head_key(skb, w, 0);
	if (!w->head.key)
		return false;
	cached = cached_response(w);
	if (!cached || !head_is_found(w, cached->key))
		return false;
	weir_response_reader_begin(r);
	r->response = cached->response;
	r->next += r->response.framing.position;
	return true;
}

static __always_inline void response_keep(struct work *w)
{
	const struct weir_response_reader *r = &w->response;
	struct weir_cached_response *cached;

	if (!w->head.key || !weir_cache_may_keep(w->packet.segment.seq, r->next, r->response.framing.position))
		return;
	cached = cached_response(w);
	if (!cached)
		return;
	cached->key = w->head.key;
	cached->response = r->response;
}

#endif
