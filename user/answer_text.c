/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "answer_text.h"
#include "cleanup.h"

#define RETRY_HEADER "Retry-After: "
#define RETRY_MEMBER "\"retryAfterSeconds\":"

/* A Kubernetes Status on one line; NULL without memory. */
static char *status_text(int retry_after_s)
{
	CLEANUP_JSON json_t *status = NULL;

	status = json_pack("{s:s, s:s, s:{}, s:s, s:s, s:s, s:{s:i}, s:i}", "kind", "Status", "apiVersion", "v1",
			   "metadata", "status", "Failure", "message", "Too many requests, please try again later.",
			   "reason", "TooManyRequests", "details", "retryAfterSeconds", retry_after_s, "code", 429);
	return status ? json_dumps(status, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
}

/* The offset behind `mark`, which is in `text`. */
static __u16 offset_behind(const char *text, const char *mark)
{
	return strstr(text, mark) + strlen(mark) - text;
}

int weir_answer_make(enum weir_answer_kind kind, unsigned int digits, struct weir_answer *answer)
{
	static const int placeholders[WEIR_RETRY_DIGITS] = { 1, 10, 100, 1000 };
	CLEANUP_FREE char *status = NULL;
	struct weir_answer made = { .digits = digits };
	int retry_after_s, length;

	if (kind >= WEIR_ANSWER_KINDS || digits < 1 || digits > WEIR_RETRY_DIGITS)
		return -EINVAL;
	retry_after_s = placeholders[digits - 1];
	status = status_text(retry_after_s);
	if (!status)
		return -ENOMEM;
	length = snprintf(made.text, sizeof(made.text),
			  "HTTP/1.1 429 Too Many Requests\r\n"
			  "Content-Type: application/json\r\n" RETRY_HEADER "%d\r\n"
			  "Content-Length: %zu\r\n"
			  "%s\r\n"
			  "%s\n",
			  retry_after_s, strlen(status) + strlen("\n"),
			  kind == WEIR_ANSWER_CLOSE ? "Connection: close\r\n" : "", status);
	if (length < 0 || length >= (int)sizeof(made.text))
		return -EMSGSIZE;
	made.length = length;
	made.head_length = offset_behind(made.text, "\r\n\r\n");
	made.header_at = offset_behind(made.text, RETRY_HEADER);
	made.body_at = offset_behind(made.text, RETRY_MEMBER);
	*answer = made;
	return 0;
}
