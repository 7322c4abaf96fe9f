/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ambiguous requests: what their bytes say is not the same to every reader, so that a server might serve another request
 * than the one that was charged. Such a one is rejected with a 400 that says why, unless its server is to get it.
 *
 * X(NAME, "in plain words")   NAME is one of enum weir_reason
 */
#ifndef WEIR_HTTP_AMBIGUITY_H
#define WEIR_HTTP_AMBIGUITY_H

#include "weir/base/reason.h"
#include "weir/base/types.h"

#define WEIR_AMBIGUITIES(X)                                           \
	X(TLS, "TLS amid requests")                                   \
	X(NOT_HTTP, "no method at its start")                         \
	X(BAD_REQUEST_LINE, "malformed request line")                 \
	X(BAD_VERSION, "neither HTTP/1.1 nor HTTP/1.0")               \
	X(BAD_HEADER, "malformed header")                             \
	X(BARE_CR, "CR without LF")                                   \
	X(BARE_LF, "LF without CR")                                   \
	X(NUL_BYTE, "NUL in the head")                                \
	X(FOLDED_HEADER, "header continued on a second line")         \
	X(HEAD_TOO_LONG, "head of more than 64 KiB")                  \
	X(BAD_CONTENT_LENGTH, "Content-Length that is not a number")  \
	X(LENGTH_CONFLICT, "length told twice")                       \
	X(BAD_TRANSFER_ENCODING, "Transfer-Encoding but for chunked") \
	X(BAD_CHUNK, "malformed chunk or trailer")                    \
	X(BAD_PATH, "path that leads above its root, or has a NUL")   \
	X(REPEATED_NAMESPACE, "namespace named twice")                \
	X(BAD_PREAMBLE, "no PROXY protocol preamble before it")       \
	X(HEAD_CUT, "head that ends with the connection")

/*
 * first: it is the connection's first request. TLS is another protocol then. Whatever else does not begin with a method is
 * not: a server that passes over a byte order mark, say, would find a request behind it.
 */
WEIR_INLINE bool weir_reason_is_ambiguity(__u32 reason, bool first)
{
#define X(name, words) | 1ULL << WEIR_##name
	const __u64 ambiguities = 0 WEIR_AMBIGUITIES(X); /* all of them are among the first 64 reasons */
#undef X

	if (first && reason == WEIR_TLS)
		return false;
	return reason < 64 && ambiguities >> reason & 1;
}

#endif
