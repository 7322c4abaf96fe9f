/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path of a request as rules ask for it (match.h): what it is, and what it is below.
 *
 *   path = 0, depth = weir_path_depth(p, paths)
 *   for n = 0 .. depth, at most WEIR_PATH_SEGMENTS:
 *           if weir_path_is_below(p, depth, n), and some rule has a prefix of n segments: look up weir_path_below(path)
 *           if n < depth: path = weir_path_further(path, weir_path_subject(p, n))
 *   if depth <= WEIR_PATH_SEGMENTS: look up weir_path_exact(path, weir_path_is_open(p, depth))
 */
#ifndef WEIR_HTTP_MATCH_PATH_H
#define WEIR_HTTP_MATCH_PATH_H

#include "weir/http/attributes.h"
#include "weir/http/path.h"
#include "weir/limit/match.h"

/* How many segments it has; read raw, it has one behind its last slash, too, which does not count here. */
WEIR_INLINE __u32 weir_path_depth(const struct weir_path *p, enum weir_paths paths)
{
	return p->count - (paths == WEIR_PATHS_RAW && p->open && p->count);
}

/* It ends with a slash, as a path without segments does, written or not. */
WEIR_INLINE bool weir_path_is_open(const struct weir_path *p, __u32 depth)
{
	return p->open || !depth;
}

/* Behind its first n segments there is a slash, whatever follows that. */
WEIR_INLINE bool weir_path_is_below(const struct weir_path *p, __u32 depth, __u32 n)
{
	return n < depth || (n == depth && weir_path_is_open(p, depth));
}

#endif
