/* SPDX-License-Identifier: GPL-2.0 */
/* The screen of `weir top`. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/top_screen.h"

#define HOME "\033[H"
#define END_LINE "\033[K\r\n"
#define END_SCREEN "\033[J"
#define REVERSE "\033[7m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"
#define LINES_AROUND 4 /* of the screen, that are neither rows nor keys */

static struct winsize size_now(void)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	return size;
}

/* As much of a line as fits; continuation bytes of UTF-8 take no column. */
static void draw_line(const char *line, size_t length, unsigned int columns, const char *style)
{
	size_t end = 0;

	for (unsigned int used = 0; end < length; end++) {
		used += ((unsigned char)line[end] & 0xc0) != 0x80;
		if (used > columns)
			break;
	}
	printf("%s%.*s%s" END_LINE, style, (int)end, line, PLAIN);
}

static void draw_text(unsigned int columns, const char *style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void draw_text(unsigned int columns, const char *style, const char *format, ...)
{
	CLEANUP_FREE char *visible = NULL;
	va_list args;

	va_start(args, format);
	visible = output_visible_format(format, args);
	va_end(args);
	if (visible)
		draw_line(visible, strlen(visible), columns, style);
}

#define LATE_S 2

/* ", 5 in flight"; nothing where it is not known of some server. Of a large table it is as of a while ago. */
static void in_flight_text(const struct top *top, char *text, size_t size)
{
	double ago_s = 0, seconds;
	long long n = 0;
	json_t *server, *in_flight;
	size_t i;

	*text = '\0';
	json_array_foreach (top->totals, i, server) {
		in_flight = json_object_get(server, "in_flight");
		if (!in_flight)
			return;
		n += json_integer_value(in_flight);
		seconds = json_number_value(json_object_get(server, "in_flight_seconds_ago"));
		ago_s = seconds > ago_s ? seconds : ago_s;
	}
	if (!json_array_size(top->totals))
		return;
	if (ago_s < LATE_S)
		snprintf(text, size, ", %lld in flight", n);
	else
		snprintf(text, size, ", %lld in flight %.0f s ago", n, ago_s);
}

static void draw_head(const struct screen *s, unsigned int columns)
{
	const struct top_look *look = s->look;
	const struct top_rates *all = &s->top.all;
	char in_flight[60];

	draw_text(columns, BOLD, "weir top: %s, by %s%s%s%s%s", look->server ?: "all servers", look->by->name,
		  look->filter ? ", with \"" : "", look->filter ?: "", look->filter ? "\"" : "",
		  s->paused ? ", paused" : "");
	in_flight_text(&s->top, in_flight, sizeof(in_flight));
	draw_text(columns, "",
		  "%.1f requests/s, %.1f refused/s, %.1f dry run/s, %.1f held/s%s; every %.1f s, sorted by %s",
		  all->of[TOP_REQUESTS], all->of[TOP_REFUSED], all->of[TOP_DRY_RUN], all->of[TOP_HELD], in_flight,
		  look->interval_ms / 1000.0, top_numbers[look->sort]);
	if (s->problem.text[0])
		draw_text(columns, REVERSE, "%s", s->problem.text);
	else
		draw_text(columns, "", "%s", top_why_empty(look, &s->top) ?: "");
}

/* Columns that a line takes: continuation bytes of UTF-8 take none. */
static unsigned int columns_of(const char *line, size_t length)
{
	unsigned int columns = 0;

	for (size_t i = 0; i < length; i++)
		columns += ((unsigned char)line[i] & 0xc0) != 0x80;
	return columns;
}

static unsigned int widest(const char *text)
{
	unsigned int columns = 0;

	while (text && *text) {
		size_t n = strcspn(text, "\n");
		unsigned int line = columns_of(text, n);

		columns = line > columns ? line : columns;
		text += n + (text[n] == '\n');
	}
	return columns;
}

/* The table as text. The caller frees it; NULL without memory. */
static char *table_text(const struct top_look *look, struct top *top)
{
	CLEANUP_TABLE struct table *table = top_table(look, top, false);
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	if (!top_table_fill(table, look, top, false))
		table_print(table, out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

/* With as many columns as there is room for. */
static char *fitting_text(const struct top_look *look, unsigned int columns, struct top *top)
{
	struct top_look narrow = *look;

	for (narrow.left_out = 0;; narrow.left_out++) {
		char *text = table_text(&narrow, top);

		if (!text || narrow.left_out == TOP_SPARE || widest(text) <= columns)
			return text;
		free(text);
	}
}

static void draw_rows(const struct screen *s, unsigned int columns, struct top *top)
{
	CLEANUP_FREE char *text = fitting_text(s->look, columns, top);
	const char *line = text;

	for (size_t row = 0; line && *line; row++) {
		size_t n = strcspn(line, "\n");

		draw_line(line, n, columns, row == 0 ? BOLD : row == s->selected + 1 ? REVERSE : "");
		line += n + (line[n] == '\n');
	}
}

/* --- keys */

static const char *const keys[] = { "u user",	 "n namespace",	 "v verb",	"r resource",
				    "s source",	 "c connection", "l limit",	"a request",
				    "x refusal", "o sort",	 "/ filter",	"enter look into",
				    "esc back",	 "p pause",	 "+- interval", "q quit" };
#define KEYS (sizeof(keys) / sizeof(*keys))
#define BETWEEN 2

/* The first key of the line after that which begins with this one. */
static size_t next_line(size_t key, unsigned int columns)
{
	size_t used = strlen(keys[key++]);

	while (key < KEYS && used + BETWEEN + strlen(keys[key]) <= columns)
		used += BETWEEN + strlen(keys[key++]);
	return key;
}

static unsigned int key_lines(unsigned int columns)
{
	unsigned int lines = 0;

	for (size_t key = 0; key < KEYS; key = next_line(key, columns))
		lines++;
	return lines;
}

static void draw_keys(const struct winsize *size, unsigned int lines)
{
	unsigned int row = size->ws_row > lines ? size->ws_row - lines + 1 : 1;

	for (size_t key = 0; key < KEYS; row++) {
		size_t next = next_line(key, size->ws_col);

		printf("\033[%u;1H", row);
		for (bool first = true; key < next; key++, first = false)
			printf("%*s%s", first ? 0 : BETWEEN, "", keys[key]);
		printf("\033[K");
	}
}

void top_draw(struct screen *s)
{
	struct winsize size = size_now();
	unsigned int lines = key_lines(size.ws_col), around = LINES_AROUND + lines;

	s->look->rows = size.ws_row > around ? size.ws_row - around : 1;
	fputs(HOME, stdout);
	draw_head(s, size.ws_col);
	draw_rows(s, size.ws_col, &s->top);
	fputs(END_SCREEN, stdout);
	if (s->typing)
		printf("\033[%u;1Honly with: %s_\033[K", size.ws_row, s->typed);
	else
		draw_keys(&size, lines);
	fflush(stdout);
}
