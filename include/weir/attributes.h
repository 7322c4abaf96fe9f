/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a request is about, as the API server sees it: the attributes that Kubernetes' RequestInfo would have for it.
 * They are known when its head has ended.
 */
#ifndef WEIR_ATTRIBUTES_H
#define WEIR_ATTRIBUTES_H

#include "types.h"

/*
 * X(NAME, "name"). A resource is got, listed, ...; where there is none the verb is the method in lower case. NONE: a
 * resource, and a method that means nothing to it. OTHER: no resource, and a method without a name here.
 */
#define WEIR_VERBS(X)                           \
	X(NONE, "")                             \
	X(GET, "get")                           \
	X(LIST, "list")                         \
	X(WATCH, "watch")                       \
	X(CREATE, "create")                     \
	X(UPDATE, "update")                     \
	X(PATCH, "patch")                       \
	X(DELETE, "delete")                     \
	X(DELETECOLLECTION, "deletecollection") \
	X(PROXY, "proxy")                       \
	X(HEAD, "head")                         \
	X(POST, "post")                         \
	X(PUT, "put")                           \
	X(OPTIONS, "options")                   \
	X(CONNECT, "connect")                   \
	X(OTHER, "other")

enum weir_verb {
#define X(name, text) WEIR_VERB_##name,
	WEIR_VERBS(X)
#undef X
	WEIR_VERB_COUNT
};

enum weir_attribute_flags {
	WEIR_ATTRIBUTE_RESOURCE = 1 << 0,     /* below /api or /apis; else a path, of which only the verb is known */
	WEIR_ATTRIBUTE_READ_ONLY = 1 << 1,    /* verbs get, list, watch */
	WEIR_ATTRIBUTE_LONG_RUNNING = 1 << 2, /* a watch, a proxied or an interactive one: it may last for hours */
	WEIR_ATTRIBUTE_DRY_RUN = 1 << 3,      /* dryRun=All: nothing is to be changed */
};

/* What a list asks of the server. */
enum weir_list_cost {
	WEIR_LIST_NONE,	  /* no list */
	WEIR_LIST_CACHED, /* a resourceVersion, and no limit that it allows: from memory */
	WEIR_LIST_PAGE,	  /* at most `limit` objects from storage */
	WEIR_LIST_WHOLE,  /* everything from storage */
};

#define WEIR_SEGMENT_NONE 255 /* index of no segment */

/* Subjects (subject.h) are those of kind WEIR_NAME_NAMESPACE, whatever they name; 0: there is none, or an empty one. */
struct weir_attributes {
	__u64 namespace; /* or the tenant, when something else than the path's namespace names it */
	__u64 group;
	__u64 resource;
	__u64 subresource;
	__u64 name;
	__u32 limit;	   /* of a list; 0: none */
	__u16 flags;	   /* enum weir_attribute_flags */
	__u8 verb;	   /* enum weir_verb */
	__u8 list;	   /* enum weir_list_cost */
	__u8 namespace_at; /* which of the path's segments; WEIR_SEGMENT_NONE */
	__u8 group_at;
	__u8 version_at;
	__u8 resource_at;
	__u8 subresource_at;
	__u8 name_at;
	__u8 group_word; /* enum weir_word_id (path.h); 0: not one of these */
	__u8 resource_word;
};

#endif
