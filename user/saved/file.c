/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/regular.h"
#include "policy/policy.h"
#include "saved/fresh.h"
#include "saved/lines.h"
#include "saved/saved.h"
#include "saved/text.h"
#include "sys/boot_id.h"

#define STATE_VERSION 2
#define STATE_FILE "state.json"

/* One of the files: all that is there, or what outlives the machine's restart. */
typedef struct server *which_server(struct server *server, struct server **made);

static struct server *server_itself(struct server *server, struct server **made)
{
	(void)made;
	return server;
}

/* *all: every server is there as it is. */
static int write_servers(const struct state *state, which_server *which, struct text *out, bool *all)
{
	const char *comma = "";
	int ret = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++) {
		CLEANUP_SERVER struct server *made = NULL;
		struct server *server = state->servers[slot] ? which(state->servers[slot], &made) : NULL;

		*all &= server == state->servers[slot];
		if (!server)
			continue;
		text_add(out, comma);
		text_add(out, "\"");
		text_add_number(out, slot);
		text_add(out, "\":");
		ret = server_write(server, out);
		comma = ",";
	}
	return ret;
}

/* {version, boot_id, servers: {SLOT: server}}, in the place of what the text was; the caller frees it, on failure too. */
static int state_to_text(const struct state *state, which_server *which, struct text *out, bool *all, struct error *err)
{
	char boot_id[BOOT_ID_SIZE];
	int ret;

	text_clear(out);
	*all = true;
	boot_id_read(boot_id);
	text_add(out, "{\"version\":");
	text_add_number(out, STATE_VERSION);
	text_add(out, ",\"boot_id\":");
	text_add_string(out, boot_id);
	text_add(out, ",\"servers\":{");
	ret = write_servers(state, which, out, all);
	text_add(out, "}}\n");
	ret = out->failed ? -ENOMEM : ret;
	return ret ? error_set(err, ret, "cannot save the state: out of memory") : 0;
}

static int write_fresh(const struct text *text, const char *directory, struct error *err)
{
	return fresh_write(directory, STATE_FILE, text->bytes, text->used, err);
}

/* *size: of each file; 0: they do not say the same. */
static int write_both(const struct state *state, const char *state_dir, size_t *size, struct error *err)
{
	CLEANUP_TEXT struct text text = { 0 };
	bool same = true, all;
	int ret = 0;

	if (state->persist_dir)
		ret = state_to_text(state, server_persisted, &text, &same, err) ?:
			      write_fresh(&text, state->persist_dir, err);
	/* Most often both files say the same. */
	if (!ret && !(state->persist_dir && same))
		ret = state_to_text(state, server_itself, &text, &all, err);
	*size = same ? text.used : 0;
	return ret ?: write_fresh(&text, state_dir, err);
}

/* Both are written before one takes its place: a full disk leaves both as they were. */
int state_save(struct state *state, const char *state_dir, struct error *err)
{
	size_t size = 0;
	int ret = write_both(state, state_dir, &size, err);

	if (!ret && state->persist_dir)
		ret = fresh_place(state->persist_dir, STATE_FILE, err);
	ret = ret ?: fresh_place(state_dir, STATE_FILE, err);
	if (ret) {
		fresh_drop(state_dir, STATE_FILE);
		if (state->persist_dir)
			fresh_drop(state->persist_dir, STATE_FILE);
		state->saved.size = 0;
		return ret;
	}
	state->saved.size = state->saved.room = size;
	state->saved.lines = false;
	return 0;
}

/* A line is small beside a state that is large, and lines are saved as a whole when they are as large as that. */
int state_save_override(struct state *state, int slot, const struct limit *limit, const struct override *override,
			const char *state_dir, struct error *err)
{
	const char *const directories[] = { state->persist_dir, state_dir };
	CLEANUP_TEXT struct text line = { 0 };

	override_line(slot, limit, override, &line);
	if (line.failed || !state->saved.size || line.used > state->saved.room ||
	    lines_add(directories, state->saved.size, &line))
		return state_save(state, state_dir, err);
	state->saved.size += line.used;
	state->saved.room -= line.used;
	state->saved.lines = true;
	return 0;
}

static int place_server(struct state *state, const char *slot_text, json_t *json, struct error *err)
{
	CLEANUP_SERVER struct server *server = NULL;
	__u64 slot;
	int ret;

	ret = parse_number(slot_text, WEIR_MAX_SERVERS - 1, &slot, err);
	if (!ret && state->servers[slot])
		ret = error_set(err, -EEXIST, "slot %llu is there twice", slot);
	if (!ret)
		ret = server_from_json(json, &server, err);
	if (!ret)
		ret = state_check(state, server, err)	      ?:
			      policy_check_saved(server, err) ?:
								server_give_numbers(server, err);
	if (ret)
		return ret;
	state->servers[slot] = server;
	server = NULL;
	return 0;
}

static int state_from_json(json_t *json, struct state *state, struct error *err)
{
	json_t *servers, *server;
	const char *slot, *boot_id;
	json_error_t why;
	int version, ret;

	if (json_unpack_ex(json, &why, 0, "{s:i, s?s, s:o !}", "version", &version, "boot_id", &boot_id, "servers",
			   &servers))
		return error_set(err, -EINVAL, "%s", why.text);
	if (version != STATE_VERSION && version != STATE_VERSION - 1)
		return error_set(err, -EPROTO, "it is of version %d, this weir reads version %d, and %d", version,
				 STATE_VERSION, STATE_VERSION - 1);
	if (!json_is_object(servers))
		return error_set(err, -EINVAL, "\"servers\" is not an object");
	if (version != STATE_VERSION)
		state_upgrade(servers);
	state_name_files(servers);
	json_object_foreach (servers, slot, server) {
		ret = place_server(state, slot, server, err);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * What cannot be read as it is has to be moved away. Without memory or descriptors, or by a disk that fails, it may be as it should: who moved
 * that away would lose it.
 */
static int cannot_read(int ret, const struct error *what, struct error *err)
{
	bool whole = ret == -ENOMEM || ret == -EMFILE || ret == -ENFILE || ret == -EIO || ret == -EACCES;

	return error_set(err, ret, "cannot read %s (%s)", what->text,
			 whole ? "leave it there, it may be whole" : "move it away to start with nothing");
}

static int read_lines(const char *path, FILE *file, json_t *json, bool *lines, struct error *err)
{
	struct error detail, what;
	int ret = lines_read(file, json, lines, &detail);

	error_set(&what, 0, "%s: %s", path, ret ? detail.text : "");
	return ret ? cannot_read(ret, &what, err) : 0;
}

/* A new reference; *json stays NULL where there is no file. *lines: there are some behind the state, which has what they say. */
static int read_json(const char *state_dir, json_t **json, bool *lines, struct error *err)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	char path[PATH_MAX];
	struct error detail;
	json_error_t why;
	int ret;

	if (snprintf(path, sizeof(path), "%s/" STATE_FILE, state_dir) >= PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "the path of %s/" STATE_FILE " is too long", state_dir);
	ret = regular_read(path, &file, &detail);
	if (ret == -ENOENT)
		return 0;
	if (ret)
		return cannot_read(ret, &detail, err);
	*json = json_loadf(file, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &why);
	if (*json)
		return read_lines(path, file, *json, lines, err);
	if (ferror(file) || json_error_code(&why) == json_error_out_of_memory)
		ret = ferror(file) ? -EIO : -ENOMEM;
	error_set(&detail, 0, "%s: line %d: %s", path, why.line, ret ? strerror(-ret) : why.text);
	return cannot_read(ret ?: -EINVAL, &detail, err);
}

/* json: NULL for an empty state. */
static int load_json(struct state *state, json_t *json, bool lines, const char *state_dir, struct error *err)
{
	struct state loaded = { 0 };
	struct error detail, what;
	int ret = json ? state_from_json(json, &loaded, &detail) : 0;

	if (ret) {
		state_clear(&loaded);
		error_set(&what, 0, "%s/" STATE_FILE ": %s", state_dir, detail.text);
		return cannot_read(ret, &what, err);
	}
	*state = loaded;
	state->saved.lines = lines;
	return 0;
}

int state_load(struct state *state, const char *state_dir, struct error *err)
{
	CLEANUP_JSON json_t *json = NULL;
	bool lines = false;

	return read_json(state_dir, &json, &lines, err) ?: load_json(state, json, lines, state_dir, err);
}

/* Files of earlier versions do not tell; nor do some kernels. */
static bool is_of_this_boot(json_t *json)
{
	const char *said = json_string_value(json_object_get(json, "boot_id"));
	char boot_id[BOOT_ID_SIZE];

	boot_id_read(boot_id);
	return !said || !*said || !*boot_id || strcmp(said, boot_id) == 0;
}

int state_begin(struct state *state, const char *state_dir, const char *persist_dir, struct error *err)
{
	CLEANUP_JSON json_t *current = NULL, *persisted = NULL;
	enum state_origin origin = STATE_NEW;
	bool lines = false;
	int ret = read_json(state_dir, &current, &lines, err);

	/* Of an agent that was killed while it saved. */
	fresh_drop(state_dir, STATE_FILE);
	if (persist_dir)
		fresh_drop(persist_dir, STATE_FILE);
	if (!ret && current && is_of_this_boot(current)) {
		origin = STATE_CURRENT;
		ret = load_json(state, current, lines, state_dir, err);
	} else if (!ret && persist_dir) {
		ret = read_json(persist_dir, &persisted, &lines, err) ?:
			      load_json(state, persisted, lines, persist_dir, err);
		origin = persisted ? STATE_PERSISTED : origin;
	}
	if (ret)
		return ret;
	state->persist_dir = persist_dir;
	return origin == STATE_NEW && current ? STATE_OUTDATED : origin;
}
