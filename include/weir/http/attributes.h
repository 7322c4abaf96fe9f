/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a request is about, as the API server sees it: the attributes that Kubernetes' RequestInfo would have for it.
 * They are known when its head has ended.
 */
#ifndef WEIR_HTTP_ATTRIBUTES_H
#define WEIR_HTTP_ATTRIBUTES_H

#include "weir/base/reading.h"
#include "weir/base/types.h"
#include "weir/http/request_state.h"

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
	WEIR_ATTRIBUTE_NARROWED = 1 << 4,     /* of a list: it may ask for a part, or for no body at all */
};

/* What a list asks of the server. */
enum weir_list_cost {
	WEIR_LIST_NONE,	  /* no list */
	WEIR_LIST_CACHED, /* a resourceVersion, and no limit that it allows: from memory */
	WEIR_LIST_PAGE,	  /* at most `limit` objects from storage */
	WEIR_LIST_WHOLE,  /* everything from storage */
};

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
	__u8 subresource_word;
	__u8 pad[3];
};
WEIR_ASSERT_SIZE(struct weir_attributes, 64);

WEIR_INLINE enum weir_verb weir_verb_of_method(__u8 method)
{
	switch (method) {
	case WEIR_METHOD_GET:
	case WEIR_METHOD_HEAD:
		return WEIR_VERB_GET;
	case WEIR_METHOD_POST:
		return WEIR_VERB_CREATE;
	case WEIR_METHOD_PUT:
		return WEIR_VERB_UPDATE;
	case WEIR_METHOD_PATCH:
		return WEIR_VERB_PATCH;
	case WEIR_METHOD_DELETE:
		return WEIR_VERB_DELETE;
	default:
		return WEIR_VERB_NONE;
	}
}

WEIR_INLINE enum weir_verb weir_verb_of_spelling(__u8 spelling)
{
	switch (spelling) {
	case WEIR_METHOD_GET:
		return WEIR_VERB_GET;
	case WEIR_METHOD_HEAD:
		return WEIR_VERB_HEAD;
	case WEIR_METHOD_POST:
		return WEIR_VERB_POST;
	case WEIR_METHOD_PUT:
		return WEIR_VERB_PUT;
	case WEIR_METHOD_PATCH:
		return WEIR_VERB_PATCH;
	case WEIR_METHOD_DELETE:
		return WEIR_VERB_DELETE;
	case WEIR_METHOD_OPTIONS:
		return WEIR_VERB_OPTIONS;
	case WEIR_METHOD_CONNECT:
		return WEIR_VERB_CONNECT;
	default:
		return WEIR_VERB_OTHER;
	}
}

WEIR_INLINE __u8 weir_path_word(const struct weir_path *p, __u32 at)
{
	return at < p->count && at < WEIR_PATH_SEGMENTS ? p->segments[at].word : WEIR_WORD_OTHER;
}

WEIR_INLINE __u64 weir_path_subject(const struct weir_path *p, __u32 at)
{
	return at < p->count && at < WEIR_PATH_SEGMENTS ? p->segments[at].subject : 0;
}

/* The resource and what follows it, from segment `at`. */
WEIR_INLINE void weir_attributes_resource(const struct weir_path *p, __u32 at, struct weir_attributes *a)
{
	a->resource_at = at;
	a->resource = weir_path_subject(p, at);
	a->resource_word = weir_path_word(p, at);
	if (p->count - at < 2)
		return;
	a->name_at = at + 1;
	a->name = weir_path_subject(p, at + 1);
	if (p->count - at < 3 || a->verb == WEIR_VERB_PROXY)
		return;
	a->subresource_at = at + 2;
	a->subresource = weir_path_subject(p, at + 2);
	a->subresource_word = weir_path_word(p, at + 2);
}

/* namespaces/NAME is a resource of its own, with its subresources; what else follows is in the namespace. */
WEIR_INLINE void weir_attributes_namespaced(const struct weir_path *p, __u32 at, struct weir_attributes *a)
{
	__u8 after = weir_path_word(p, at + 2);

	if (weir_path_word(p, at) == WEIR_WORD_NAMESPACES && p->count - at >= 2) {
		a->namespace_at = at + 1;
		a->namespace = weir_path_subject(p, at + 1);
		if (p->count - at >= 3 && after != WEIR_WORD_STATUS && after != WEIR_WORD_FINALIZE)
			at += 2;
	}
	weir_attributes_resource(p, at, a);
}

/* What follows the version, from segment `at`: a verb may. */
WEIR_INLINE void weir_attributes_versioned(const struct weir_path *p, __u8 method, __u32 at, struct weir_attributes *a)
{
	__u8 word = weir_path_word(p, at);

	if (word != WEIR_WORD_WATCH && word != WEIR_WORD_PROXY) {
		a->verb = weir_verb_of_method(method);
	} else if (p->count - at >= 2) {
		a->verb = word == WEIR_WORD_WATCH ? WEIR_VERB_WATCH : WEIR_VERB_PROXY;
		at++;
	} else {
		return;
	}
	weir_attributes_namespaced(p, at, a);
}

WEIR_INLINE enum weir_list_cost weir_list_cost_of(const struct weir_query *q)
{
	if (q->says & WEIR_QUERY_ANY_VERSION)
		return WEIR_LIST_CACHED;
	if (q->limit)
		return WEIR_LIST_PAGE;
	return q->says & WEIR_QUERY_VERSIONED ? WEIR_LIST_CACHED : WEIR_LIST_WHOLE;
}

/* A resource without a name: it is listed or watched, and its name may stand in the query. */
WEIR_INLINE void weir_attributes_query(const struct weir_request *r, struct weir_attributes *a)
{
	const struct weir_query *q = &r->query;

	if (a->verb == WEIR_VERB_GET && !a->name) {
		a->verb = q->says & WEIR_QUERY_WATCHES ? WEIR_VERB_WATCH : WEIR_VERB_LIST;
		if ((q->says & (WEIR_QUERY_SELECTS | WEIR_QUERY_STRANGE)) == WEIR_QUERY_SELECTS) {
			a->name_at = WEIR_PATH_SELECTED;
			a->name = r->path.segments[WEIR_PATH_SELECTED].subject;
		}
	}
	if (a->verb == WEIR_VERB_DELETE && !a->name)
		a->verb = WEIR_VERB_DELETECOLLECTION;
	if (a->verb == WEIR_VERB_LIST) {
		a->list = weir_list_cost_of(q);
		a->limit = q->limit;
		if (r->method == WEIR_METHOD_HEAD || (q->says & WEIR_QUERY_NARROWS))
			a->flags |= WEIR_ATTRIBUTE_NARROWED;
	}
	if (q->says & WEIR_QUERY_DRY_RUNS)
		a->flags |= WEIR_ATTRIBUTE_DRY_RUN;
}

/* Of a request for an API. */
WEIR_INLINE void weir_attributes_path(const struct weir_request *r, struct weir_attributes *a)
{
	const struct weir_path *p = &r->path;
	bool grouped = weir_path_word(p, 0) == WEIR_WORD_APIS;

	if (grouped && p->count < 4)
		return;
	a->flags |= WEIR_ATTRIBUTE_RESOURCE;
	if (grouped) {
		a->group_at = 1;
		a->group = weir_path_subject(p, 1);
		a->group_word = weir_path_word(p, 1);
	}
	a->version_at = grouped ? 2 : 1;
	weir_attributes_versioned(p, r->method, grouped ? 3 : 2, a);
	if (a->resource_at != WEIR_SEGMENT_NONE)
		weir_attributes_query(r, a);
}

/* /debug/pprof/ and what is below it. */
WEIR_INLINE bool weir_path_is_profile(const struct weir_path *p)
{
	return weir_path_word(p, 0) == WEIR_WORD_DEBUG && weir_path_word(p, 1) == WEIR_WORD_PPROF &&
	       p->segments[0].offset == p->offset + 1 && (p->count > 2 || p->open);
}

WEIR_INLINE bool weir_attributes_run_long(const struct weir_request *r, const struct weir_attributes *a)
{
	if (a->verb == WEIR_VERB_WATCH || a->verb == WEIR_VERB_PROXY)
		return true;
	if (!(a->flags & WEIR_ATTRIBUTE_RESOURCE))
		return weir_path_is_profile(&r->path);
	return a->subresource_word == WEIR_WORD_ATTACH || a->subresource_word == WEIR_WORD_EXEC ||
	       a->subresource_word == WEIR_WORD_PROXY || a->subresource_word == WEIR_WORD_LOG ||
	       a->subresource_word == WEIR_WORD_PORTFORWARD;
}

WEIR_INLINE bool weir_path_has_prefix(const struct weir_path *p, const struct weir_reading *how)
{
	__u32 i;

#pragma GCC unroll 8
	for (i = 0; i < WEIR_PREFIX_SEGMENTS; i++)
		if (i < how->tenant_segments && weir_path_subject(p, i) != how->prefix[i])
			return false;
	return true;
}

/* Where something else than Kubernetes' rule says what a request's namespace is. */
WEIR_INLINE void weir_attributes_tenant(const struct weir_request *r, const struct weir_reading *how,
					struct weir_attributes *a)
{
	const struct weir_path *p = &r->path;
	__u32 at = how->tenant_segments;

	if (how->tenant == WEIR_TENANT_PATH)
		return;
	if (how->tenant == WEIR_TENANT_HEADER) {
		a->namespace = r->namespace_subject;
		a->namespace_at = WEIR_SEGMENT_NONE;
		return;
	}
	if (how->tenant == WEIR_TENANT_SEGMENT)
		at--;
	a->namespace = how->tenant == WEIR_TENANT_PREFIX && !weir_path_has_prefix(p, how) ? 0 :
											    weir_path_subject(p, at);
	a->namespace_at = a->namespace ? at : WEIR_SEGMENT_NONE;
}

/* What method and path say. r: at WEIR_FRAME_HEAD or later */
WEIR_INLINE void weir_attributes_begin(const struct weir_request *r, struct weir_attributes *a)
{
	*a = (struct weir_attributes){
		.verb = weir_verb_of_spelling(r->spelling),
		.namespace_at = WEIR_SEGMENT_NONE,
		.group_at = WEIR_SEGMENT_NONE,
		.version_at = WEIR_SEGMENT_NONE,
		.resource_at = WEIR_SEGMENT_NONE,
		.subresource_at = WEIR_SEGMENT_NONE,
		.name_at = WEIR_SEGMENT_NONE,
	};
	if (weir_path_is_of_api(&r->path))
		weir_attributes_path(r, a);
}

/* What follows from method and path, and the tenant, if the server's settings take it from somewhere else than the path. */
WEIR_INLINE void weir_attributes_end(const struct weir_request *r, const struct weir_reading *how,
				     struct weir_attributes *a)
{
	if (a->verb == WEIR_VERB_GET || a->verb == WEIR_VERB_LIST || a->verb == WEIR_VERB_WATCH)
		a->flags |= WEIR_ATTRIBUTE_READ_ONLY;
	if (weir_attributes_run_long(r, a))
		a->flags |= WEIR_ATTRIBUTE_LONG_RUNNING;
	weir_attributes_tenant(r, how, a);
}

/* Both steps. r: at WEIR_FRAME_HEAD or later */
WEIR_INLINE void weir_attributes_of(const struct weir_request *r, const struct weir_reading *how,
				    struct weir_attributes *a)
{
	weir_attributes_begin(r, a);
	weir_attributes_end(r, how, a);
}

#endif
