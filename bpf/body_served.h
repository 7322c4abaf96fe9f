/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Servers that leave a request's body unread, and then take it for requests. Who runs the server may say so, or that it does not. Otherwise
 * nothing tells that beforehand: such a server is known by an answer that nobody has asked for, behind a body, and that has served a request.
 * No body of such a server's requests is believed to be one (weir_request_reader_doubt_body()).
 */
#ifndef WEIR_BPF_BODY_SERVED_H
#define WEIR_BPF_BODY_SERVED_H

#include "weir/http/line.h"

#include "work.h"

static __always_inline bool serves_bodies(const struct work *w)
{
	__u32 server = w->server;
	const __u32 *known;

	if (w->server_flags & (WEIR_SERVER_BODIES_UNREAD | WEIR_SERVER_BODIES_READ))
		return w->server_flags & WEIR_SERVER_BODIES_UNREAD;
	known = bpf_map_lookup_elem(&body_servers, &server);
	return known && *known;
}

/* The request goes on, and its server gets it. */
static __always_inline void request_passed(struct work *w)
{
	struct weir_request_reader *r = &w->request;

	weir_request_reader_passed(r);
	if (WEIR_UNLIKELY(weir_request_has_body(&r->request)) && serves_bodies(w))
		weir_request_reader_doubt_body(r);
}

/*
 * Does an answer begin there that has served a request? One that says no tells nothing: servers give it to a request that has not come to its
 * end, too.
 */
static __always_inline bool is_of_a_served_request(struct __sk_buff *skb, const struct work *w)
{
	__u32 at = w->packet.payload + (w->response.next - w->packet.segment.seq);
	__u64 words[2] = {};
	__u8 status;

	if (bpf_skb_load_bytes(skb, at, words, sizeof("HTTP/1.1 2") - 1) ||
	    weir_run_only(words[0], 7) != WEIR_RUN_TEXT("HTTP/1."))
		return false;
	status = words[1] >> 8;
	return status == '2' || status == '3';
}

/* The server has given an answer that nobody asked for, behind a body. Returns what is to be counted. */
static __always_inline enum weir_reason note_served_body(struct __sk_buff *skb, const struct work *w)
{
	__u32 server = w->server, *known = bpf_map_lookup_elem(&body_servers, &server);

	if (!is_of_a_served_request(skb, w))
		return WEIR_BAD_RESPONSE;
	if (known)
		*(volatile __u32 *)known = 1;
	return WEIR_BODY_SERVED;
}

#endif
