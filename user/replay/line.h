/* SPDX-License-Identifier: GPL-2.0 */
/* A line that is a JSON object, read where it stands and without memory of its own: recordings have millions. */
#ifndef WEIR_USER_REPLAY_LINE_H
#define WEIR_USER_REPLAY_LINE_H

#include <stddef.h>

#include "weir/http/json.h"

#include "base/error.h"

/* A member that is asked for. Of several that have its name the last one counts. */
struct line_member {
	const char *name;
	__u64 word[2];	   /* the name, as the reader keeps it */
	char *text;	   /* NULL: it is no string, or not there */
	const char *value; /* that is no string, as it stands; NULL: it is one, or not there */
	size_t length;	   /* of value */
};

/* At most WEIR_JSON_NAME_MAX characters. */
#define LINE_MEMBER(label)                                                                      \
	{                                                                                       \
		.name = (label), .word = { WEIR_TEXT_WORD(label, 0), WEIR_TEXT_WORD(label, 1) } \
	}

/* Fills in the members that are there. Texts are unescaped in the line, which ends with a 0 and is of no other use afterwards. */
int line_read(char *line, size_t length, struct line_member *members, size_t n, struct error *err);

#endif
