/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every outcome has a name. The enum is the index of the per-CPU counters in BPF, the word in the logs and the label
 * of the metric. A new one is a line here, at the end of its group, a text in user/metrics/reasons.c, and a new WEIR_ABI_VERSION.
 *
 * X(NAME, "label", GROUP)
 *   DECISION   what became of a request               weir_requests_total{decision}
 *   SHED       which limit refused a shed request      weir_shed_total{key,reason}
 *   EVENT      what the source-and-object limit told   weir_events_total{key}: a fallback is to the user, where the
 *              an event by                            event's fields cannot be had
 *   UNREAD     what could not be parsed or followed    weir_unread_total{reason}: rejected (ambiguity.h), or passed
 *              unharmed
 *   UNANSWERED a refused request that cannot be        weir_unanswered_total{reason}: waits until it may pass or
 *              answered now                            be answered; let through only when its server has closed
 *   IDENTIFIED what says whose a request is (identity.h)  weir_identified_total{by}
 *   IDENTITY   what else was noticed about that           weir_identity_notes_total{note}
 *   RECORD     what became of a record (hold.h)        weir_records_total{decision}
 *   TIME       nanoseconds                             weir_held_seconds_total, and the sums of the two histograms:
 *   HELD_FOR   how long records were held (duration.h) weir_hold_duration_seconds
 *   ANSWERED_AFTER  how long answers took to begin     weir_answer_duration_seconds
 *   PACKET     what was done to packets                weir_packets_total{action}
 *   TRACE      records that found the ring full, or    weir_trace_lost_total, weir_refusal_events_skipped_total
 *              that a sample has no room for
 *   INSIDE     what was seen of requests in a server   weir_inside_requests_total{outcome}
 *   ADMISSION  what became of new connections (admission.h)  weir_connection_attempts_total{outcome}
 *   CONN       life of tracked connections             weir_connections_*; gauges are differences of these
 */
#ifndef WEIR_BASE_REASON_H
#define WEIR_BASE_REASON_H

#define WEIR_REASONS(X)                                           \
	X(PASSED, "passed", DECISION)                             \
	X(SHED, "shed", DECISION)                                 \
	X(EXEMPT, "exempt", DECISION)                             \
	X(DRY_RUN_SHED, "dry_run_shed", DECISION)                 \
	X(REJECTED, "rejected", DECISION)                         \
	X(DRY_RUN_REJECTED, "dry_run_rejected", DECISION)         \
	X(SHED_TOTAL, "total", SHED)                              \
	X(SHED_NAMESPACE, "namespace", SHED)                      \
	X(SHED_USER, "user", SHED)                                \
	X(SHED_SOURCE_AND_OBJECT, "source-and-object", SHED)      \
	X(SHED_SOURCE, "source", SHED)                            \
	X(SHED_GROUP, "group", SHED)                              \
	X(SHED_COMBINED, "combined", SHED)                        \
	X(SHED_IN_FLIGHT, "in_flight", SHED)                      \
	X(SHED_LEVEL, "priority_level", SHED)                     \
	X(SHED_PENALTY, "penalty", SHED)                          \
	X(SHED_DENIED, "denied", SHED)                            \
	X(EVENT_KEYED, "source_and_object", EVENT)                \
	X(EVENT_PATCH, "fallback_patch", EVENT)                   \
	X(EVENT_CUT, "fallback_cut", EVENT)                       \
	X(EVENT_UNREADABLE, "fallback_unreadable", EVENT)         \
	X(TLS, "tls", UNREAD)                                     \
	X(HTTP2, "http2", UNREAD)                                 \
	X(NOT_HTTP, "not_http", UNREAD)                           \
	X(BAD_REQUEST_LINE, "bad_request_line", UNREAD)           \
	X(BAD_VERSION, "bad_version", UNREAD)                     \
	X(BAD_HEADER, "bad_header", UNREAD)                       \
	X(BARE_CR, "bare_cr", UNREAD)                             \
	X(BARE_LF, "bare_lf", UNREAD)                             \
	X(NUL_BYTE, "nul_byte", UNREAD)                           \
	X(FOLDED_HEADER, "folded_header", UNREAD)                 \
	X(HEAD_TOO_LONG, "head_too_long", UNREAD)                 \
	X(BAD_CONTENT_LENGTH, "bad_content_length", UNREAD)       \
	X(LENGTH_CONFLICT, "length_conflict", UNREAD)             \
	X(BAD_TRANSFER_ENCODING, "bad_transfer_encoding", UNREAD) \
	X(BAD_CHUNK, "bad_chunk", UNREAD)                         \
	X(UPGRADE, "upgrade", UNREAD)                             \
	X(CONNECT, "connect", UNREAD)                             \
	X(BAD_RESPONSE, "bad_response", UNREAD)                   \
	X(MID_STREAM, "mid_stream", UNREAD)                       \
	X(GAP, "gap", UNREAD)                                     \
	X(TOO_MANY_PIPELINED, "too_many_pipelined", UNREAD)       \
	X(MPTCP, "mptcp", UNREAD)                                 \
	X(SIGNED, "signed", UNREAD)                               \
	X(UNSEEN, "unseen", UNREAD)                               \
	X(CONTRADICTED, "contradicted", UNREAD)                   \
	X(CONN_MAP_FULL, "conn_map_full", UNREAD)                 \
	X(CONN_OVER_SHARE, "conn_over_share", UNREAD)             \
	X(BUCKET_MAP_FULL, "bucket_map_full", UNREAD)             \
	X(IN_FLIGHT_MAP_FULL, "in_flight_map_full", UNREAD)       \
	X(BUSY_MAP_FULL, "busy_map_full", UNREAD)                 \
	X(BAD_PATH, "bad_path", UNREAD)                           \
	X(REPEATED_NAMESPACE, "repeated_namespace", UNREAD)       \
	X(BAD_PREAMBLE, "bad_preamble", UNREAD)                   \
	X(HEAD_CUT, "head_cut", UNREAD)                           \
	X(ANSWERED_EARLY, "answered_early", UNREAD)               \
	X(BODY_SERVED, "body_served", UNREAD)                     \
	X(SPLIT_HEAD, "split_head", UNANSWERED)                   \
	X(PIPELINED, "pipelined", UNANSWERED)                     \
	X(SERVER_CLOSED, "server_closed", UNANSWERED)             \
	X(UNACKED, "unacked", UNANSWERED)                         \
	X(PACKET_SURGERY, "packet_surgery", UNANSWERED)           \
	X(ANSWERED, "answered", PACKET)                           \
	X(ANSWERED_AGAIN, "answered_again", PACKET)               \
	X(ANSWERED_CLOSE, "answered_close", PACKET)               \
	X(SWALLOWED, "swallowed", PACKET)                         \
	X(TRANSLATED, "translated", PACKET)                       \
	X(HELD, "held", PACKET)                                   \
	X(OUT_OF_ORDER, "out_of_order", PACKET)                   \
	X(CONTENDED, "contended", PACKET)                         \
	X(LIMIT_CONTENDED, "limit_contended", PACKET)             \
	X(UNACCEPTABLE, "unacceptable", PACKET)                   \
	X(URGENT_REMOVED, "urgent_removed", PACKET)               \
	X(TFO_REMOVED, "tfo_removed", PACKET)                     \
	X(CUT_SHORT, "cut_short", PACKET)                         \
	X(MPTCP_REMOVED, "mptcp_removed", PACKET)                 \
	X(BAD_CHECKSUM, "bad_checksum", PACKET)                   \
	X(UNTRANSLATABLE, "untranslatable", PACKET)               \
	X(OUT_OF_WINDOW, "out_of_window", PACKET)                 \
	X(HELD_RECORD, "held_record", PACKET)                     \
	X(UNCONFIRMED, "unconfirmed", PACKET)                     \
	X(FRAGMENT, "fragment", PACKET)                           \
	X(RETAKEN, "retaken", PACKET)                             \
	X(PACED, "paced", PACKET)                                 \
	X(HANDSHAKE_HELD, "handshake_held", PACKET)               \
	X(SYN_DATA, "syn_data", PACKET)                           \
	X(UNREADABLE, "unreadable", PACKET)                       \
	X(STRAY, "stray", PACKET)                                 \
	X(XDP_DROPPED, "xdp_dropped", PACKET)                     \
	X(BOXED, "boxed", PACKET)                                 \
	X(HOLD_SHARED, "hold_shared", PACKET)                     \
	X(HOLD_LONGEST, "hold_longest", PACKET)                   \
	X(RECORDS_PASSED, "passed", RECORD)                       \
	X(RECORDS_HELD, "held", RECORD)                           \
	X(RECORDS_DRY_RUN_HELD, "dry_run_held", RECORD)           \
	X(HELD_NS, "held_ns", TIME)                               \
	X(HELD_1MS, "1ms", HELD_FOR)                              \
	X(HELD_5MS, "5ms", HELD_FOR)                              \
	X(HELD_25MS, "25ms", HELD_FOR)                            \
	X(HELD_100MS, "100ms", HELD_FOR)                          \
	X(HELD_500MS, "500ms", HELD_FOR)                          \
	X(HELD_2500MS, "2500ms", HELD_FOR)                        \
	X(HELD_10S, "10s", HELD_FOR)                              \
	X(HELD_LONGER, "longer", HELD_FOR)                        \
	X(ANSWER_NS, "answer_ns", TIME)                           \
	X(ANSWER_1MS, "1ms", ANSWERED_AFTER)                      \
	X(ANSWER_5MS, "5ms", ANSWERED_AFTER)                      \
	X(ANSWER_25MS, "25ms", ANSWERED_AFTER)                    \
	X(ANSWER_100MS, "100ms", ANSWERED_AFTER)                  \
	X(ANSWER_500MS, "500ms", ANSWERED_AFTER)                  \
	X(ANSWER_2500MS, "2500ms", ANSWERED_AFTER)                \
	X(ANSWER_10S, "10s", ANSWERED_AFTER)                      \
	X(ANSWER_LONGER, "longer", ANSWERED_AFTER)                \
	X(BY_REQUEST_HEADER, "request_header", IDENTIFIED)        \
	X(BY_TOKEN, "token", IDENTIFIED)                          \
	X(BY_ADDRESS_TABLE, "address_table", IDENTIFIED)          \
	X(BY_NOBODY, "anonymous", IDENTIFIED)                     \
	X(BY_SERVER, "server", IDENTIFIED)                        \
	X(UNTRUSTED_IDENTITY, "untrusted_identity", IDENTITY)     \
	X(REPEATED_USER, "repeated_user", IDENTITY)               \
	X(REPEATED_TOKEN, "repeated_token", IDENTITY)             \
	X(IMPERSONATED, "impersonated", IDENTITY)                 \
	X(OVERFLOW, "overflow", IDENTITY)                         \
	X(CONN_OPENED, "opened", CONN)                            \
	X(CONN_CLOSED, "closed", CONN)                            \
	X(SPLICE_OPENED, "translated_opened", CONN)               \
	X(SPLICE_CLOSED, "translated_closed", CONN)               \
	X(CONN_SWEPT, "swept", CONN)                              \
	X(CONN_GAVE_WAY, "gave_way", CONN)                        \
	X(CONN_RESET, "reset", CONN)                              \
	X(TRACE_LOST, "trace_lost", TRACE)                        \
	X(EVENTS_SKIPPED, "refusal_events_skipped", TRACE)        \
	X(INSIDE_SEEN, "seen", INSIDE)                            \
	X(INSIDE_UNREADABLE, "unreadable", INSIDE)                \
	X(INSIDE_NOT_TEXT, "not_text", INSIDE)                    \
	X(INSIDE_OTHER_USER, "other_user", INSIDE)                \
	X(INSIDE_NO_ROOM, "no_room", INSIDE)                      \
	X(INSIDE_ANSWERED, "answered", INSIDE)                    \
	X(INSIDE_UNANSWERED, "unanswered", INSIDE)                \
	X(INSIDE_ON_WIRE, "on_wire", INSIDE)                      \
	X(INSIDE_REJECTED, "rejected", INSIDE)                    \
	X(INSIDE_ABANDONED, "abandoned", INSIDE)                  \
	X(INSIDE_SWEPT, "swept", INSIDE)                          \
	X(INSIDE_OWED, "owed", INSIDE)                            \
	X(INSIDE_UNLISTED, "unlisted", INSIDE)                    \
	X(ADMITTED, "admitted", ADMISSION)                        \
	X(ADMISSION_EXEMPT, "exempt", ADMISSION)                  \
	X(ADMISSION_DROPPED, "dropped", ADMISSION)                \
	X(ADMISSION_RESET, "reset", ADMISSION)                    \
	X(ADMISSION_DRY_RUN, "dry_run_refused", ADMISSION)        \
	X(ADMISSION_REPEATED, "repeated", ADMISSION)              \
	X(ADMISSION_COOKIE, "syn_cookie", ADMISSION)              \
	X(ADMISSION_XDP_COOKIE, "xdp_syn_cookie", ADMISSION)      \
	X(ADMISSION_NO_ROOM, "no_room", ADMISSION)                \
	X(ADMISSION_SWEPT, "swept", ADMISSION)

#define WEIR_EVENT_KEYS 4 /* reasons of the group EVENT */

enum weir_reason {
#define X(name, label, group) WEIR_##name,
	WEIR_REASONS(X)
#undef X
	WEIR_REASON_COUNT,
	WEIR_REASON_NONE = WEIR_REASON_COUNT /* where there is none */
};

/*
 * Reasons that mostly come together have one more counter for that case, and whoever reads the counters adds it to each of these reasons.
 * This is for programs in a server's thread, where every counter costs two cache misses and a locked instruction.
 *
 * X(NAME, reasons...)
 */
#define WEIR_TOGETHER_MAX 3
#define WEIR_TOGETHER(X)                                        \
	X(SEEN_AND_PASSED_USER, INSIDE_SEEN, BY_SERVER, PASSED) \
	X(SEEN_AND_PASSED_NOBODY, INSIDE_SEEN, BY_NOBODY, PASSED)

/* What `counters` has for each server: enum weir_reason, and then these. */
enum weir_counter {
	WEIR_COUNTERS_TOGETHER = WEIR_REASON_COUNT - 1,
#define X(name, first, second, third) WEIR_##name,
	WEIR_TOGETHER(X)
#undef X
	WEIR_COUNTER_COUNT
};

#endif
