/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a program that is probed inside a Go server finds what it reads, and which processes are servers. The agent takes
 * all of it from the server's own binary and checks it there; the programs only follow it.
 *
 *   map              type   key                        value
 *   inside_processes HASH   __u32 process (tgid)       struct weir_inside_process
 *   inside_near      ARRAY  its place                  the same, of one process (near.h)
 *   inside_requests  HASH   struct weir_inside_key     what is kept between two probes of a request (bpf/inside.h)
 *   inside_seats     HASH   struct weir_inside_key     struct weir_inside_seats (seats.h)
 *   inside_open      HASH   struct weir_inside_key     struct weir_inside_open (open.h)
 */
#ifndef WEIR_INSIDE_PROCESS_H
#define WEIR_INSIDE_PROCESS_H

#include "weir/base/types.h"

#define WEIR_MAX_INSIDE_PROCESSES 2048 /* as many as all servers have at most (user/agent/inside_sync.c) */
#define WEIR_MAX_INSIDE_REQUESTS 65536
#define WEIR_INSIDE_GROUPS_MAX 256 /* of a user; one with more is none that weir knows */

/*
 * Where a server is probed.
 * CONTEXT     a handler begins whose request has in its context whose it is and what it asks for
 * REQUEST     a handler begins that has a *http.Request, and whose goroutine asks for the attributes next
 * ATTRIBUTES  Kubernetes' authorizer.Attributes of that request are known
 * HTTP        any net/http handler begins
 * HTTP_ANSWER the same, and it may be refused
 * FILTER      a filter begins whose goroutine comes to HANDLE next; a request begins with it
 * HANDLE      API Priority and Fairness gets a request: it is decided, and may be refused
 * AUTHORIZE   the same as CONTEXT, where requests may be refused: one that HANDLE has not decided is decided here
 * HANDLED     HANDLE's function returns: what it was not let execute, the server has rejected by itself
 * EXECUTE     what API Priority and Fairness was handed begins: that it lets the request pass, and where it may be refused, too
 * HANDLE_WRITE, HANDED, AUTHORIZED, EXECUTED  in the place of HANDLE, AUTHORIZE and EXECUTE, where no registers may be written: a
 *             request is refused by memory (attach --write-memory). HANDED is where what HANDLE is to execute has come to its stack.
 *             A request that HANDLE_WRITE has not decided is decided at AUTHORIZED, as in a dry run
 * END         a handler returns: the request of its goroutine has ended
 * GOEXIT      a goroutine ends
 * GROWS       where the jump of HTTP_ANSWER or AUTHORIZE leads: there the stack grows, or memory is waited for (bpf/inside_await.h)
 */
enum weir_inside_point {
	WEIR_INSIDE_CONTEXT,
	WEIR_INSIDE_REQUEST,
	WEIR_INSIDE_ATTRIBUTES,
	WEIR_INSIDE_HTTP,
	WEIR_INSIDE_HTTP_ANSWER,
	WEIR_INSIDE_FILTER,
	WEIR_INSIDE_HANDLE,
	WEIR_INSIDE_AUTHORIZE,
	WEIR_INSIDE_HANDLED,
	WEIR_INSIDE_EXECUTE,
	WEIR_INSIDE_HANDLE_WRITE,
	WEIR_INSIDE_HANDED,
	WEIR_INSIDE_AUTHORIZED,
	WEIR_INSIDE_EXECUTED,
	WEIR_INSIDE_END,
	WEIR_INSIDE_GOEXIT,
	WEIR_INSIDE_GROWS,
	WEIR_INSIDE_POINTS,
};

/* The integer registers of Go's internal ABI on amd64, in its order. The goroutine is in R14. */
enum weir_inside_register {
	WEIR_INSIDE_AX,
	WEIR_INSIDE_BX,
	WEIR_INSIDE_CX,
	WEIR_INSIDE_DI,
	WEIR_INSIDE_SI,
	WEIR_INSIDE_R8,
	WEIR_INSIDE_R9,
	WEIR_INSIDE_R10,
	WEIR_INSIDE_R11,
	WEIR_INSIDE_REGISTERS,
};

/* Where a refusal takes effect of what API Priority and Fairness is handed. */
enum weir_inside_refuses {
	WEIR_INSIDE_REFUSES_NOWHERE, /* nothing that is decided is kept */
	WEIR_INSIDE_REFUSES_AT_HANDLE,
	WEIR_INSIDE_REFUSES_LATER, /* at EXECUTE or AUTHORIZE, or by memory */
};

/* Offsets of what a request asks for, in one of Kubernetes' structs. Strings, but for is_resource: a bool. */
struct weir_inside_fields {
	__u16 verb;
	__u16 namespace;
	__u16 group;
	__u16 resource;
	__u16 subresource;
	__u16 name;
	__u16 path;
	__u16 is_resource;
	__u16 size; /* of as much of the struct as has them */
	__u16 pad[3];
};
WEIR_ASSERT_SIZE(struct weir_inside_fields, 24);

/* Structs are read at once, in words: fields are at multiples of eight, but for a bool. */
#define WEIR_INSIDE_STRUCT_MAX 512

/* An argument that is on the stack; else an enum weir_inside_register. */
#define WEIR_INSIDE_ON_STACK 0x80 /* and how many words above the stack pointer it is */

#define WEIR_INSIDE_CONTEXTS 7
#define WEIR_INSIDE_CONTEXT_DEPTH 64 /* of a request, at most */

/* A kind of context that has a parent, and no value. */
struct weir_inside_parent {
	__u64 itab; /* of the kind as a context.Context: an address in the process, as those below are */
	__u64 at;   /* of its parent in it: a context.Context */
};
WEIR_ASSERT_SIZE(struct weir_inside_parent, 16);

/* A context.valueCtx, as each version of Go has it; the agent takes no other one. */
struct weir_inside_value_context {
	__u64 parent[2]; /* a context.Context */
	__u64 key[2];
	__u64 value[2]; /* an `any` */
};
WEIR_ASSERT_SIZE(struct weir_inside_value_context, 48);

/* What a request's context has: *context.valueCtx within one another, and others between them. */
struct weir_inside_context {
	__u64 value_itab; /* of *context.valueCtx as a context.Context */
	__u64 user_type;  /* of *user.DefaultInfo, as an `any` has it */
	__u64 key_type;	  /* of the key that the user is kept under */
	__u64 user_key;	  /* its value */
	__u64 info_type;  /* of *request.RequestInfo */
	__u16 request;	  /* of http.Request: its context */
	__u16 n_others;
	__u16 pad[2];
	struct weir_inside_parent others[WEIR_INSIDE_CONTEXTS];
};
WEIR_ASSERT_SIZE(struct weir_inside_context, 160);

/* Where to find things. Offsets are in bytes, registers enum weir_inside_register. */
struct weir_inside_layout {
	__u64 user_itab;    /* of *user.DefaultInfo as a user.Info: an address in the process */
	__u8 request_in;    /* the *http.Request, at REQUEST or HTTP */
	__u8 writer_in;	    /* the http.ResponseWriter's first word, at HTTP; the second is in the register after it */
	__u8 filtered_in;   /* the *http.Request, at FILTER */
	__u8 record_in;	    /* the *authorizer.AttributesRecord, at ATTRIBUTES */
	__u8 info_in;	    /* at HANDLE: the *request.RequestInfo */
	__u8 user_in;	    /* the user.Info's first word; the second is in the register after it */
	__u8 execute_in;    /* the func value, or WEIR_INSIDE_ON_STACK */
	__u8 refuses;	    /* enum weir_inside_refuses */
	__u16 write_header; /* in an itab of http.ResponseWriter: the address of WriteHeader */
	__u16 method;	    /* of http.Request: strings */
	__u16 uri;
	__u16 peer;
	__u16 tls;	    /* a pointer */
	__u16 proto_major;  /* an int */
	__u16 user;	    /* of AttributesRecord: a user.Info */
	__u16 user_name;    /* of user.DefaultInfo: a string */
	__u16 user_groups;  /* a slice of strings */
	__u8 ends;	    /* END and GOEXIT are probed: its requests may have seats */
	__u8 share;	    /* percent of connections of which requests are refused */
	__u16 request_size; /* of as much of a http.Request as is read, and of a user.DefaultInfo */
	__u16 user_size;
	__u16 state;	 /* of a runtime.g: struct weir_inside_goroutine; 0: it was not found */
	__u16 handed_at; /* at HANDED: how far above the stack pointer what HANDLE is to execute lies */
	__u32 set;	 /* of probes that are for this process: struct weir_inside_cookie */
	struct weir_inside_fields record; /* AttributesRecord */
	struct weir_inside_fields info;	  /* RequestInfo */
	struct weir_inside_context context;
	__u64 nothing;			    /* a func() that does nothing: an address in the process, as user_itab */
	__u64 constants_from, constants_to; /* memory of the binary that nobody can write */
};
WEIR_ASSERT_SIZE(struct weir_inside_layout, 280);

#define WEIR_INSIDE_WORDS 16 /* a power of two: how many constants can be known by their addresses */

/* What the programs have found in the binary's constants: where it is, it stays. */
struct weir_inside_learnt {
	__u64 user_key;			/* an address where the key of the user is; 0: none is known */
	__u64 words[WEIR_INSIDE_WORDS]; /* weir_inside_verb_word(), and weir_inside_key_word() where no verb is */
};
WEIR_ASSERT_SIZE(struct weir_inside_learnt, 136);

/* Texts there, of this many bytes at most. */
#define WEIR_INSIDE_CONSTANT_MAX 16

/* Are these bytes constants? The word below holds any such address: those of processes have 47 bits. */
WEIR_INLINE bool weir_inside_is_constant(const struct weir_inside_layout *layout, __u64 at, __u64 length)
{
	return at >= layout->constants_from && at < layout->constants_to && length <= WEIR_INSIDE_CONSTANT_MAX &&
	       length <= layout->constants_to - at && !(at >> 47);
}

/* A text's address and length, and which verb it is (enum weir_verb): one word, so that nobody reads half of it. */
WEIR_INLINE __u64 weir_inside_verb_word(__u64 at, __u64 length, __u8 verb)
{
	return at << 16 | length << 8 | verb;
}

/* Is it the word of this text? 0 is nobody's. */
WEIR_INLINE bool weir_inside_verb_is(__u64 word, __u64 at, __u64 length)
{
	return word && word >> 16 == at && (word >> 8 & 0xff) == length;
}

/* Of an address where a key is that is not the user's. No text has this length. */
WEIR_INLINE __u64 weir_inside_key_word(__u64 at)
{
	return at << 16 | 0xff00;
}

WEIR_INLINE bool weir_inside_key_is(__u64 word, __u64 at)
{
	return word >> 16 == at && (word & 0xffff) == 0xff00;
}

/* Where in `words` the constant at this address is, if it is known. */
WEIR_INLINE __u32 weir_inside_word_of(__u64 at)
{
	return (at ^ at >> 4) & (WEIR_INSIDE_WORDS - 1);
}

struct weir_inside_process {
	__u64 start; /* when it began, in units of WEIR_INSIDE_TICK_NS since the machine's start: a number is used again */
	__u32 server;	  /* its slot */
	__u32 generation; /* of the programs that serve it: those of an earlier agent leave it alone */
	__u64 seed[2];	  /* that of struct weir_settings: here it is in the CPU's caches by the time it is needed */
	struct weir_inside_layout layout;
	struct weir_inside_learnt learnt; /* the agent sets all before, and makes this anew with it */
};
WEIR_ASSERT_SIZE(struct weir_inside_process, 448);

#define WEIR_INSIDE_TICK_NS 10000000ULL /* as /proc/PID/stat counts */

/*
 * What a probe's link says of it. A probe runs in every process that has its file mapped: in that of another container, whose overlay shows
 * the same file, and in that of another server, for which other places of the file are probed. So a hit is for a process only if the probe
 * is of its set. What the program was loaded with is in the cookie as well, because a constant in its own memory is one more line that no
 * cache has when a request comes.
 * generation: of the programs, as a process has it. nested: processes are not counted as the host counts them.
 * again: flags of the processor with one of which the call has not begun yet. grows: the jump that asks for them leads to a GROWS.
 */
#define WEIR_INSIDE_COOKIE_AGAIN_BITS 12
#define WEIR_INSIDE_COOKIE_SET_BITS 18
#define WEIR_INSIDE_COOKIE_NESTED (1ULL << WEIR_INSIDE_COOKIE_AGAIN_BITS)
#define WEIR_INSIDE_COOKIE_GROWS (WEIR_INSIDE_COOKIE_NESTED << 1)
#define WEIR_INSIDE_COOKIE_SET_AT (WEIR_INSIDE_COOKIE_AGAIN_BITS + 2)
#define WEIR_INSIDE_SETS_MAX ((1U << WEIR_INSIDE_COOKIE_SET_BITS) - 1)

struct weir_inside_cookie {
	__u32 generation;
	__u32 set; /* at most WEIR_INSIDE_SETS_MAX */
	__u32 again;
	bool nested;
	bool grows;
};

WEIR_INLINE __u64 weir_inside_cookie_word(const struct weir_inside_cookie *cookie)
{
	const __u64 generation = cookie->generation, set = cookie->set & WEIR_INSIDE_SETS_MAX;

	return generation << 32 | set << WEIR_INSIDE_COOKIE_SET_AT | (cookie->nested ? WEIR_INSIDE_COOKIE_NESTED : 0) |
	       (cookie->grows ? WEIR_INSIDE_COOKIE_GROWS : 0) |
	       (cookie->again & ((1U << WEIR_INSIDE_COOKIE_AGAIN_BITS) - 1));
}

WEIR_INLINE struct weir_inside_cookie weir_inside_cookie_of(__u64 word)
{
	return (struct weir_inside_cookie){
		.generation = word >> 32,
		.set = (__u32)word >> WEIR_INSIDE_COOKIE_SET_AT,
		.again = word & ((1U << WEIR_INSIDE_COOKIE_AGAIN_BITS) - 1),
		.nested = word & WEIR_INSIDE_COOKIE_NESTED,
		.grows = word & WEIR_INSIDE_COOKIE_GROWS,
	};
}

/* A goroutine serves one request at a time. */
struct weir_inside_key {
	__u64 goroutine; /* address */
	__u32 process;
	__u32 pad;
};
WEIR_ASSERT_SIZE(struct weir_inside_key, 16);

#endif
