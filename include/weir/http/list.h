/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which list a LIST is of: the resource's, in the path's namespace or in all of them. Neither the tenant that something
 * else than the path may name nor the version matters: the server reads the same objects.
 */
#ifndef WEIR_HTTP_LIST_H
#define WEIR_HTTP_LIST_H

#include "weir/http/attributes.h"
#include "weir/limit/match.h"

WEIR_INLINE __u64 weir_list_namespace(const struct weir_path *p, __u32 resource_at)
{
	if (resource_at < 2 || weir_path_word(p, resource_at - 2) != WEIR_WORD_NAMESPACES)
		return 0;
	return weir_path_subject(p, resource_at - 1);
}

/* A subject; 0: it is no LIST. */
WEIR_INLINE __u64 weir_list_of(const struct weir_path *p, const struct weir_attributes *a)
{
	if (a->list == WEIR_LIST_NONE)
		return 0;
	return weir_pair(weir_pair(a->group, a->resource), weir_list_namespace(p, a->resource_at));
}

#endif
