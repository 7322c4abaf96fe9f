/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "weir/http/ambiguity.h"

#include "base/cleanup.h"
#include "datapath/answer_text.h"

#define RETRY_HEADER "Retry-After: "
#define RETRY_MEMBER "\"retryAfterSeconds\":"
#define CLOSE_HEADER "Connection: close\r\n"

/* A Kubernetes Status on one line; NULL without memory. details: NULL, or a reference that is taken. */
static char *status_text(const char *message, const char *reason, json_t *details, int code)
{
	CLEANUP_JSON json_t *status = NULL;

	status = json_pack("{s:s, s:s, s:{}, s:s, s:s, s:s, s:o*, s:i}", "kind", "Status", "apiVersion", "v1",
			   "metadata", "status", "Failure", "message", message, "reason", reason, "details", details,
			   "code", code);
	return status ? json_dumps(status, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
}

/* The offset behind `mark`, which is in `text`. */
static __u16 offset_behind(const char *text, const char *mark)
{
	return strstr(text, mark) + strlen(mark) - text;
}

/* Writes an answer of a head's first line, its fields that depend on the answer, and the body. */
static int answer_write(struct weir_answer *answer, const char *line, const char *fields, const char *close,
			const char *status)
{
	int length = snprintf(answer->text, sizeof(answer->text),
			      "HTTP/1.1 %s\r\n"
			      "Content-Type: application/json\r\n"
			      "%s"
			      "Content-Length: %zu\r\n"
			      "%s\r\n"
			      "%s\n",
			      line, fields, strlen(status) + strlen("\n"), close, status);

	if (length < 0 || length >= (int)sizeof(answer->text))
		return -EMSGSIZE;
	answer->length = length;
	answer->head_length = offset_behind(answer->text, "\r\n\r\n");
	return 0;
}

int weir_answer_make(enum weir_answer_kind kind, unsigned int digits, struct weir_answer *answer)
{
	static const int placeholders[WEIR_RETRY_DIGITS] = { 1, 10, 100, 1000 };
	CLEANUP_FREE char *status = NULL;
	struct weir_answer made = { .digits = digits };
	int retry_after_s, ret;
	char retry[32];

	if (kind >= WEIR_ANSWER_KINDS || digits < 1 || digits > WEIR_RETRY_DIGITS)
		return -EINVAL;
	retry_after_s = placeholders[digits - 1];
	snprintf(retry, sizeof(retry), RETRY_HEADER "%d\r\n", retry_after_s);
	status = status_text("Too many requests, please try again later.", "TooManyRequests",
			     json_pack("{s:i}", "retryAfterSeconds", retry_after_s), 429);
	if (!status)
		return -ENOMEM;
	ret = answer_write(&made, "429 Too Many Requests", retry, kind == WEIR_ANSWER_CLOSE ? CLOSE_HEADER : "",
			   status);
	if (ret)
		return ret;
	made.header_at = offset_behind(made.text, RETRY_HEADER);
	made.body_at = offset_behind(made.text, RETRY_MEMBER);
	*answer = made;
	return 0;
}

/* NULL: `why` is no ambiguity. */
static const char *ambiguity_message(enum weir_reason why)
{
	switch (why) {
#define X(name, words)    \
	case WEIR_##name: \
		return "The request is ambiguous: " words ".";
		WEIR_AMBIGUITIES(X)
#undef X
	default:
		return NULL;
	}
}

int weir_rejection_make(enum weir_reason why, struct weir_answer *answer)
{
	const char *message = ambiguity_message(why);
	CLEANUP_FREE char *status = NULL;
	struct weir_answer made = { 0 };
	int ret;

	if (!message)
		return -EINVAL;
	status = status_text(message, "BadRequest", NULL, 400);
	if (!status)
		return -ENOMEM;
	ret = answer_write(&made, "400 Bad Request", "", CLOSE_HEADER, status);
	if (ret)
		return ret;
	*answer = made;
	return 0;
}
