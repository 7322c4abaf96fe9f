/* SPDX-License-Identifier: GPL-2.0 */
#include "reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_MIN 40 /* that many equal bytes are written as a repetition */

static const char *const labels[] = {
#define X(name, label, group) label,
	WEIR_REASONS(X)
#undef X
};

static void say_byte(FILE *out, uint8_t c)
{
	if (c == '\\')
		fputs("\\\\", out);
	else if (c > ' ' && c < 0x7f)
		fputc(c, out);
	else
		fprintf(out, "\\x%02x", c);
}

static size_t say_run(FILE *out, const uint8_t *bytes, size_t length)
{
	size_t n = 1;

	while (n < length && bytes[n] == *bytes)
		n++;
	if (n < RUN_MIN) {
		say_byte(out, *bytes);
		return 1;
	}
	fprintf(out, "\\*%zu{", n);
	say_byte(out, *bytes);
	fputc('}', out);
	return n;
}

/* Method and target: the first line of a head that was read has two spaces. */
static void say_line(FILE *out, const uint8_t *head)
{
	const char *method = (const char *)head + strspn((const char *)head, "\r\n");
	const char *end = strchr(strchr(method, ' ') + 1, ' ');
	const uint8_t *at = (const uint8_t *)method;
	size_t left = end - method;

	while (left) {
		size_t n = *at == ' ' ? fputc(' ', out) == ' ' : say_run(out, at, left);

		at += n;
		left -= n;
	}
}

struct feeding {
	struct reading *reading;
	const struct stream *stream;
	const struct weir_reading *how;
	struct weir_request request;
	size_t at, start;
	uint64_t body;
	FILE *out;
};

static void note_head(struct feeding *f)
{
	struct reading *r = f->reading;
	struct message *m = &r->message[r->messages++];

	if (r->messages > MESSAGES_MAX)
		abort();
	*m = (struct message){ .start = f->start, .head_end = f->at, .head = f->request };
	say_line(f->out, f->stream->bytes + f->start);
	f->body = 0;
}

static void note_end(struct feeding *f)
{
	struct reading *r = f->reading;

	r->message[r->messages - 1].end = r->rest = f->start = f->at;
	if (f->body)
		fprintf(f->out, " %llu", (unsigned long long)f->body);
	fputc('\n', f->out);
	weir_request_start(&f->request);
}

static void note_lost(struct feeding *f, __u16 reason)
{
	if (f->request.head_length)
		fputc('\n', f->out);
	f->reading->lost = reason;
	fprintf(f->out, "lost %s\n", labels[reason]);
}

static void feed_byte(struct feeding *f)
{
	struct weir_request *r = &f->request;
	enum weir_frame_event event;

	f->body += weir_request_skippable(r) > 0;
	event = weir_request_byte(r, f->how, f->stream->bytes[f->at++]);
	if (event == WEIR_FRAME_LOST) {
		note_lost(f, r->lost);
		return;
	}
	if (event == WEIR_FRAME_HEAD)
		note_head(f);
	if (event == WEIR_FRAME_HEAD && r->method == WEIR_METHOD_CONNECT) {
		note_lost(f, WEIR_CONNECT);
		return;
	}
	if (weir_request_ended(r))
		note_end(f);
}

void reading_make(struct reading *r, const struct stream *s, const struct weir_reading *how)
{
	struct feeding f = { .reading = r, .stream = s, .how = how };
	size_t size;

	*r = (struct reading){ .lost = WEIR_REASON_NONE };
	f.out = open_memstream(&r->text, &size);
	weir_request_start(&f.request);
	while (f.at < s->length && r->lost == WEIR_REASON_NONE)
		feed_byte(&f);
	if (r->lost == WEIR_REASON_NONE && f.start < s->length)
		fprintf(f.out, "%smore\n", f.request.head_length ? "\n" : "");
	fclose(f.out);
}

void reading_free(struct reading *r)
{
	free(r->text);
}
