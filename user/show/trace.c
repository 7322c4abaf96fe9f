/* SPDX-License-Identifier: GPL-2.0 */
#include "show/trace.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "metrics/metrics.h"
#include "model/parse.h"
#include "show/verbs.h"
#include "weir/http/identity.h"

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

/* null: of unknown length, chunked */
static json_t *body_json(const struct weir_trace *trace)
{
	return trace->flags & WEIR_REQUEST_CHUNKED ? json_null() : json_integer(trace->content_length);
}

static json_t *limits_json(const struct trace_context *context)
{
	json_t *limits = json_array();

	for (size_t i = 0; i < context->n_limits; i++)
		json_array_append_new(limits, json_string(context->limits[i]));
	return limits;
}

/* --- attributes */

/* Decodes in place; returns how many bytes it comes to. */
static size_t percent_decode(char *bytes, size_t length, bool plus)
{
	size_t n = 0;

	for (size_t i = 0; i < length; i++, n++) {
		int high = i + 2 < length ? weir_hex_digit(bytes[i + 1]) : -1;
		int low = i + 2 < length ? weir_hex_digit(bytes[i + 2]) : -1;

		bytes[n] = plus && bytes[i] == '+' ? ' ' : bytes[i];
		if (bytes[i] != '%' || high < 0 || low < 0)
			continue;
		bytes[n] = high << 4 | low;
		i += 2;
	}
	return n;
}

enum spelling {
	SPELT_PLAINLY,
	SPELT_IN_A_PATH,
	SPELT_IN_A_QUERY,
	SPELLINGS,
};

/* The name as the kernel has read it: the one of its spellings that has its subject. NULL: it is not in the line. */
static char *name_in_line(const struct weir_trace_record *record, struct weir_trace_span at, __u64 subject,
			  const struct trace_context *context)
{
	if (at.offset + at.length > record->trace.line_kept || !at.length)
		return NULL;
	for (enum spelling spelling = SPELT_PLAINLY; spelling < SPELLINGS; spelling++) {
		CLEANUP_FREE char *name = strndup(record->line + at.offset, at.length);
		size_t length = at.length;

		if (name && spelling != SPELT_PLAINLY)
			length = percent_decode(name, length, spelling == SPELT_IN_A_QUERY);
		if (!name || context->subject(context->arg, name, length) != subject)
			continue;
		name[length] = 0;
		return output_visible(name);
	}
	return NULL;
}

/* The same where the kernel does not say which part of the target it is: what was read in the server has no places. */
static char *name_in_target(const struct weir_trace_record *record, __u64 subject, const struct trace_context *context)
{
	const char *end = record->line + record->trace.line_kept, *part = record->line;
	char *name = NULL;

	while (part < end && !name) {
		size_t length = 0;

		while (part + length < end && !strchr(" /?&=", part[length]))
			length++;
		if (length)
			name = name_in_line(record, (struct weir_trace_span){ part - record->line, length }, subject,
					    context);
		part += length + 1;
	}
	return name;
}

/* null where there is none; `otherwise`, or # and its subject, where it is not known. */
static json_t *name_json(const struct weir_trace_record *record, enum weir_trace_name which, __u64 subject,
			 const char *otherwise, const struct trace_context *context)
{
	CLEANUP_FREE char *name = NULL;

	if (!subject)
		return json_null();
	name = record->trace.names[which].length ? name_in_line(record, record->trace.names[which], subject, context) :
						   name_in_target(record, subject, context);
	if (name || otherwise)
		return json_string(name ?: otherwise);
	return json_sprintf("#%016llx", subject);
}

static void add_names(json_t *object, const struct weir_trace_record *record, const struct trace_context *context)
{
	const struct weir_attributes *a = &record->trace.attributes;
	const struct {
		const char *key;
		enum weir_trace_name which;
		__u64 subject;
		const char *otherwise;
	} names[] = {
		{ "namespace", WEIR_TRACE_NAMESPACE, a->namespace, context->namespace },
		{ "group", WEIR_TRACE_GROUP, a->group, NULL },
		{ "resource", WEIR_TRACE_RESOURCE, a->resource, NULL },
		{ "subresource", WEIR_TRACE_SUBRESOURCE, a->subresource, NULL },
		{ "name", WEIR_TRACE_OBJECT, a->name, NULL },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		json_object_set_new(object, names[i].key,
				    name_json(record, names[i].which, names[i].subject, names[i].otherwise, context));
}

/* Where there is no name for it, the verb is the method in lower case. */
static json_t *verb_json(const struct weir_trace *trace, struct span method)
{
	char lower[64];
	size_t n = method.length < sizeof(lower) ? method.length : sizeof(lower);

	if (trace->attributes.verb >= WEIR_VERB_COUNT)
		return json_null();
	if (trace->attributes.verb != WEIR_VERB_OTHER || !n)
		return json_string(verb_name(trace->attributes.verb));
	for (size_t i = 0; i < n; i++)
		lower[i] = weir_lower(method.at[i]);
	return json_stringn(lower, n); /* a method is a token: ASCII */
}

/* --- the whole */

/* RFC 3339, in UTC */
static void format_time(const struct timespec *time, char text[static 40])
{
	struct tm parts;
	size_t n;

	gmtime_r(&time->tv_sec, &parts);
	n = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + n, 40 - n, ".%06ldZ", time->tv_nsec / 1000);
}

int trace_status(const struct weir_trace *trace)
{
	if (trace->decision == WEIR_REJECTED)
		return 400;
	if (trace->decision != WEIR_SHED)
		return 0;
	return weir_trace_forbids(trace) ? 403 : 429;
}

/* The limit that the answer names: of several that refused, the one with the longest wait. */
static const char *named_limit(const struct weir_trace *trace, const struct trace_context *context)
{
	for (size_t i = 0; i < context->n_limits; i++)
		if (trace->refused[i] == trace->named)
			return context->limits[i];
	return context->n_limits ? context->limits[0] : "";
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
	object = json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:o?, s:o?, s:o?, s:s, s:i, s:o}", "time", time, "server",
			   context->server, "client", client, "port", ntohs(trace->client_port), "user", context->user,
			   "identified_by", metrics_reasons[weir_identified_reason(trace->by)].label, "method",
			   span_json(method, false), "target", span_json(target, cut), "verb", verb_json(trace, method),
			   "decision", metrics_reasons[trace->decision].label, "head", trace->head_length, "body",
			   body_json(trace));
	add_names(object, record, context);
	json_object_set(object, "groups", context->groups);
	json_object_set_new(object, "monotonic_ns", json_integer(trace->time_ns));
	if (trace->attributes.flags & WEIR_ATTRIBUTE_LONG_RUNNING)
		json_object_set_new(object, "long_running", json_true());
	if (trace->attributes.flags & WEIR_ATTRIBUTE_DRY_RUN)
		json_object_set_new(object, "dry_run", json_true());
	if (trace->n_refused) {
		if (trace->retry_s)
			json_object_set_new(object, "retry_after", json_integer(trace->retry_s));
		json_object_set_new(object, "limits", limits_json(context));
		json_object_set_new(object, "limit", json_string(named_limit(trace, context)));
	}
	if (trace_status(trace))
		json_object_set_new(object, "status", json_integer(trace_status(trace)));
	return object;
}
