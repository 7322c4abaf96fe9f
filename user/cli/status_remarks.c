/* SPDX-License-Identifier: GPL-2.0 */
/* The remarks below the table of `weir status`. A remark that is the same for several servers is printed once. */
#include "cli/status.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static json_t *find(json_t *remarks, const char *text)
{
	json_t *remark;
	size_t i;

	json_array_foreach (remarks, i, remark)
		if (!strcmp(cli_text(remark, "text"), text))
			return remark;
	return NULL;
}

/* Takes over the text. */
static void remark(json_t *remarks, const char *who, bool bad, char *text)
{
	json_t *there = text ? find(remarks, text) : NULL;

	if (there)
		json_array_append_new(json_object_get(there, "who"), json_string(who));
	else if (text)
		json_array_append_new(remarks, json_pack("{s:[s], s:s, s:b}", "who", who, "text", text, "bad", bad));
	free(text);
}

/* NULL: nothing is said. */
static const char *said(json_t *object, const char *key)
{
	const char *text = cli_text(object, key);

	return *text ? text : NULL;
}

__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...)
{
	char *text;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	return length < 0 ? NULL : text;
}

/* Nothing for what is as it should be: what cannot be read waits, or is dropped because that was asked for. */
static void add_hold(json_t *remarks, const char *server, json_t *hold)
{
	const char *not_held = said(hold, "why"), *no_pace = said(hold, "no_pace");
	const char *elsewhere = said(hold, "elsewhere");
	const char *what = json_is_false(json_object_get(hold, "tls")) ? "HTTP/1 without TLS that cannot be read" :
									 "TLS and other unreadable traffic";

	if (elsewhere)
		remark(remarks, server, false, text_of("warning: %s", elsewhere));
	if (not_held)
		remark(remarks, server, true,
		       text_of("%s is %s: %s",
			       strcmp(cli_text(hold, "mode"), "pace") ?
				       what :
				       "TLS on connections that were open before attach",
			       json_is_true(json_object_get(hold, "on")) ? "limited as before" : "not limited",
			       not_held));
	else if (no_pace && strcmp(cli_text(hold, "asked"), "drop"))
		remark(remarks, server, false, text_of("%s is held by dropping: %s", what, no_pace));
}

/* What such a process is asked for, nobody sees: TLS is held as without --inside. */
static void add_unseen(json_t *remarks, const char *server, json_t *inside)
{
	json_t *process;
	size_t i;

	json_array_foreach (json_object_get(inside, "processes"), i, process) {
		const char *why = said(process, "why"), *command = said(process, "command");

		if (why)
			remark(remarks, server, true,
			       text_of("process %lld (%s) is not looked into, and TLS is held: %s",
				       cli_number(process, "pid"), command ?: "", why));
	}
}

/* Go servers that cannot be looked into, and of whose requests something cannot be read: what could be done, only they ask. */
static bool hides(json_t *server)
{
	json_t *unread = json_object_get(server, "unread"), *process;
	bool go = false;
	size_t i;

	json_array_foreach (json_object_get(json_object_get(server, "inside"), "processes"), i, process)
		go |= !json_is_true(json_object_get(process, "foreign"));
	return go && cli_number(unread, "tls") + cli_number(unread, "http2");
}

/* What becomes of what is over a limit: limits may be enforced, and nothing else says that nobody is refused. */
static const char *what_passes(const char *lane, bool chosen)
{
	if (!strcmp(lane, "hold"))
		return ": over a limit requests pass, and their connections wait";
	if (strcmp(lane, "see") != 0)
		return "";
	return chosen ? ", until a limit is enforced: then TLS is held by the client's address" :
			": requests over their limits pass";
}

/* matters: what was not chosen, too. */
static void add_inside(json_t *remarks, const char *server, json_t *inside, bool matters)
{
	const char *why = said(inside, "why"), *text = said(inside, "text"), *slow = said(inside, "why_slow");
	bool chosen = !strcmp(cli_text(inside, "asked"), "auto");
	const char *over = what_passes(cli_text(inside, "lane"), chosen);

	if (text)
		remark(remarks, server, false, text_of("inside: %s%s%s%s", text, over, why ? ": " : "", why ?: ""));
	else if (why && (!chosen || matters))
		remark(remarks, server, !chosen, text_of("inside: off: %s", why));
	if (slow)
		remark(remarks, server, false,
		       text_of("inside: each request is seen at several instructions, which costs it more: %s", slow));
	if (text)
		add_unseen(remarks, server, inside);
}

/*
 * If SYN cookies from XDP were asked for, a remark says on which interfaces the kernel still sends them. Loopback has no XDP,
 * and no floods.
 */
static void add_syn_cookies(json_t *remarks, json_t *server)
{
	json_t *link;
	size_t i;

	if (strcmp(cli_text(server, "syn_cookies"), "xdp") != 0)
		return;
	json_array_foreach (json_object_get(server, "links"), i, link) {
		const char *why = said(link, "no_syn_cookies");

		if (why && json_is_true(json_object_get(link, "attached")) && strcmp(cli_text(link, "name"), "lo") != 0)
			remark(remarks, cli_text(server, "name"), false,
			       text_of("SYN cookies on %s are sent by the kernel: %s", cli_text(link, "name"), why));
	}
}

/* "limit user would have refused 7, limit total 0": of those that are in a dry run of their own. NULL: none. */
static char *dry_run_limits(json_t *limits)
{
	char *all = NULL;
	json_t *limit;
	size_t i;

	json_array_foreach (limits, i, limit) {
		CLEANUP_FREE char *before = NULL;

		if (!json_is_true(json_object_get(limit, "dry_run")))
			continue;
		before = all;
		all = text_of("%s%slimit %s%s %lld", before ?: "", before ? ", " : "", cli_text(limit, "limit"),
			      before ? "" : " would have refused", cli_number(limit, "dry_run_refused"));
	}
	return all;
}

/* Which dry run there is now, and what has passed because of it. */
static void add_dry_run(json_t *remarks, json_t *server)
{
	json_int_t shed = cli_number(server, "dry_run_shed"), rejected = cli_number(server, "dry_run_rejected");
	json_int_t held = cli_number(server, "records_dry_run_held");
	bool whole = json_is_true(json_object_get(server, "dry_run"));
	CLEANUP_FREE char *limits = whole ? NULL : dry_run_limits(json_object_get(server, "limits"));
	const char *name = cli_text(server, "name");

	if (whole) {
		CLEANUP_FREE char *more = rejected ? text_of(", %lld rejected", rejected) : NULL;
		CLEANUP_FREE char *waits = held ? text_of(", %lld held (TLS and other unreadable traffic)", held) :
						  NULL;

		remark(remarks, name, false,
		       text_of("dry run: nothing is refused; %lld request%s would have been%s%s", shed,
			       shed == 1 ? "" : "s", more ?: "", waits ?: ""));
	} else if (limits)
		remark(remarks, name, false, text_of("dry run: %s", limits));
}

#define BODIES_FOUND "warning: it may read bodies as requests, for it has answered what nobody asked: "
#define BODIES_HELD "connections are held from the first body on, and get no 429s"

/* Whether requests' bodies are believed to be bodies. */
static void add_bodies(json_t *remarks, json_t *server)
{
	const char *bodies = cli_text(server, "bodies"), *name = cli_text(server, "name");
	bool found = json_is_true(json_object_get(server, "serves_bodies"));

	if (!strcmp(bodies, "unread"))
		remark(remarks, name, false, text_of("bodies: unread: " BODIES_HELD));
	else if (found && !strcmp(bodies, "read"))
		remark(remarks, name, false, text_of(BODIES_FOUND "with bodies: read such requests are not charged"));
	else if (found)
		remark(remarks, name, false, text_of(BODIES_FOUND BODIES_HELD));
}

static void add_server(json_t *remarks, json_t *server, bool in_full)
{
	static const char *const warnings[] = { "warning", "nobody_listens", "takes_udp", "other_weir" };
	const char *name = cli_text(server, "name"), *problem = said(server, "problem");
	json_t *loopback = json_object_get(server, "loopback");

	if (problem)
		remark(remarks, name, true, text_of("%s", problem));
	for (size_t i = 0; i < sizeof(warnings) / sizeof(*warnings); i++) {
		const char *warning = said(server, warnings[i]);

		if (warning)
			remark(remarks, name, false, text_of("warning: %s", warning));
	}
	add_bodies(remarks, server);
	add_dry_run(remarks, server);
	add_hold(remarks, name, json_object_get(server, "hold"));
	add_inside(remarks, name, json_object_get(server, "inside"), in_full || hides(server));
	add_syn_cookies(remarks, server);
	if (strcmp(cli_text(loopback, "mode"), "close") == 0)
		remark(remarks, name, false,
		       text_of("a 429 on loopback closes its connection: %s", cli_text(loopback, "why")));
}

/* What the agent has given up bringing in line, until it looks at everything again. */
static void add_given_up(json_t *remarks, json_t *reconcile)
{
	const char *key;
	json_t *entry;

	json_object_foreach (json_object_get(reconcile, "given_up"), key, entry) {
		const char *why = said(entry, "error");

		remark(remarks, key, true,
		       text_of("given up after %lld tries until the next resync (every %lld s): %s",
			       cli_number(entry, "tries"), cli_number(reconcile, "resync_seconds"), why ?: ""));
	}
}

/* The first error of each policy file or directory that the agent follows. */
static void add_policy(json_t *remarks, json_t *policy)
{
	json_t *errors = json_object_get(policy, "errors");
	const char *first = json_string_value(json_array_get(errors, 0));
	CLEANUP_FREE char *who = text_of("policy %s", cli_text(policy, "path")), *more = NULL;
	bool never = json_is_null(json_object_get(policy, "last_success"));
	size_t n = json_array_size(errors);

	if (!n || !who)
		return;
	more = n > 1 ? text_of(" (and %zu more)", n - 1) : NULL;
	remark(remarks, who, true,
	       text_of("%s, because of %s%s",
		       never ? "it has not been in force since the agent started" : "its earlier content is in force",
		       first ?: "", more ?: ""));
}

static void add_sockmap(json_t *remarks, json_t *agent)
{
	const char *warning = said(agent, "sockmap");

	if (warning)
		remark(remarks, "all servers", false, text_of("warning: %s", warning));
}

static void add_leftovers(json_t *remarks, json_t *leftovers)
{
	json_t *path;
	size_t i;

	json_array_foreach (leftovers, i, path)
		remark(remarks, json_string_value(path), true,
		       text_of("is in force, and this agent does not know its servers: weir uninstall ends it, and so does attaching a server there"));
}

json_t *status_remarks(json_t *result, bool in_full)
{
	json_t *remarks = json_array(), *agent = json_object_get(result, "agent"), *item;
	size_t i;

	json_array_foreach (json_object_get(result, "servers"), i, item)
		add_server(remarks, item, in_full);
	if (json_array_size(json_object_get(result, "servers")))
		add_sockmap(remarks, agent);
	add_given_up(remarks, json_object_get(agent, "reconcile"));
	add_leftovers(remarks, json_object_get(agent, "leftovers"));
	json_array_foreach (json_object_get(result, "policies"), i, item)
		add_policy(remarks, item);
	return remarks;
}

/* --- what is printed */

static void print_who(json_t *who)
{
	json_t *name;
	size_t i;

	json_array_foreach (who, i, name)
		cli_say(stdout, "%s%s", i ? ", " : "", json_string_value(name));
}

void status_print_remarks(json_t *remarks)
{
	json_t *item;
	size_t i;

	json_array_foreach (remarks, i, item) {
		enum output_colour colour = json_is_true(json_object_get(item, "bad")) ? OUTPUT_RED : OUTPUT_YELLOW;

		printf("%s%s", i ? "" : "\n", output_colour(colour));
		print_who(json_object_get(item, "who"));
		cli_say(stdout, ": %s", cli_text(item, "text"));
		printf("%s\n", output_colour(OUTPUT_PLAIN));
	}
}

static bool is_about(json_t *item, const char *who)
{
	json_t *name;
	size_t i;

	json_array_foreach (json_object_get(item, "who"), i, name)
		if (!strcmp(json_string_value(name), who))
			return true;
	return false;
}

size_t status_count_remarks(json_t *remarks, const char *who, bool *bad)
{
	size_t n = 0, i;
	json_t *item;

	*bad = false;
	json_array_foreach (remarks, i, item) {
		if (!is_about(item, who))
			continue;
		*bad |= json_is_true(json_object_get(item, "bad"));
		n++;
	}
	return n;
}
