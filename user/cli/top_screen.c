/* SPDX-License-Identifier: GPL-2.0 */
/*
 * `weir top` on a terminal: a table that is drawn anew (top_draw.c), and keys. A handful of ECMA-48 sequences that every terminal
 * knows does it: one more library would be more than what it saves.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "weir/base/duration.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/top_screen.h"
#include "control/control.h"

#define OPEN "\033[?1049h\033[?25l\033[?7l" /* another screen, without cursor and wrapping */
#define CLOSE "\033[?7h\033[?25h\033[?1049l"
#define INTERVAL_LEAST_MS 100
#define INTERVAL_MOST_MS 60000

/* Keys beyond ASCII. */
enum {
	KEY_UP = 0x100,
	KEY_DOWN,
	KEY_NONE,
};

static struct termios before;
static volatile sig_atomic_t ended, asking;
static struct screen *shown;

/* An agent that hangs is waited for long: nobody has to sit that out. */
static void end(int signal)
{
	(void)signal;
	ended = 1;
	if (!asking)
		return;
	if (write(STDOUT_FILENO, CLOSE, sizeof(CLOSE) - 1) > 0)
		tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	_exit(0);
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

/* --- keys */

static void look_by(struct screen *s, const struct top_kind *by)
{
	if (s->look->by == by)
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
	const struct top_kind *kind = s->look->by;
	CLEANUP_FREE char *name = NULL;

	if (!subject)
		return;
	if (!kind->inside) {
		error_set(&s->problem, 0, "what a %s is made of is not counted: weir trace shows it", kind->name);
		return;
	}
	name = strdup(cli_text(subject->row, kind->members[0]));
	s->was_by = s->look->by;
	look_by(s, top_kind_of(kind->inside));
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
			look_by(s, kind);
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
	int n = poll(&in, 1, until_ns > now_ns ? (until_ns - now_ns) / WEIR_NS_PER_MS + 1 : 0), key;

	if (n > 0 && (in.revents & (POLLHUP | POLLERR | POLLNVAL)))
		return false;
	while (n > 0 && (key = read_key()) != KEY_NONE)
		press(s, key);
	return true;
}

static void say_waiting(void)
{
	error_set(&shown->problem, 0, "waiting for the agent. ^C ends");
	shown->away = true;
	top_draw(shown);
}

/* Rows that were there before count on: they begin anew. */
static void note_away(struct screen *s, const struct error *why)
{
	s->problem = *why;
	s->away = true;
	top_clear(&s->top);
}

static void note_back(struct screen *s)
{
	if (s->away)
		s->problem.text[0] = 0;
	s->away = false;
}

/* An agent that is away may come back. If it is not there at first, something else is wrong. */
static int ask(struct screen *s, bool first, struct error *err)
{
	int ret;

	asking = 1;
	ret = ended ? 0 : top_ask(s->look, &s->top, say_waiting, err);
	asking = 0;
	if (ret && (first || !control_is_away(ret)))
		return ret;
	if (ret)
		note_away(s, err);
	else
		note_back(s);
	return 0;
}

static int follow(struct screen *s, struct error *err)
{
	bool first = true;
	__u64 next_ns = 0;
	const struct top_kind *by = s->look->by;

	while (!s->quits && !ended) {
		__u64 now_ns = clock_ns(CLOCK_MONOTONIC);

		if (s->look->by != by || (now_ns >= next_ns && !s->paused)) {
			int ret = ask(s, first, err);

			if (ret)
				return ret;
			first = false;
			by = s->look->by;
		}
		if (now_ns >= next_ns)
			next_ns = now_ns + s->look->interval_ms * WEIR_NS_PER_MS;
		top_draw(s);
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
	shown = &screen;
	ret = follow(&screen, err);
	screen_close();
	top_clear(&screen.top);
	return ret;
}
