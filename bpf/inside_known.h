/* SPDX-License-Identifier: GPL-2.0 */
/* What is known of a request inside a server. */
#ifndef WEIR_BPF_INSIDE_KNOWN_H
#define WEIR_BPF_INSIDE_KNOWN_H

#include "weir/conn/trace.h"
#include "weir/http/identity.h"

#include "heavy.h"
#include "inside_read.h"
#include "undo.h"

/* What its http.Request says. */
struct inside_http {
	struct weir_inside_string method, uri, peer;
	__u64 context[2]; /* an interface: its itab and what it points to */
};

#define INSIDE_SPAN_MAX 128U /* of texts */
#define INSIDE_BEFORE 480U   /* bytes before a context that are read with it */

/*
 * What lies side by side is read at once: texts, because what a request asks for is mostly cut out of its path, and contexts. Words of the
 * last text may be loaded beyond its end.
 */
struct inside_span {
	__u64 at;
	__u64 length; /* 0: nothing was read */
	char text[INSIDE_BEFORE + sizeof(struct weir_inside_value_context)];
};
_Static_assert(sizeof(((struct inside_span *)0)->text) >= INSIDE_SPAN_MAX + sizeof(struct inside_short_text),
	       "texts have room");

#define INSIDE_HAS_USER 1U
#define INSIDE_HAS_FIELDS 2U
#define INSIDE_HAS_BOTH (INSIDE_HAS_USER | INSIDE_HAS_FIELDS)

struct inside_request {
	__u64 request; /* the *http.Request */
	__u64 now_ns;
	__u64 fields_at; /* the struct that says what it asks for; 0: there is none */
	__u64 execute;	 /* the func value that API Priority and Fairness was handed with it */
	__u32 decision;	 /* enum weir_reason; WEIR_REASON_NONE: it has not been decided */
	__u32 status;	 /* with which it is yet to be refused, at EXECUTE or AUTHORIZE; 0: it is not */
	__u32 unread;	 /* what came of reading the http.Request, if that failed */
	bool health;	 /* it asks how the server is */
	bool on_wire;	 /* it came over HTTP/1 without TLS: the packets' programs read it as well, and decide */
	__u8 found;	 /* in its context: user_at, which may be nothing, fields_at */
	bool answers;	 /* it can be refused; else it is decided as in a dry run */
	bool some;	 /* its server refuses requests of some connections only (attach --inside-share) */
	bool executed;
	bool ends;  /* where it ends will be seen: it may have seats */
	bool http1; /* or it is not known that it came over HTTP/2 */
	struct weir_inside_key key;
	struct inside_http http;
	struct weir_inside_fields fields;
	struct inside_peer peer;
	__u64 address;			/* its subject, where somebody asks for it */
	struct weir_inside_string user; /* the user's name; empty: the user has none, or was not read */
	__u64 group_lengths;		/* struct weir_known_groups */
	struct weir_groups groups;	/* of the user, as `groups` knows them */
	struct weir_subject_key known;	/* for look-ups there */
	__u64 groups_at;		/* the strings of their names */
	__u32 n_groups;
	__u32 outcome;	  /* of reading one, or the contexts */
	__u64 context[2]; /* the one of the request's that is looked at */
	__u64 user_at;	  /* a *user.DefaultInfo */
	__u64 behind_parent; /* where what is in `words` begins, if it is a context's parent and what lies behind it; 0: it is not */
	__u64 behind_parent_n; /* bytes */
	__u64 sent_from; /* the jump that GROWS sends it back to; 0: it has not been sent, or is back (inside_await.h) */
	__u32 waits;	 /* for its memory, so far: there */
	__u32 generation; /* of the rules that it was decided by: they say what slots mean */
	struct weir_asked asked;
	struct weir_trace_record record;

	/* Of these nothing is read that has not been written before. */
	struct decided decided; /* by the rules, if it passed: to be counted or undone where it is certain */
	struct inside_walk walk;
	struct inside_span span;
	struct weir_name name;
	/* The struct that was read last: of what it asks for, in the end. A string that begins in its last word ends in one more. */
	__u64 words[WEIR_INSIDE_STRUCT_MAX / 8 + 1];
};

/* The rest of a trace's line is written as far as it is told. */
#define INSIDE_REQUEST_ZEROED \
	(__builtin_offsetof(struct inside_request, record) + __builtin_offsetof(struct weir_trace_record, line))

/* In a loop: stores one after the other would be a kilobyte of instructions, most of which no cache has when a request comes. */
static __always_inline void inside_clear(struct inside_request *r)
{
	__u64 *words = (__u64 *)r;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < (INSIDE_REQUEST_ZEROED + 31) / 32; i++) {
		words[4 * i] = words[4 * i + 1] = words[4 * i + 2] = words[4 * i + 3] = 0;
		WEIR_FRESH_ALL(); /* no compiler makes one memset() of it */
	}
}

/* --- structs, read at once */

/* size: at most WEIR_INSIDE_STRUCT_MAX */
static __always_inline __u32 inside_struct(struct inside_request *r, __u64 at, __u32 size)
{
	WEIR_BARRIER(size);
	r->behind_parent = 0;
	return WEIR_UNLIKELY(size > WEIR_INSIDE_STRUCT_MAX) ? WEIR_INSIDE_UNREADABLE : inside_copy(r->words, size, at);
}

static __always_inline __u64 inside_field(const struct inside_request *r, __u32 offset)
{
	return r->words[offset / 8 & (WEIR_INSIDE_STRUCT_MAX / 8 - 1)];
}

/* Of a slice, its address and its length. */
static __always_inline struct weir_inside_string inside_string_in(const struct inside_request *r, __u32 offset)
{
	const __u64 *at = &r->words[offset / 8 & (WEIR_INSIDE_STRUCT_MAX / 8 - 1)];

	return (struct weir_inside_string){ at[0], at[1] };
}

#endif
