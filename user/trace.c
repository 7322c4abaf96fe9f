/* SPDX-License-Identifier: GPL-2.0 */
#include "trace.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "metrics.h"
#include "output.h"
#include "parse.h"

/* A stretch of the request line. */
struct span {
	const char *at;
	size_t length;
};

/* What is there up to a space, which is taken with it. */
static struct span take_word(struct span *line)
{
	const char *space = memchr(line->at, ' ', line->length);
	struct span word = { line->at, space ? (size_t)(space - line->at) : line->length };
	size_t taken = word.length + (space ? 1 : 0);

	line->at += taken;
	line->length -= taken;
	return word;
}

/* With `...` where it was cut; null where it is not known. */
static json_t *span_json(struct span span, bool cut)
{
	CLEANUP_FREE char *visible = NULL;
	CLEANUP_FREE char *text = NULL;

	if (!span.length)
		return json_null();
	if (asprintf(&text, "%.*s%s", (int)span.length, span.at, cut ? "..." : "") < 0) {
		text = NULL;
		return NULL;
	}
	visible = output_visible(text);
	return json_string(visible);
}

/* The request line without the empty lines before it. */
static struct span request_line(const struct weir_trace_record *record)
{
	struct span line = { record->line, record->trace.line_kept };

	while (line.length && (*line.at == '\r' || *line.at == '\n')) {
		line.at++;
		line.length--;
	}
	return line;
}

static const char *source_name(const struct weir_trace *trace)
{
	return trace->user_kind == WEIR_NAME_USER ? "request_header" : "address";
}

/* null: of unknown length, chunked */
static json_t *body_json(const struct weir_trace *trace)
{
	return trace->flags & WEIR_REQUEST_CHUNKED ? json_null() : json_integer(trace->content_length);
}

static json_t *limits_json(const struct weir_trace *trace)
{
	json_t *limits = json_array();

	for (unsigned int type = 0; type < WEIR_LIMIT_TYPES; type++) {
		if (trace->refused & (1U << type))
			json_array_append_new(limits, json_string(limit_type_name(type)));
	}
	return limits;
}

/* RFC 3339, in UTC */
static void format_time(const struct timespec *time, char text[static 40])
{
	struct tm parts;
	size_t n;

	gmtime_r(&time->tv_sec, &parts);
	n = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + n, 40 - n, ".%06ldZ", time->tv_nsec / 1000);
}

json_t *trace_json(const struct weir_trace_record *record, const struct trace_context *context)
{
	const struct weir_trace *trace = &record->trace;
	struct span line = request_line(record), method = take_word(&line), target = take_word(&line);
	bool cut = trace->line_kept < trace->line_length &&
		   target.at + target.length == record->line + trace->line_kept;
	char time[40], client[PARSE_ADDRESS_TEXT];
	json_t *object;

	format_time(&context->time, time);
	format_address(trace->client, client);
	object = json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:o?, s:o?, s:s?, s:s, s:i, s:o}", "time", time, "server",
			   context->server, "client", client, "port", ntohs(trace->client_port), "user", context->user,
			   "source", source_name(trace), "method", span_json(method, false), "target",
			   span_json(target, cut), "namespace", context->namespace, "decision",
			   metrics_reasons[trace->decision].label, "head", trace->head_length, "body",
			   body_json(trace));
	if (trace->refused) {
		json_object_set_new(object, "retry_after", json_integer(trace->retry_s));
		json_object_set_new(object, "limits", limits_json(trace));
	}
	return object;
}
