/* SPDX-License-Identifier: GPL-2.0 */
#include <jansson.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/output.h"

#define PATIENCE_MS 500

static bool as_json;

void log_json(bool wanted)
{
	as_json = wanted;
}

/* Is stderr the journal's? Then JOURNAL_STREAM says which file it is (systemd.exec(5)). */
static bool to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat self;

	if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2 || fstat(STDERR_FILENO, &self))
		return false;
	return self.st_dev == device && self.st_ino == inode;
}

/* What journald takes for the priority of the line, and takes off (sd-daemon(3)). */
static const char *priority(const char *level)
{
	if (!to_journal())
		return "";
	if (strcmp(level, "error") == 0)
		return "<3>";
	return strcmp(level, "warning") == 0 ? "<4>" : "<6>";
}

static void write_json(const char *level, const char *text)
{
	CLEANUP_JSON json_t *line = NULL;
	CLEANUP_FREE char *dumped = NULL;
	time_t now = time(NULL);
	char when[32];
	struct tm utc;

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	line = json_pack("{s:s, s:s, s:s}", "time", when, "level", level, "message", text);
	dumped = line ? json_dumps(line, JSON_COMPACT) : NULL;
	fprintf(stderr, "%s%s\n", priority(level), dumped ?: "{}");
}

static void write_line(const char *level, const char *text)
{
	if (as_json)
		write_json(level, text);
	else
		fprintf(stderr, "%sweir: %s: %s\n", priority(level), level, text);
}

/* Nobody may read what is written to a pipe, a socket or a terminal. It is waited for once, and not again while it is stuck. */
static bool is_taken(unsigned long lost)
{
	struct pollfd pollfd = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&pollfd, 1, lost ? 0 : PATIENCE_MS) != 0;
}

static void tell_lost(unsigned long lost)
{
	char text[96];

	snprintf(text, sizeof(text), "%lu line%s of the log %s lost: nobody read %s", lost, lost == 1 ? "" : "s",
		 lost == 1 ? "is" : "are", lost == 1 ? "it" : "them");
	write_line("warning", text);
}

static void write_if_taken(const char *level, const char *text)
{
	static unsigned long lost;

	flockfile(stderr); /* no other thread takes the room that there is */
	if (!is_taken(lost)) {
		lost++;
	} else {
		if (lost)
			tell_lost(lost);
		lost = 0;
		write_line(level, text);
	}
	funlockfile(stderr);
}

void log_event(const char *level, const char *format, ...)
{
	CLEANUP_FREE char *visible = NULL;
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	visible = output_visible(text);
	write_if_taken(level, visible ?: "out of memory");
}
