/* SPDX-License-Identifier: GPL-2.0 */
/*
 * `weir top` on a terminal: a table that is drawn anew, and keys. A handful of ECMA-48 sequences that every terminal knows
 * does it: one more library would be more than what it saves.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/top.h"

#define OPEN "\033[?1049h\033[?25l\033[?7l" /* another screen, without cursor and wrapping */
#define CLOSE "\033[?7h\033[?25h\033[?1049l"
#define HOME "\033[H"
#define END_LINE "\033[K\r\n"
#define END_SCREEN "\033[J"
#define REVERSE "\033[7m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"
#define LINES_AROUND 5 /* of the screen, that are no rows */
#define INTERVAL_LEAST_MS 100
#define INTERVAL_MOST_MS 60000

/* Keys beyond ASCII. */
enum {
	KEY_UP = 0x100,
	KEY_DOWN,
	KEY_NONE,
};

struct screen {
	struct top_look *look;
	struct top top;
	size_t selected;
	bool paused, typing, quits;
	char typed[64];
	const char *was_by; /* where one looked into something: where one comes back to */
	struct error problem;
};

static struct termios before;
static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static void nothing(int signal)
{
	(void)signal;
}

static int screen_open(struct error *err)
{
	const struct sigaction ends = { .sa_handler = end }, redraws = { .sa_handler = nothing };
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &before))
		return error_set(err, -errno, "the terminal: %s", strerror(errno));
	raw = before;
	raw.c_lflag &= ~(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	sigaction(SIGINT, &ends, NULL);
	sigaction(SIGTERM, &ends, NULL);
	sigaction(SIGHUP, &ends, NULL);
	sigaction(SIGWINCH, &redraws, NULL);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
	fputs(OPEN, stdout);
	return 0;
}

static void screen_close(void)
{
	fputs(CLOSE, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

/* --- drawing */

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

static void draw(struct screen *s)
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

/* --- keys */

static void look_by(struct screen *s, const char *by)
{
	if (strcmp(s->look->by, by) == 0)
		return;
	s->look->by = by;
	s->selected = 0;
	top_clear(&s->top);
}

static void filter_by(struct screen *s, const char *text)
{
	free(s->look->filter);
	s->look->filter = text && *text ? strdup(text) : NULL;
	s->selected = 0;
}

/* What the selected row is made of. */
static void look_into(struct screen *s)
{
	const struct top_subject *subject = top_shown(s->look, &s->top, s->selected);
	const struct top_kind *kind = top_kind_of(s->look->by);
	CLEANUP_FREE char *name = NULL;

	if (!subject)
		return;
	if (!kind->inside) {
		error_set(&s->problem, 0, "what a %s is made of is not counted: weir trace shows it", kind->name);
		return;
	}
	name = strdup(cli_text(subject->row, kind->members[0]));
	s->was_by = s->look->by;
	look_by(s, kind->inside);
	filter_by(s, name);
}

static void look_back(struct screen *s)
{
	filter_by(s, NULL);
	if (s->was_by)
		look_by(s, s->was_by);
	s->was_by = NULL;
}

static void type(struct screen *s, int key)
{
	size_t n = strlen(s->typed);

	if (key == '\n' || key == '\033') {
		s->typing = false;
		filter_by(s, key == '\n' ? s->typed : NULL);
	} else if ((key == 0x7f || key == '\b') && n) {
		s->typed[n - 1] = 0;
	} else if (key >= ' ' && key < 0x7f && n + 1 < sizeof(s->typed)) {
		s->typed[n] = key;
		s->typed[n + 1] = 0;
	}
}

static void change_interval(struct top_look *look, bool longer)
{
	__u64 ms = longer ? look->interval_ms * 2 : look->interval_ms / 2;

	if (ms >= INTERVAL_LEAST_MS && ms <= INTERVAL_MOST_MS)
		look->interval_ms = ms;
}

static void press_letter(struct screen *s, int key)
{
	for (const struct top_kind *kind = top_kinds; kind->name; kind++) {
		if (kind->key == key) {
			filter_by(s, NULL);
			look_by(s, kind->name);
			return;
		}
	}
}

static void press(struct screen *s, int key)
{
	s->problem.text[0] = 0;
	if (s->typing)
		return type(s, key);
	switch (key) {
	case 'q':
		s->quits = true;
		return;
	case 'p':
	case ' ':
		s->paused = !s->paused;
		return;
	case 'o':
		s->look->sort = (s->look->sort + 1) % TOP_NUMBERS;
		top_sort(&s->top, s->look->sort);
		return;
	case '/':
		s->typing = true;
		s->typed[0] = 0;
		return;
	case '+':
	case '-':
		return change_interval(s->look, key == '+');
	case '\n':
		return look_into(s);
	case '\033':
		return look_back(s);
	case KEY_UP:
		s->selected -= s->selected > 0;
		return;
	case KEY_DOWN:
		s->selected += top_shown(s->look, &s->top, s->selected + 1) && s->selected + 1 < s->look->rows;
		return;
	default:
		return press_letter(s, key);
	}
}

/* An arrow comes as three bytes at once, a lone escape as one. */
static int read_key(void)
{
	unsigned char bytes[8];
	ssize_t n = read(STDIN_FILENO, bytes, 1);

	if (n <= 0)
		return KEY_NONE;
	if (bytes[0] != '\033')
		return bytes[0] == '\r' ? '\n' : bytes[0];
	n = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (n <= 0)
		return '\033';
	if (n >= 2 && bytes[0] == '[' && (bytes[1] == 'A' || bytes[1] == 'B'))
		return bytes[1] == 'A' ? KEY_UP : KEY_DOWN;
	return KEY_NONE;
}

/* --- the whole */

/* False: the terminal is gone. */
static bool wait_for_keys(struct screen *s, __u64 until_ns)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	__u64 now_ns = clock_ns(CLOCK_MONOTONIC);
	int n = poll(&in, 1, until_ns > now_ns ? (until_ns - now_ns) / 1000000 + 1 : 0), key;

	if (n > 0 && (in.revents & (POLLHUP | POLLERR | POLLNVAL)))
		return false;
	while (n > 0 && (key = read_key()) != KEY_NONE)
		press(s, key);
	return true;
}

static int follow(struct screen *s, struct error *err)
{
	__u64 next_ns = 0;
	const char *by = s->look->by;

	while (!s->quits && !ended) {
		__u64 now_ns = clock_ns(CLOCK_MONOTONIC);

		if (s->look->by != by || (now_ns >= next_ns && !s->paused)) {
			int ret = top_ask(s->look, &s->top, err);

			if (ret)
				return ret;
			by = s->look->by;
		}
		if (now_ns >= next_ns)
			next_ns = now_ns + s->look->interval_ms * 1000000;
		draw(s);
		if (!wait_for_keys(s, next_ns))
			return 0;
	}
	return 0;
}

int top_screen(struct top_look *look, struct error *err)
{
	struct screen screen = { .look = look };
	int ret = screen_open(err);

	if (ret)
		return ret;
	ret = follow(&screen, err);
	screen_close();
	top_clear(&screen.top);
	return ret;
}
