/* SPDX-License-Identifier: GPL-2.0 */
/* A request as the framing machine (request.h) knows it, between any two bytes. */
#ifndef WEIR_HTTP_REQUEST_STATE_H
#define WEIR_HTTP_REQUEST_STATE_H

#include "weir/base/frame.h"
#include "weir/base/groups.h"
#include "weir/base/subject.h"
#include "weir/base/types.h"
#include "weir/http/framing.h"
#include "weir/http/path.h"

enum weir_request_state {
	WEIR_AT_START = WEIR_AT_OWN, /* first byte, or that after an empty line */
	WEIR_AT_START_LF,
	WEIR_AT_METHOD,
	WEIR_AT_TARGET,	  /* its first byte */
	WEIR_AT_ASTERISK, /* behind `*`, which is the whole target */
	WEIR_AT_SCHEME,
	WEIR_AT_SCHEME_SLASH,
	WEIR_AT_SCHEME_SLASHES,
	WEIR_AT_HOST,
	WEIR_AT_PATH,
	WEIR_AT_PATH_HEX_HIGH,
	WEIR_AT_PATH_HEX_LOW,
	WEIR_AT_QUERY, /* one whose parameters matter */
	WEIR_AT_QUERY_HEX_HIGH,
	WEIR_AT_QUERY_HEX_LOW,
	WEIR_AT_TARGET_REST, /* nothing in it matters */
	WEIR_AT_VERSION,
	WEIR_AT_CREDENTIALS, /* value of Authorization, up to the token (request_header.h) */
	WEIR_AT_NAME_VALUE,  /* value that is hashed, of the header in `field` (enum weir_header) */
};

/* Final at WEIR_FRAME_HEAD. */
enum weir_request_flags {
	WEIR_REQUEST_HTTP10 = 1 << 0,
	WEIR_REQUEST_CLOSE = 1 << 1,   /* Connection: close, or HTTP/1.0 without keep-alive */
	WEIR_REQUEST_EXPECT = 1 << 2,  /* Expect: 100-continue */
	WEIR_REQUEST_UPGRADE = 1 << 3, /* Connection: upgrade, and Upgrade */
	WEIR_REQUEST_CHUNKED = 1 << 4,
	WEIR_REQUEST_HAS_LENGTH = 1 << 5,
	WEIR_REQUEST_HEALTH =
		1 << 6, /* /healthz, /livez, /readyz or below, in a path that no server reads as another one */
};

/*
 * A refusal ends the connection of such a request. Of a client of HTTP/1.0 it does, whatever it asked for: it would go on only if the answer
 * said so, and else waits for the end.
 */
#define WEIR_REQUEST_LAST (WEIR_REQUEST_EXPECT | WEIR_REQUEST_CLOSE | WEIR_REQUEST_HTTP10)

/* Parameters of a query that are read, and what they were found to say (query.h). */
enum weir_query_key {
	WEIR_QUERY_OTHER,
	WEIR_QUERY_WATCH,
	WEIR_QUERY_LIMIT,
	WEIR_QUERY_RESOURCE_VERSION,
	WEIR_QUERY_DRY_RUN,
	WEIR_QUERY_FIELD_SELECTOR,
};

enum weir_query_says {
	WEIR_QUERY_WATCHES = 1 << 0,
	WEIR_QUERY_VERSIONED = 1 << 1,	 /* resourceVersion is not empty */
	WEIR_QUERY_ANY_VERSION = 1 << 2, /* it is 0 */
	WEIR_QUERY_DRY_RUNS = 1 << 3,
	WEIR_QUERY_SELECTS = 1 << 4, /* one name, which stands at WEIR_PATH_SELECTED */
	WEIR_QUERY_STRANGE = 1 << 5, /* some value is not what it must be: the names that it selects do not count */
	WEIR_QUERY_NARROWS =
		1
		<< 6, /* it may ask for a part of the list: so may every parameter that is not known to leave the list whole */
};

struct weir_query {
	__u32 limit; /* saturated; 0: none */
	__u8 says;   /* enum weir_query_says */
	__u8 seen;   /* bit n: enum weir_query_key n */
	__u8 key;    /* enum weir_query_key: of the parameter that is being read */
	__u8 pair;   /* enum weir_query_pair (query.h): of the same */
};
WEIR_ASSERT_SIZE(struct weir_query, 8);

/*
 * Offsets count from the request's first byte (empty lines before the request line included), name lengths are those of
 * the raw bytes. Offset and length are 0 where there is no name.
 */
struct weir_request {
	struct weir_framing framing;
	struct weir_subject_hash hash; /* of the name that is being read */
	struct weir_path path;
	struct weir_query query;
	__u64 user_subject;	   /* 0: none */
	__u64 token_subject;	   /* 0: none */
	__u64 namespace_subject;   /* of the header that names the namespace; 0: none */
	__u64 group_subject;	   /* of the group that WEIR_FRAME_GROUP is about */
	struct weir_groups groups; /* those whose names are known, put there by who feeds the machine */
	__u64 content_length;	   /* 0 without WEIR_REQUEST_HAS_LENGTH */
	__u32 user_offset;
	__u32 namespace_offset;
	__u32 head_length;
	__u16 user_length;
	__u16 namespace_length;
	__u16 line_length;     /* of the request line, empty lines before it included, its CRLF not */
	__u16 flags;	       /* enum weir_request_flags */
	__u8 method;	       /* enum weir_method */
	__u8 spelling;	       /* enum weir_method that it would be in capital letters */
	__u8 lost;	       /* enum weir_reason, after WEIR_FRAME_LOST */
	__u8 headers_seen;     /* bit n: enum weir_header n, even an empty one */
	__u8 headers_repeated; /* the same */
	__u8 account;	       /* enum weir_account (request_header.h) */
	__u8 pad[6];
};
WEIR_ASSERT_SIZE(struct weir_request, 376);

/* What one byte does to the hash of a name; done at one place, in this order, to keep the inlined code small. */
enum weir_name_step {
	WEIR_STEP_END = 1 << 0, /* a name, if nothing but white space follows */
	WEIR_STEP_START = 1 << 1,
	WEIR_STEP_BYTE = 1 << 2,
};

struct weir_name_steps {
	__u8 steps;    /* enum weir_name_step */
	__u8 header;   /* enum weir_header; WEIR_HEADERS: it is of the request line */
	__u8 byte;     /* decoded */
	__u32 segment; /* END: place in the path */
	__u32 end;     /* the same: offset of what comes after it */
};

#endif
