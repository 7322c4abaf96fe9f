/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/libbpf_log.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define LINE_MAX_BYTES 256

/* Several threads may load programs. */
static _Thread_local char failure[LINE_MAX_BYTES], refused[LINE_MAX_BYTES], verifier[LINE_MAX_BYTES];

/* At most one line of text. */
static void keep_line(char line[LINE_MAX_BYTES], const char *text)
{
	snprintf(line, LINE_MAX_BYTES, "%.*s", (int)strcspn(text, "\n"), text);
}

/* libbpf's "prog 'NAME': BPF program load failed: ..." */
static void keep_refused(const char *text)
{
	char name[LINE_MAX_BYTES];

	if (!refused[0] && strstr(text, "load failed") && sscanf(text, "libbpf: prog '%255[^']'", name) == 1)
		keep_line(refused, name);
}

/* The verifier's reason is the last line of its log but for the count of what it went through. */
static void keep_verifier(const char *text)
{
	const char *log = strstr(text, "BEGIN PROG LOAD LOG"), *line;

	if (!log || verifier[0])
		return;
	for (line = strchr(log, '\n'); line; line = strchr(line, '\n')) {
		line++;
		if (!*line || !strncmp(line, "processed ", 10) || !strncmp(line, "-- END", 6))
			break;
		if (*line != '\n')
			keep_line(verifier, line);
	}
}

static int listen_to_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	CLEANUP_FREE char *text = NULL;

	if (vasprintf(&text, format, args) < 0) {
		text = NULL;
		return 0;
	}
	if (getenv("WEIR_DEBUG"))
		fputs(text, stderr);
	if (level != LIBBPF_WARN)
		return 0;
	keep_refused(text);
	keep_verifier(text);
	if (!failure[0] && !strstr(text, "Retrying"))
		keep_line(failure, text);
	return 0;
}

void libbpf_log_begin(void)
{
	failure[0] = 0;
	refused[0] = 0;
	verifier[0] = 0;
	libbpf_set_print(listen_to_libbpf);
}

const char *libbpf_log_failure(void)
{
	return failure[0] ? failure : "libbpf did not say why";
}

const char *libbpf_log_refused(void)
{
	return refused[0] ? refused : NULL;
}

const char *libbpf_log_verifier(void)
{
	return verifier;
}
