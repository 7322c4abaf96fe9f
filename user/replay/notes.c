/* SPDX-License-Identifier: GPL-2.0 */
#include "replay/notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/key.h"
#include "rules/identity.h"

/* --- subjects */

/* 0: no key; that of a priority level, and of a limit that has one count for all. */
static __u8 key_of_slot(const struct server *server, __u32 slot)
{
	for (size_t i = 0; i < server->n_limits; i++)
		if (limit_slot(&server->limits[i]) == slot)
			return server->limits[i].key;
	return 0;
}

static const char *part_name(enum weir_key_part part, const struct server *server, const struct datapath *dp,
			     __u64 subject, const struct recorded *recorded, const char *source)
{
	switch (part) {
	case WEIR_KEY_NAMESPACE:
		return recorded->namespace;
	case WEIR_KEY_GROUP:
		return identity_group_name(&server->identity, dp, subject) ?: "(a group)";
	case WEIR_KEY_SOURCE:
		return source;
	default: /* an Event is its user's: what tells it apart is not recorded */
		return recorded->user ?: source;
	}
}

char *replay_subject_name(const struct server *server, const struct datapath *dp,
			  const struct weir_explained_limit *limit, const struct recorded *recorded)
{
	struct datapath_cidr counted = source_counted(recorded->address);
	__u8 key = key_of_slot(server, limit->slot);
	char source[PARSE_LISTEN_TEXT], *text = NULL;
	size_t size;
	FILE *out;
	bool first = true;

	if (limit->subject == WEIR_SUBJECT_OVERFLOW)
		return strdup("(new ones)");
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	format_source(&counted, source);
	for (int n = 0; n < WEIR_KEY_PARTS; n++) {
		if (!(key >> n & 1))
			continue;
		fprintf(out, "%s%s", first ? "" : "/",
			part_name(1 << n, server, dp, limit->subject, recorded, source) ?: "?");
		first = false;
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* --- what is not replayed */

static void note(json_t *notes, const struct server *server, const char *name, const char *what)
{
	json_array_append_new(notes, json_sprintf("server \"%s\": %s: %s", server->name, name, what));
}

static void note_limit(json_t *notes, const struct server *server, const struct limit *limit)
{
	if (weir_limit_is_of_connections(limit->kind))
		note(notes, server, limit->name, "a recording has no connections, so it refuses nothing here");
	else if (weir_limit_has_seats(limit->kind))
		note(notes, server, limit->name,
		     "a recording does not say how long requests took, so it refuses nothing here");
	if (limit->key & WEIR_KEY_OBJECT)
		note(notes, server, limit->name, "a recording has no bodies, so Events are charged to their users");
}

static void note_server(json_t *notes, const struct server *server)
{
	for (size_t i = 0; i < server->n_limits; i++)
		note_limit(notes, server, &server->limits[i]);
	if (server->priorities.n_levels)
		note(notes, server, "priority levels",
		     "a recording does not say how long requests took, so they refuse nothing here");
}

json_t *replay_notes(const struct server *const *servers, size_t n, bool by_time)
{
	json_t *notes = json_array();

	for (size_t i = 0; i < n; i++)
		note_server(notes, servers[i]);
	if (by_time)
		json_array_append_new(notes, json_string("the recording has no monotonic_ns: times are those of the "
							 "wall clock, which may have been set meanwhile"));
	return notes;
}
