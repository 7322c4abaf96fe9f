/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a Go server's requests can be seen and refused, found in its binary and checked there. Each function fills one plain
 * struct, or returns a negative errno (-ENOENT: the program has no such thing; -ENOTSUP: it has, but not as weir knows it;
 * -ENOTUNIQ: there are several) with err saying what was found and what missed, and leaves *out alone.
 *
 * Addresses are those of the ELF file; a PIE's process adds what it was loaded at (golang_build()->pie). Offsets of places are
 * the file's, as a uprobe wants them. Offsets of fields are bytes from the beginning of the struct.
 */
#ifndef WEIR_USER_GOLANG_FIND_H
#define WEIR_USER_GOLANG_FIND_H

#include "golang/golang.h"

#define GOLANG_MAX_RETURNS 32
#define GOLANG_MAX_EXECUTE 16
#define GOLANG_MAX_PARENTS 8
#define GOLANG_NAME_SIZE 192

/* An instruction that a probe goes to. */
struct golang_place {
	__u64 address;
	__u64 offset; /* in the file */
};

/*
 * `begin` is where a call is seen, with the stack pointer and the registers that it came with: the jump that ends the check of the
 * stack. It is taken where the stack has to grow, after which the function begins again: a call has begun where it is not. It is if
 * one of the processor's flags in `again` is set. A function without such a check has `begin` where it makes its frame, or at its
 * first instruction, and `again` is 0. `grows` is where the jump leads, if it is taken with either of two flags that no comparison sets
 * together; all 0 otherwise.
 */
struct golang_function {
	char name[GOLANG_NAME_SIZE];
	__u64 address;
	struct golang_place begin;
	struct golang_place grows;
	__u32 again;
};

/* All RETs of a function. */
struct golang_returns {
	struct golang_place places[GOLANG_MAX_RETURNS];
	unsigned int n;
};

/* A CALL inside a function. */
struct golang_call {
	struct golang_place place;
	__u64 next; /* the instruction behind it */
};

/*
 * Where a word of an argument is at `begin`, or one of a result at a RET: in an integer register, by its place in the order
 * of Go's internal ABI (amd64: AX BX CX DI SI R8 R9 R10 R11), or `stack` bytes above the stack pointer.
 */
struct golang_word {
	bool on_stack;
	__u8 reg;
	__u16 stack;
};

/* net/http.Request. Strings, but where it says otherwise. */
struct golang_http_request {
	__u16 method, host, remote_addr, request_uri;
	__u16 url;		   /* *url.URL */
	__u16 header;		   /* http.Header, a map */
	__u16 tls;		   /* *tls.ConnectionState */
	__u16 proto_major;	   /* int */
	__u16 context;		   /* context.Context: two words */
	__u16 url_path, url_query; /* of url.URL */
};

/* k8s.io/apiserver/pkg/authentication/user.DefaultInfo */
struct golang_user {
	__u64 itab;	 /* of *DefaultInfo as user.Info: what stands before its pointer */
	__u64 type;	 /* of *DefaultInfo: the same in an `any` */
	__u16 name, uid; /* strings */
	__u16 groups;	 /* []string */
	__u16 extra;	 /* map[string][]string */
};

/* What a request asks for, in the structs that follow. Strings, but where it says otherwise. */
struct golang_asked {
	__u16 is_resource; /* bool */
	__u16 verb, namespace, api_group, api_version, resource, subresource, name, path;
};

/* k8s.io/apiserver/pkg/endpoints/request.RequestInfo */
struct golang_request_info {
	__u64 type; /* of *RequestInfo in an `any` */
	struct golang_asked asked;
};

/* k8s.io/apiserver/pkg/authorization/authorizer.AttributesRecord */
struct golang_attributes {
	__u64 itab; /* of *AttributesRecord as authorizer.Attributes */
	__u16 user; /* user.Info: two words */
	struct golang_asked asked;
};

/*
 * Any net/http server: serverHandler.ServeHTTP, through which all requests of net/http's own HTTP/1 and HTTP/2 come.
 * A refusal goes on, from `serve.begin`, in the writer's own method WriteHeader: with the writer's second word as its
 * receiver and the status. net/http.Error would not do: its five words of arguments may be written to the caller's frame, which has
 * room for the four of ServeHTTP.
 */
struct golang_http {
	struct golang_function serve;
	struct golang_word writer, request; /* the http.ResponseWriter's first word; the *http.Request */
	struct golang_returns returns;	    /* where a request ends that did not panic */
	struct golang_http_request fields;
	__u16 write_header; /* in the itab of a http.ResponseWriter, the writer's first word: the address of WriteHeader */
};
int golang_find_http(struct golang *go, struct golang_http *out, struct error *err);

/*
 * Kubernetes' filter that authorizes: it has every request that was authenticated, the long-running ones, too. First `filter`
 * with the *http.Request, then a return of GetAuthorizerAttributes, in the same goroutine. It may refuse as golang_http does.
 */
struct golang_authorization {
	struct golang_function filter; /* WithAuthorization's handler */
	struct golang_word writer, request;
	__u16 write_header; /* as in struct golang_http */
	struct golang_returns filter_returns;
	struct golang_function get;		/* GetAuthorizerAttributes */
	struct golang_returns returns;		/* of it */
	struct golang_word record_itab, record; /* at those */
	struct golang_attributes attributes;
	struct golang_user user;
	struct golang_http_request fields;
};
int golang_find_authorization(struct golang *go, struct golang_authorization *out, struct error *err);

/*
 * Kubernetes' API Priority and Fairness: (*configController).Handle decides. A refusal either returns from its `begin` as if it
 * had rejected (only where `skippable`: up to Kubernetes 1.27), or returns from the `begin` of the func that it was handed to
 * execute: that is one of `execute`, learnt at the decision from the func value (its first word is the function's address).
 */
struct golang_apf {
	struct golang_function handle;
	struct golang_word info; /* *request.RequestInfo */
	struct golang_word user_itab, user_data;
	struct golang_word execute_value; /* the func value */
	struct golang_returns returns;	  /* of Handle */
	struct golang_function filter; /* whose handler calls it: (*priorityAndFairnessHandler).Handle, or a closure */
	struct golang_word filter_request; /* its *http.Request */
	bool skippable;
	struct golang_function execute[GOLANG_MAX_EXECUTE];
	unsigned int n_execute;
	struct golang_user user;
	struct golang_request_info fields;
	struct golang_http_request request;
};
int golang_find_apf(struct golang *go, struct golang_apf *out, struct error *err);

/* A word on the goroutine's own stack: where an instruction is reached, `stack` bytes above the stack pointer. */
struct golang_slot {
	struct golang_place place;
	__u16 stack;
	bool at_begin; /* the place is the `begin` of the function that was handed the word */
};

/*
 * How API Priority and Fairness can be made to refuse by memory alone: a func() that does nothing, in the place of the one that
 * Handle was handed to execute. `value` is such a func value: a word of read-only data that has the address of a function of one
 * instruction, RET.
 */
struct golang_by_memory {
	struct golang_slot execute;
	__u64 value;
	char name[GOLANG_NAME_SIZE]; /* of the function */
};
int golang_find_by_memory(struct golang *go, const struct golang_apf *apf, struct golang_by_memory *out,
			  struct error *err);

/* Without API Priority and Fairness: the filter of --max-requests-inflight. It refuses with 429 if the send says no (AX 0). */
struct golang_max_in_flight {
	struct golang_function filter; /* WithMaxInFlightLimit's handler */
	struct golang_word request;
	struct golang_returns returns;
	struct golang_call send; /* of runtime.selectnbsend */
	struct golang_http_request fields;
};
int golang_find_max_in_flight(struct golang *go, struct golang_max_in_flight *out, struct error *err);

/*
 * How to walk a context.Context (an itab, a pointer) from a request outwards: *valueCtx has a value, an `any` of (type,
 * pointer), and a parent; the other kinds only have a parent.
 */
struct golang_context {
	__u64 value_itab;
	__u16 value_parent, value; /* of valueCtx */
	struct {
		__u64 itab;
		__u16 parent;
	} others[GOLANG_MAX_PARENTS];
	unsigned int n_others;
};
int golang_find_context(struct golang *go, struct golang_context *out, struct error *err);

/* What a Kubernetes API server's package `request` keeps the user under in a context: a key of a type and with a value of its own. */
struct golang_user_key {
	__u64 type; /* in an `any` */
	__u64 value;
};
int golang_find_user_key(struct golang *go, struct golang_user_key *out, struct error *err);

/* The end of a goroutine, whatever it did: runtime.goexit1. */
int golang_find_goexit(struct golang *go, struct golang_function *out, struct error *err);

/*
 * Where a goroutine's state is in its runtime.g: a word, another one, and behind them the goroutine's number. runtime.casgstatus
 * changes the state.
 */
int golang_find_goroutine(struct golang *go, __u16 *out, struct error *err);

/* Kubernetes' version as the server itself has it ("v1.20.2"), for the caller to free. */
int golang_find_kubernetes_version(struct golang *go, char **out, struct error *err);

#endif
