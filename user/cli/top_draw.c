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
#define LINES_AROUND 5 /* of the screen, that are no rows */

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
	CLEANUP_FREE char *text = NULL;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		text = NULL;
	else
		draw_line(text, length, columns, style);
}

static void draw_head(const struct screen *s, unsigned int columns)
{
	const struct top_look *look = s->look;
	const struct top_rates *all = &s->top.all;

	draw_text(columns, BOLD, "weir top: %s, by %s%s%s%s%s", look->server ?: "all servers", look->by,
		  look->filter ? ", with \"" : "", look->filter ?: "", look->filter ? "\"" : "",
		  s->paused ? ", paused" : "");
	draw_text(columns, "", "%.1f requests/s, %.1f refused/s, %.1f dry run/s, %.1f held/s; every %.1f s, by %s",
		  all->of[TOP_REQUESTS], all->of[TOP_REFUSED], all->of[TOP_DRY_RUN], all->of[TOP_HELD],
		  look->interval_ms / 1000.0, top_numbers[look->sort]);
	if (s->problem.text[0])
		draw_text(columns, REVERSE, "%s", s->problem.text);
	else
		draw_text(columns, "", "%s", "");
}

static void draw_rows(const struct screen *s, unsigned int columns, struct top *top)
{
	CLEANUP_TABLE struct table *table = top_table(s->look, false);
	CLEANUP_FREE char *text = NULL;
	size_t length, row = 0;
	FILE *out = open_memstream(&text, &length);
	const char *line;

	if (!out)
		return;
	if (!top_table_fill(table, s->look, top, false))
		table_print(table, out);
	if (fclose(out))
		return;
	for (line = text; line && *line; row++) {
		size_t n = strcspn(line, "\n");

		draw_line(line, n, columns, row == 0 ? BOLD : row == s->selected + 1 ? REVERSE : "");
		line += n + (line[n] == '\n');
	}
}

void top_draw(struct screen *s)
{
	struct winsize size = size_now();

	s->look->rows = size.ws_row > LINES_AROUND ? size.ws_row - LINES_AROUND : 1;
	fputs(HOME, stdout);
	draw_head(s, size.ws_col);
	draw_rows(s, size.ws_col, &s->top);
	fputs(END_SCREEN, stdout);
	printf("\033[%u;1H", size.ws_row);
	if (s->typing)
		printf("only with: %s_\033[K", s->typed);
	else
		printf("%.*s\033[K", size.ws_col,
		       "u user  n namespace  v verb  r resource  s source  c connection  l limit  a request  x refusal  "
		       "o sort  / filter  enter look into  p pause  +- interval  q quit");
	fflush(stdout);
}
