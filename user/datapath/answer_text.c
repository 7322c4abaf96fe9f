/* SPDX-License-Identifier: GPL-2.0 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "weir/http/ambiguity.h"

#include "base/cleanup.h"
#include "datapath/answer_text.h"

#define RETRY_HEADER "Retry-After: "
#define RETRY_MEMBER "\"retryAfterSeconds\":"
#define RETRY_WORDS "try again in "
#define LIMIT_HEADER "Weir-Limit: "
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

/* The offset behind `mark`; 0: it is not in `text`. */
static __u16 offset_behind(const char *text, const char *mark)
{
	const char *found = strstr(text, mark);

	return found ? found + strlen(mark) - text : 0;
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

/* What an answer to a refused request says, and what of it is a name or a number. */
struct refusal_words {
	char limit[WEIR_ANSWER_NAME]; /* "": it is not named */
	bool denied;
	int retry_after_s;
};

static void name_copy(const char *name, char to[static WEIR_ANSWER_NAME])
{
	size_t n = strnlen(name, WEIR_ANSWER_NAME - 1);

	for (size_t i = 0; i < n; i++)
		to[i] = isalnum((unsigned char)name[i]) || strchr("-._/:", name[i]) ? name[i] : '_';
	to[n] = 0;
}

/* Why, as StatusDetails has it; NULL where no limit is named. */
static json_t *causes_json(const struct refusal_words *words)
{
	if (!*words->limit)
		return NULL;
	if (words->denied)
		return json_pack("[{s:s, s:o}]", "reason", "LimitDenies", "message",
				 json_sprintf("limit %s denies this request", words->limit));
	return json_pack("[{s:s, s:o}]", "reason", "LimitExceeded", "message",
			 json_sprintf("limit %s: " RETRY_WORDS "%d s", words->limit, words->retry_after_s));
}

static json_t *details_json(const struct refusal_words *words)
{
	json_t *details = json_pack("{s:o*}", "causes", causes_json(words));

	if (!words->denied)
		json_object_set_new(details, "retryAfterSeconds", json_integer(words->retry_after_s));
	return details;
}

static char *refusal_status(const struct refusal_words *words)
{
	const char *what = words->denied ? "this request is denied" : "too many requests, please try again later";
	char message[WEIR_ANSWER_NAME + 64];

	if (*words->limit)
		snprintf(message, sizeof(message), "weir: limit %s: %s", words->limit, what);
	else
		snprintf(message, sizeof(message), "%c%s.", toupper((unsigned char)*what), what + 1);
	return status_text(message, words->denied ? "Forbidden" : "TooManyRequests", details_json(words),
			   words->denied ? 403 : 429);
}

static void refusal_fields(const struct refusal_words *words, char *fields, size_t size)
{
	char retry[32] = "";

	if (!words->denied)
		snprintf(retry, sizeof(retry), RETRY_HEADER "%d\r\n", words->retry_after_s);
	snprintf(fields, size, "%s%s%s%s", retry, *words->limit ? LIMIT_HEADER : "", words->limit,
		 *words->limit ? "\r\n" : "");
}

int weir_answer_make(const char *limit, enum weir_answer_kind kind, unsigned int digits, struct weir_answer *answer)
{
	static const int placeholders[WEIR_RETRY_DIGITS + 1] = { 0, 1, 10, 100, 1000 };
	struct refusal_words words = { .denied = !digits };
	CLEANUP_FREE char *status = NULL;
	struct weir_answer made = { .digits = digits };
	char fields[WEIR_ANSWER_NAME + 64];
	int ret;

	if (kind >= WEIR_ANSWER_KINDS || digits > WEIR_RETRY_DIGITS)
		return -EINVAL;
	words.retry_after_s = placeholders[digits];
	if (limit)
		name_copy(limit, words.limit);
	refusal_fields(&words, fields, sizeof(fields));
	status = refusal_status(&words);
	if (!status)
		return -ENOMEM;
	ret = answer_write(&made, digits ? "429 Too Many Requests" : "403 Forbidden", fields,
			   kind == WEIR_ANSWER_CLOSE ? CLOSE_HEADER : "", status);
	if (ret)
		return ret;
	made.at[0] = offset_behind(made.text, RETRY_HEADER);
	made.at[1] = offset_behind(made.text, RETRY_MEMBER);
	made.at[2] = offset_behind(made.text, RETRY_WORDS);
	*answer = made;
	return 0;
}

int weir_refusal_make(const char *limit, struct weir_refusal *refusal)
{
	struct weir_refusal made = { 0 };
	int ret = 0;

	for (enum weir_answer_kind kind = 0; kind < WEIR_ANSWER_KINDS; kind++)
		for (unsigned int digits = 0; digits <= WEIR_RETRY_DIGITS && !ret; digits++)
			ret = weir_answer_make(limit, kind, digits, &made.answers[weir_answer_index(kind, digits)]);
	if (!ret)
		*refusal = made;
	return ret;
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
