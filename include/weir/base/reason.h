/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every outcome has a name. The enum is the index of the per-CPU counters in BPF, the word in the logs and the label
 * of the metric. A new outcome is a new line here, at the end of its group; nothing else needs to know.
 *
 * X(NAME, "label", GROUP, "help")   the help is for docs/reference/reasons.md
 *   DECISION   what became of a request               weir_requests_total{decision}
 *   SHED       which limit refused a shed request      weir_shed_total{limit,reason}
 *   EVENT      what the source-and-object limit told   weir_events_total{key}: a fallback is to the user, where the
 *              an event by                            event's fields cannot be had
 *   UNREAD     what could not be parsed or followed    weir_unread_total{reason}: rejected (ambiguity.h), or passed
 *              unharmed
 *   UNANSWERED a refused request that cannot be        weir_unanswered_total{reason}: waits until it may pass or
 *              answered now                            be answered; let through only when its server has closed
 *   SOURCE     what said whose a request is (identity.h)  weir_identified_total{source}
 *   IDENTITY   what else was noticed about that           weir_identity_notes_total{note}
 *   RECORD     what became of a record (hold.h)        weir_records_total{decision}
 *   TIME       nanoseconds                             weir_held_seconds_total
 *   PACKET     what was done to packets                weir_packets_total{action}
 *   TRACE      records that found the ring full        weir_trace_lost_total
 *   CONN       life of tracked connections             weir_connections_*; gauges are differences of these
 */
#ifndef WEIR_BASE_REASON_H
#define WEIR_BASE_REASON_H

/* clang-format off */
#define WEIR_REASONS(X) \
	X(PASSED, "passed", DECISION, \
	  "The request went to the server.") \
	X(SHED, "shed", DECISION, \
	  "The request was over a limit and got a 429.") \
	X(EXEMPT, "exempt", DECISION, \
	  "The request went to the server. It is a health check, or its user, group, address or path is exempt.") \
	X(DRY_RUN_SHED, "dry_run_shed", DECISION, \
	  "The request went to the server. Without the dry run it would have been shed.") \
	X(REJECTED, "rejected", DECISION, \
	  "The request was ambiguous. It got a 400, or its connection was closed.") \
	X(DRY_RUN_REJECTED, "dry_run_rejected", DECISION, \
	  "The request went to the server. Without the dry run it would have been rejected.") \
	X(SHED_TOTAL, "total", SHED, \
	  "The limit on the whole server.") \
	X(SHED_NAMESPACE, "namespace", SHED, \
	  "A limit per namespace.") \
	X(SHED_USER, "user", SHED, \
	  "A limit per user.") \
	X(SHED_SOURCE_AND_OBJECT, "source-and-object", SHED, \
	  "The limit on Kubernetes Events, per source and object.") \
	X(SHED_SOURCE, "source", SHED, \
	  "A limit per peer address.") \
	X(SHED_GROUP, "group", SHED, \
	  "A limit per group.") \
	X(SHED_COMBINED, "combined", SHED, \
	  "A limit with a combined key, such as namespace and user.") \
	X(SHED_IN_FLIGHT, "in_flight", SHED, \
	  "A limit on requests in flight.") \
	X(SHED_LEVEL, "priority_level", SHED, \
	  "A priority level without a free seat.") \
	X(SHED_PENALTY, "penalty", SHED, \
	  "The client retried before its back-off was over.") \
	X(EVENT_KEYED, "source_and_object", EVENT, \
	  "The Event was read. It counts for its source and object.") \
	X(EVENT_PATCH, "fallback_patch", EVENT, \
	  "A PATCH holds no whole Event. It counts for the user.") \
	X(EVENT_CUT, "fallback_cut", EVENT, \
	  "The body is too long, chunked, or not in the packet in which the head ends. The Event counts for the user.") \
	X(EVENT_UNREADABLE, "fallback_unreadable", EVENT, \
	  "The body is protobuf, or not the JSON of an Event. It counts for the user.") \
	X(TLS, "tls", UNREAD, \
	  "A TLS handshake at the start of a connection: held. In the middle of HTTP requests: rejected.") \
	X(HTTP2, "http2", UNREAD, \
	  "The HTTP/2 preface: held.") \
	X(NOT_HTTP, "not_http", UNREAD, \
	  "The bytes do not begin with a method: rejected.") \
	X(BAD_REQUEST_LINE, "bad_request_line", UNREAD, \
	  "The request line is malformed: rejected.") \
	X(BAD_VERSION, "bad_version", UNREAD, \
	  "The HTTP version is neither 1.0 nor 1.1: rejected.") \
	X(BAD_HEADER, "bad_header", UNREAD, \
	  "A header is malformed: rejected.") \
	X(BARE_CR, "bare_cr", UNREAD, \
	  "A line has a CR without an LF: rejected.") \
	X(BARE_LF, "bare_lf", UNREAD, \
	  "A line ends with an LF alone: rejected.") \
	X(NUL_BYTE, "nul_byte", UNREAD, \
	  "The head contains a NUL byte: rejected.") \
	X(FOLDED_HEADER, "folded_header", UNREAD, \
	  "A header continues on a second line: rejected.") \
	X(HEAD_TOO_LONG, "head_too_long", UNREAD, \
	  "The head is longer than 64 KiB: rejected.") \
	X(BAD_CONTENT_LENGTH, "bad_content_length", UNREAD, \
	  "Content-Length is not a number: rejected.") \
	X(LENGTH_CONFLICT, "length_conflict", UNREAD, \
	  "Two Content-Length headers differ, or Transfer-Encoding stands beside one: rejected.") \
	X(BAD_TRANSFER_ENCODING, "bad_transfer_encoding", UNREAD, \
	  "Transfer-Encoding is not \"chunked\": rejected.") \
	X(BAD_CHUNK, "bad_chunk", UNREAD, \
	  "A chunk or a trailer is malformed: rejected.") \
	X(UPGRADE, "upgrade", UNREAD, \
	  "The server switched protocols (WebSocket, SPDY): held from there on.") \
	X(CONNECT, "connect", UNREAD, \
	  "A CONNECT request was let through. What follows it cannot be read: held.") \
	X(BAD_RESPONSE, "bad_response", UNREAD, \
	  "The server's response is malformed, or answers no request: held from there on.") \
	X(MID_STREAM, "mid_stream", UNREAD, \
	  "The connection was open before attach. Requests get no 429 until one whole exchange has been seen: held.") \
	X(GAP, "gap", UNREAD, \
	  "A packet was not seen: handled as mid_stream.") \
	X(TOO_MANY_PIPELINED, "too_many_pipelined", UNREAD, \
	  "More than 64 requests are unanswered on the connection. The next one waits.") \
	X(MPTCP, "mptcp", UNREAD, \
	  "The connection was MPTCP before attach.") \
	X(SIGNED, "signed", UNREAD, \
	  "The segments are signed (TCP-MD5, TCP-AO), so none can be changed: held from the first byte.") \
	X(UNSEEN, "unseen", UNREAD, \
	  "The bytes reached the server on a path that weir does not read (fragments, DNAT, a tunnel device): held.") \
	X(CONTRADICTED, "contradicted", UNREAD, \
	  "A retransmission differs from what was read and the server never got: held from there on.") \
	X(CONN_MAP_FULL, "conn_map_full", UNREAD, \
	  "The connection table is full. Counted per packet; --when-full decides what happens.") \
	X(BUCKET_MAP_FULL, "bucket_map_full", UNREAD, \
	  "There is no room for a bucket. --when-full decides what happens.") \
	X(IN_FLIGHT_MAP_FULL, "in_flight_map_full", UNREAD, \
	  "There is no room to count requests in flight. --when-full decides what happens.") \
	X(PLACES_MAP_FULL, "places_map_full", UNREAD, \
	  "There is no room for the place of one request in flight. --when-full decides what happens.") \
	X(BAD_PATH, "bad_path", UNREAD, \
	  "With nginx's path rules: the path leads above the root or contains an encoded NUL: rejected.") \
	X(REPEATED_NAMESPACE, "repeated_namespace", UNREAD, \
	  "The header that names the namespace is repeated: rejected.") \
	X(BAD_PREAMBLE, "bad_preamble", UNREAD, \
	  "With --proxy-protocol: the PROXY protocol preamble is missing or malformed: rejected.") \
	X(SPLIT_HEAD, "split_head", UNANSWERED, \
	  "The server has the first part of the head and has not acknowledged it yet.") \
	X(PIPELINED, "pipelined", UNANSWERED, \
	  "An answer is outstanding, or another request stands before this one in the packet.") \
	X(SERVER_CLOSED, "server_closed", UNANSWERED, \
	  "The server has closed the connection. The request passes and meets the server's RST.") \
	X(UNACKED, "unacked", UNANSWERED, \
	  "One side has not acknowledged everything that came before.") \
	X(PACKET_SURGERY, "packet_surgery", UNANSWERED, \
	  "The packet could not be rewritten into the answer.") \
	X(ANSWERED, "answered", PACKET, \
	  "A 429 was sent and the connection stays open.") \
	X(ANSWERED_AGAIN, "answered_again", PACKET, \
	  "A shed request was retransmitted, and its answer was sent again.") \
	X(ANSWERED_CLOSE, "answered_close", PACKET, \
	  "A 429 or 400 was sent that closes the connection.") \
	X(SWALLOWED, "swallowed", PACKET, \
	  "Removed: part of a shed request's body, or a request that crossed the server's FIN.") \
	X(TRANSLATED, "translated", PACKET, \
	  "Its sequence numbers were translated.") \
	X(HELD, "held", PACKET, \
	  "Dropped: a refused request in it waits for its turn, or it must not overtake a 429. TCP resends it.") \
	X(OUT_OF_ORDER, "out_of_order", PACKET, \
	  "Dropped: it arrived before an earlier part of its request. TCP resends it.") \
	X(CONTENDED, "contended", PACKET, \
	  "Dropped: another CPU had a packet of the same connection. TCP resends it.") \
	X(UNACCEPTABLE, "unacceptable", PACKET, \
	  "Dropped, as the server's socket would: bad acknowledgement, old timestamp, or outside the window.") \
	X(URGENT_REMOVED, "urgent_removed", PACKET, \
	  "Its urgent mark was removed, so that the server reads every byte in line.") \
	X(TFO_REMOVED, "tfo_removed", PACKET, \
	  "The TCP Fast Open option was removed from a SYN.") \
	X(CUT_SHORT, "cut_short", PACKET, \
	  "Cut before a refused request that waits. TCP resends the rest.") \
	X(MPTCP_REMOVED, "mptcp_removed", PACKET, \
	  "The MPTCP option was removed from a SYN.") \
	X(BAD_CHECKSUM, "bad_checksum", PACKET, \
	  "Dropped, as the server would: wrong TCP or IP checksum.") \
	X(UNTRANSLATABLE, "untranslatable", PACKET, \
	  "Dropped: its sequence numbers could not be written.") \
	X(OUT_OF_WINDOW, "out_of_window", PACKET, \
	  "Dropped on a held connection, as the server's socket would: outside the window.") \
	X(HELD_RECORD, "held_record", PACKET, \
	  "Held back because it is over a limit. TCP resends it.") \
	X(UNCONFIRMED, "unconfirmed", PACKET, \
	  "Dropped: it repeats what was read, and the server may still be about to get that. TCP resends it.") \
	X(FRAGMENT, "fragment", PACKET, \
	  "The first fragment of an IP packet. It passes and its connection is held; a translated connection's is dropped.") \
	X(RETAKEN, "retaken", PACKET, \
	  "Dropped: it differs from what was read at this place and the server never got. It is read anew when resent.") \
	X(PACED, "paced", PACKET, \
	  "Queued until its token is due.") \
	X(RECORDS_PASSED, "passed", RECORD, \
	  "Passed.") \
	X(RECORDS_HELD, "held", RECORD, \
	  "Was held back at least once before it passed.") \
	X(RECORDS_DRY_RUN_HELD, "dry_run_held", RECORD, \
	  "Passed. Without the dry run it would have been held back.") \
	X(HELD_NS, "held_ns", TIME, \
	  "Nanoseconds that records were held back.") \
	X(BY_REQUEST_HEADER, "request_header", SOURCE, \
	  "A trusted proxy's user header.") \
	X(BY_TOKEN, "token", SOURCE, \
	  "A bearer token from the token file.") \
	X(BY_ADDRESS_TABLE, "address_table", SOURCE, \
	  "The peer's address, found in the address table.") \
	X(BY_NOBODY, "anonymous", SOURCE, \
	  "Nothing names a user. The peer's address counts (IPv6: its /64).") \
	X(UNTRUSTED_IDENTITY, "untrusted_identity", IDENTITY, \
	  "An identity header or preamble from a peer that is not trusted. It is ignored.") \
	X(REPEATED_USER, "repeated_user", IDENTITY, \
	  "The user header is repeated. Neither value is believed.") \
	X(REPEATED_TOKEN, "repeated_token", IDENTITY, \
	  "The Authorization header is repeated. Neither token is believed.") \
	X(IMPERSONATED, "impersonated", IDENTITY, \
	  "The request has Impersonate-User. The impersonating user is charged.") \
	X(OVERFLOW, "overflow", IDENTITY, \
	  "Too many new subjects. The request was charged to the bucket that they share.") \
	X(CONN_OPENED, "opened", CONN, \
	  "Connections added to the table.") \
	X(CONN_CLOSED, "closed", CONN, \
	  "Connections removed from the table.") \
	X(SPLICE_OPENED, "translated_opened", CONN, \
	  "Connections on which translation began.") \
	X(SPLICE_CLOSED, "translated_closed", CONN, \
	  "Translated connections removed from the table.") \
	X(CONN_SWEPT, "swept", CONN, \
	  "Connections removed by the sweep because their socket was gone.") \
	X(CONN_RESET, "reset", CONN, \
	  "Connections reset by detach --force.") \
	X(TRACE_LOST, "trace_lost", TRACE, \
	  "Traced requests lost because the trace buffer was full.")
/* clang-format on */

#define WEIR_EVENT_KEYS 4 /* reasons of the group EVENT */

enum weir_reason {
#define X(name, label, group, help) WEIR_##name,
	WEIR_REASONS(X)
#undef X
	WEIR_REASON_COUNT
};

#endif
