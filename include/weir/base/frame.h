/* SPDX-License-Identifier: GPL-2.0 */
/* The results of the framing machines (request.h, response.h) for their caller, and what they tell each other. */
#ifndef WEIR_BASE_FRAME_H
#define WEIR_BASE_FRAME_H

#include "weir/base/reason.h"
#include "weir/base/types.h"

/* The outcome of one byte. */
enum weir_frame_event {
	WEIR_FRAME_MORE, /* go on */
	WEIR_FRAME_HEAD, /* this byte ended a head: `_ended` tells whether the message ended, too, or a body follows */
	WEIR_FRAME_MESSAGE, /* this byte ended the body, and the message with it */
	WEIR_FRAME_LOST,    /* it can not be followed from here on: the machine's `lost` says why (enum weir_reason) */
	WEIR_FRAME_GROUP,   /* a request's header that names a group has ended (request.h) */
};

/* HEAD is 1, so that "the request was HEAD" may stand for the method where nothing else is known of it. */
enum weir_method {
	WEIR_METHOD_GET,
	WEIR_METHOD_HEAD,
	WEIR_METHOD_POST,
	WEIR_METHOD_PUT,
	WEIR_METHOD_PATCH,
	WEIR_METHOD_DELETE,
	WEIR_METHOD_OPTIONS,
	WEIR_METHOD_CONNECT,
	WEIR_METHOD_OTHER,
	WEIR_METHOD_PRI, /* that of the HTTP/2 preface */
};

#define WEIR_HEAD_MAX 65536 /* bytes of one head */

#endif
