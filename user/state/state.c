/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/nearest.h"
#include "state/state.h"

static const char *const loopback_modes[LOOPBACK_MODES] = {
	[LOOPBACK_AUTO] = "auto",
	[LOOPBACK_TRANSLATE] = "translate",
	[LOOPBACK_CLOSE] = "close",
};

static const char *const framing_modes[FRAMING_MODES] = {
	[FRAMING_REJECT] = "reject",
	[FRAMING_PASS] = "pass",
};

static const char *const hold_modes[HOLD_MODES] = {
	[HOLD_AUTO] = "auto",
	[HOLD_PACE] = "pace",
	[HOLD_DROP] = "drop",
};

static const char *const full_modes[FULL_MODES] = {
	[FULL_KNOWN] = "known",
	[FULL_OPEN] = "open",
	[FULL_CLOSED] = "closed",
};
static const char *const inside_modes[] = {
	[INSIDE_OFF] = "off",	[INSIDE_SEE] = "see",	[INSIDE_ANSWER] = "answer",
	[INSIDE_AUTO] = "auto", [INSIDE_HOLD] = "hold",
};
static const char *const xdp_modes[XDP_ASKED_COUNT] = {
	[XDP_OFF] = "off",
	[XDP_AUTO] = "auto",
	[XDP_GENERIC] = "generic",
	[XDP_NATIVE] = "native",
};
static const char *const refusals_modes[] = { [REFUSALS_NAMED] = "named", [REFUSALS_PLAIN] = "plain" };

const char *loopback_mode_name(enum loopback_mode mode)
{
	return loopback_modes[mode];
}

int loopback_mode_parse(const char *text, enum loopback_mode *mode, struct error *err)
{
	unsigned int found = words_find(loopback_modes, LOOPBACK_MODES, text);

	if (found == LOOPBACK_MODES)
		return error_set(err, -EINVAL, "\"%s\" is not a loopback mode (auto, translate or close)", text);
	*mode = found;
	return 0;
}

const char *framing_mode_name(enum framing_mode mode)
{
	return framing_modes[mode];
}

int framing_mode_parse(const char *text, enum framing_mode *mode, struct error *err)
{
	unsigned int found = words_find(framing_modes, FRAMING_MODES, text);

	if (found == FRAMING_MODES)
		return error_set(err, -EINVAL, "\"%s\" is not a framing mode (reject or pass)", text);
	*mode = found;
	return 0;
}

const char *hold_mode_name(enum hold_mode mode)
{
	return hold_modes[mode];
}

int hold_mode_parse(const char *text, enum hold_mode *mode, struct error *err)
{
	unsigned int found = words_find(hold_modes, HOLD_MODES, text);

	if (found == HOLD_MODES)
		return error_set(err, -EINVAL, "\"%s\" is not a hold mode (auto, pace or drop)", text);
	*mode = found;
	return 0;
}

const char *full_mode_name(enum full_mode mode)
{
	return full_modes[mode];
}

int full_mode_parse(const char *text, enum full_mode *mode, struct error *err)
{
	unsigned int found = words_find(full_modes, FULL_MODES, text);

	if (found == FULL_MODES)
		return error_set(err, -EINVAL, "\"%s\" is not a mode for full tables (known, open or closed)", text);
	*mode = found;
	return 0;
}

const char *inside_mode_name(enum inside_mode mode)
{
	return inside_modes[mode];
}

int inside_mode_parse(const char *text, enum inside_mode *mode, struct error *err)
{
	unsigned int found = words_find(inside_modes, INSIDE_MODES, text);

	if (found == INSIDE_MODES)
		return error_set(err, -EINVAL, "\"%s\" is not a way to look inside (off, see, answer or auto)", text);
	*mode = found;
	return 0;
}

const char *xdp_asked_name(enum xdp_asked asked)
{
	return xdp_modes[asked];
}

int xdp_asked_parse(const char *text, enum xdp_asked *asked, struct error *err)
{
	unsigned int found = words_find(xdp_modes, XDP_ASKED_COUNT, text);

	if (found == XDP_ASKED_COUNT)
		return error_set(err, -EINVAL, "\"%s\" is not an XDP mode (auto, native, generic or off)", text);
	*asked = found;
	return 0;
}

const char *refusals_mode_name(enum refusals_mode mode)
{
	return refusals_modes[mode];
}

int refusals_mode_parse(const char *text, enum refusals_mode *mode, struct error *err)
{
	unsigned int found = words_find(refusals_modes, REFUSALS_MODES, text);

	if (found == REFUSALS_MODES)
		return error_set(err, -EINVAL, "\"%s\" is not a mode for refusals (named or plain)", text);
	*mode = found;
	return 0;
}

void server_free(struct server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < server->n_limits; i++)
		limit_clear(&server->limits[i]);
	free(server->limits);
	rule_list_clear(server->exempt, server->n_exempt);
	priorities_clear(&server->priorities);
	identity_settings_clear(&server->identity);
	free(server->interfaces);
	free(server->proxies);
	free(server->balancers);
	free(server->listens);
	free(server->cgroup);
	free(server->netns);
	json_decref(server->policy);
	json_decref(server->policy_text.of);
	free(server->policy_text.text);
	free(server);
}

struct limit *server_limit(const struct server *server, const char *name)
{
	for (size_t i = 0; i < server->n_limits; i++)
		if (strcmp(server->limits[i].name, name) == 0)
			return &server->limits[i];
	return NULL;
}

int server_limit_add(struct server *server, const struct limit *limit)
{
	struct limit *grown = array_grow(server->limits, server->n_limits, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[server->n_limits++] = *limit;
	server->limits = grown;
	return 0;
}

void server_limit_remove(struct server *server, struct limit *limit)
{
	limit_clear(limit);
	array_cut(server->limits, server->n_limits, sizeof(*limit), limit - server->limits);
	server->n_limits--;
}

int state_find(const struct state *state, const char *name)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (state->servers[slot] && strcmp(state->servers[slot]->name, name) == 0)
			return slot;
	return -ENOENT;
}

int state_unknown(const struct state *state, const char *name, struct error *err)
{
	struct nearest meant = nearest_to(name);

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (state->servers[slot])
			nearest_try(&meant, state->servers[slot]->name);
	if (meant.found)
		return error_set(err, -ENOENT, "there is no server \"%s\": is \"%s\" meant?", name, meant.found);
	return error_set(err, -ENOENT, "there is no server \"%s\"", name);
}

/* Appends ", NAME" for each server that is not draining, as far as it fits. */
static void list_names(const struct state *state, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (server && !server->draining && used + strlen(server->name) + 3 < size)
			used += sprintf(text + used, "%s%s", used ? ", " : "", server->name);
	}
}

int state_find_only(const struct state *state, struct error *err)
{
	int only = -ENOENT, draining = -ENOENT, n = 0;
	char names[256];

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (server && server->draining) {
			draining = slot;
		} else if (server) {
			only = slot;
			n++;
		}
	}
	if (n > 1) {
		list_names(state, names, sizeof(names));
		return error_set(err, -EINVAL, "%d servers are attached, name one of them with --server: %s", n, names);
	}
	if (n == 0 && draining < 0)
		return error_set(err, -ENOENT, "no server is attached");
	return n ? only : draining;
}

static bool same_listen(const struct datapath_listen *a, const struct datapath_listen *b)
{
	return a->port == b->port && a->any == b->any &&
	       (a->any || memcmp(a->address, b->address, sizeof(a->address)) == 0);
}

static const struct datapath_listen *shared_listen(const struct server *a, const struct server *b)
{
	for (size_t i = 0; i < a->n_listens; i++)
		for (size_t j = 0; j < b->n_listens; j++)
			if ((a != b || i != j) && same_listen(&a->listens[i], &b->listens[j]))
				return &a->listens[i];
	return NULL;
}

int state_check(const struct state *state, const struct server *server, struct error *err)
{
	const struct datapath_listen *shared = shared_listen(server, server);
	char text[PARSE_LISTEN_TEXT];

	if (shared) {
		format_listen(shared, text);
		return error_set(err, -EEXIST, "%s is given twice for server \"%s\"", text, server->name);
	}
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *other = state->servers[slot];

		if (!other || other == server)
			continue;
		if (strcmp(other->name, server->name) == 0)
			return error_set(
				err, -EEXIST,
				other->draining ?
					"server \"%s\" is draining: it can be attached again when its "
					"translated connections have ended, or after a detach --force" :
					"server \"%s\" is attached already: to change its options, apply a Throttle (weir export, weir apply)",
				server->name);
		shared = other->netns_cookie == server->netns_cookie ? shared_listen(server, other) : NULL;
		if (shared) {
			format_listen(shared, text);
			return error_set(err, -EEXIST,
					 "server \"%s\" cannot have %s: server \"%s\" of this namespace has it",
					 server->name, text, other->name);
		}
	}
	return 0;
}

void state_clear(struct state *state)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		server_free(state->servers[slot]);
	*state = (struct state){ 0 };
}
