/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A path as a whole, taken apart in the way that each kind of server does it: what include/weir/http/path.h, which sees one
 * byte after the other, is compared with.
 */
#ifndef PATH_REFERENCE_H
#define PATH_REFERENCE_H

#include "weir/base/reading.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PATH_REFERENCE_MAX 2048 /* bytes of a path */

struct path_segments {
	size_t count;
	const char *texts[PATH_REFERENCE_MAX]; /* into `decoded` */
	size_t lengths[PATH_REFERENCE_MAX];
	char decoded[PATH_REFERENCE_MAX];
};

static inline int path_hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = c ? strchr(digits, c | 0x20) : NULL;

	if (c >= '0' && c <= '9')
		return c - '0';
	return found && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) ? (int)(found - digits) : -1;
}

/* What percent-encoding stands for; -1: it is none. */
static inline int path_encoded(const char *text, size_t left)
{
	int high = left > 2 ? path_hex(text[1]) : -1;
	int low = left > 2 ? path_hex(text[2]) : -1;

	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Go: the whole path is decoded. */
static inline bool path_decode_kubernetes(const char *path, size_t length, char *out, size_t *used)
{
	for (size_t i = 0; i < length; i++) {
		int byte = path[i] == '%' ? path_encoded(path + i, length - i) : (unsigned char)path[i];

		if (byte < 0)
			return false;
		out[(*used)++] = byte;
		i += path[i] == '%' ? 2 : 0;
	}
	return true;
}

/* Drops the last segment of what has been written, which ends with a slash. */
static inline bool path_nginx_up(const char *out, size_t *used)
{
	if (*used < 2)
		return false;
	do
		--*used;
	while (out[*used - 1] != '/');
	return true;
}

/* What is behind the last slash was a whole segment: dots are resolved, and nothing is left out twice. */
static inline bool path_nginx_settle(char *out, size_t *used)
{
	size_t start = *used;

	while (out[start - 1] != '/')
		start--;
	if (*used - start == 1 && out[start] == '.') {
		*used = start;
	} else if (*used - start == 2 && out[start] == '.' && out[start + 1] == '.') {
		*used = start;
		return path_nginx_up(out, used);
	}
	return true;
}

/* nginx: decoded from left to right into a path that is always normal up to its last slash. */
static inline bool path_decode_nginx(const char *path, size_t length, char *out, size_t *used)
{
	for (size_t i = 0; i < length && path[i] != '#'; i++) {
		int byte = path[i] == '%' ? path_encoded(path + i, length - i) : (unsigned char)path[i];

		if (byte < 0 || (path[i] == '%' && !byte))
			return false;
		i += path[i] == '%' ? 2 : 0;
		if (byte == '/' && *used && !path_nginx_settle(out, used))
			return false;
		if (byte != '/' || !*used || out[*used - 1] != '/')
			out[(*used)++] = byte;
	}
	return !*used || path_nginx_settle(out, used);
}

static inline bool path_decode(enum weir_paths paths, const char *path, size_t length, char *out, size_t *used)
{
	if (paths == WEIR_PATHS_NGINX)
		return path_decode_nginx(path, length, out, used);
	if (paths == WEIR_PATHS_KUBERNETES)
		return path_decode_kubernetes(path, length, out, used);
	memcpy(out, path, length);
	*used = length;
	return true;
}

/* path: from its first slash to its end. false: a server of this kind refuses it. */
static inline bool path_reference(enum weir_paths paths, const char *path, size_t length, struct path_segments *out)
{
	size_t start = 0, end = 0;

	out->count = 0;
	if (!path_decode(paths, path, length, out->decoded, &end))
		return false;
	if (paths == WEIR_PATHS_RAW) {
		start = 1;
	} else {
		while (start < end && out->decoded[start] == '/')
			start++;
		while (end > start && out->decoded[end - 1] == '/')
			end--;
		if (start == end)
			return true;
	}
	for (;;) {
		const char *slash = memchr(out->decoded + start, '/', end - start);
		size_t stop = slash ? (size_t)(slash - out->decoded) : end;

		out->texts[out->count] = out->decoded + start;
		out->lengths[out->count++] = stop - start;
		if (!slash)
			return true;
		start = stop + 1;
	}
}

#endif
