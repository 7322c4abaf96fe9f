/* SPDX-License-Identifier: GPL-2.0 */
/* Policy files, read and checked: the objects that they hold. */
#ifndef WEIR_USER_POLICY_POLICY_H
#define WEIR_USER_POLICY_POLICY_H

#include "base/error.h"
#include "policy/kinds.h"
#include "policy/tree.h"
#include "state/state.h"

/* Both names stay where they are as long as the policy does. */
struct policy_file {
	char *path;   /* as problems name it */
	char *name;   /* as limits and objects do: absolute, or "stdin"; UTF-8 */
	__u64 digest; /* of what it held, where only regular files are read: such a policy may be looked at again */
};

struct policy_object {
	const struct policy_kind *kind;
	const char *name; /* of the document's metadata; "" of an EventRateLimit, which has none */
	const char *file; /* its file's name */
	const struct node *node;
	json_t *document; /* without what means nothing here */
};

struct policy {
	struct policy_object *objects;
	size_t n;
	struct policy_file *files;
	size_t n_files;
	bool regular;	/* only regular files are read: none that has to be waited for */
	bool full;	/* there are too many objects, and that has been said */
	bool pointed;	/* what is being read was pointed to by an AdmissionConfiguration */
	json_t *json;	/* borrowed: what is being read, where somebody has parsed it; else NULL */
	json_t *levels; /* what they mean (priority_seats_to_json()), once all is checked; NULL: there are none */
	struct documents documents;
	struct problems problems;
};

void policy_clear(struct policy *policy);
#define CLEANUP_POLICY __attribute__((cleanup(policy_clear)))

/*
 * Reads a file, the files (*.yaml, *.yml, *.json) of a directory, or with "-" standard input. What is wrong with what they
 * say is added to the problems; -errno: the file itself cannot be read, and err says so.
 */
int policy_read(struct policy *policy, const char *path, struct error *err);
/* What a regular file holds, with a NUL behind it, and its name as objects have it. The caller frees both. */
int policy_file_text(const char *path, char **text, size_t *length, char **name, struct error *err);
/* Would reading the path again say the same? Files that were pointed to are looked at, too. */
bool policy_is_current(const struct policy *policy, const char *path);
/* read.c: the documents of a file, down to the objects. */
int policy_read_text(struct policy *policy, const struct policy_file *file, const char *text, size_t length,
		     struct error *err);

/*
 * Reads and checks a file that somebody has parsed as JSON, as the only one. False: something is wrong with it, or is to be said of it, or
 * another reader may take it for something else. Read it as a text then: that tells what, and where. Both arguments are borrowed.
 */
bool policy_read_json(struct policy *policy, const char *file, json_t *json);

/* Of JSON, with a NUL behind it: does whoever reads it as YAML take it for the same? (as_yaml.c) */
bool policy_is_as_yaml(const char *text, size_t length);

/* Once all is read: the same object twice, and each server's limits taken together. Adds to the problems, and sorts them. */
void policy_check(struct policy *policy);

/*
 * The server that a Throttle and the objects beside it make, where nothing else was set. throttle NULL: any server. The caller frees *out
 * (server_free).
 */
int policy_throttle_server(const struct policy *policy, const struct policy_object *throttle, struct server **out,
			   struct error *err);

/* For the agent: [{file, document}]. A new reference. */
json_t *policy_to_json(const struct policy *policy);
/* "Throttle web", "FlowSchema probes", "EventRateLimit" */
#define POLICY_LABEL 320
void policy_label(const struct policy_kind *kind, const char *name, char label[static POLICY_LABEL]);
/* The kind and name of a document that has been read. NULL: it is of no kind that is applied. */
const struct policy_kind *policy_document_kind(json_t *document, const char **name);

/* --- what objects come to, as JSON in weir's own names (state.h, limit.h, priority.h); new references */

json_t *policy_events_limits(json_t *document); /* events.c */
json_t *policy_level(json_t *document);		/* flow.c */
json_t *policy_flow_schema(json_t *document);
/* What of the documents is accepted and not honoured. */
void policy_flow_warn(const struct policy_object *objects, size_t n, struct problems *problems);
/*
 * The schemas and levels that Kubernetes always has, "exempt" and "catch-all", where they are missing; and of those that it
 * has unless told otherwise the schema "probes", by which health checks are exempt.
 */
void policy_add_mandatory(json_t *levels, json_t *schemas);

/* --- server.c */

/* The server as it would be with these objects ([{file, document}]) and no others. Caller frees *out (server_free). */
int policy_server(const struct server *server, json_t *objects, struct server **out, struct error *err);
/* The objects of a server (objects.h), borrowed; NULL: none. */
json_t *policy_objects(const struct server *server);
/* Was it attached by its Throttle? Then it goes with it. */
bool policy_attached(const struct server *server);
/* Checks what the server kept from before its objects, except for what policy_server() checks. */
int policy_check_base(const struct server *server, struct error *err);
/* saved.c: is all of its policy right, as state.json has it? */
int policy_check_saved(const struct server *server, struct error *err);
/* --- settings.c */

/* A command pauses the server, or ends that. -EBUSY: its Throttle says that it is paused. */
int policy_pause(struct server *server, bool paused, struct error *err);
/* A command begins or ends the server's dry run. -EBUSY: its Throttle says otherwise. */
int policy_dry_run(struct server *server, bool dry_run, struct error *err);
/* The settings of a Throttle with which its server is attached: in weir's own names. A new reference. */
json_t *policy_attach_settings(json_t *throttle);
/* -EBUSY: the Throttle says otherwise what cannot be changed of a server that is attached. */
int policy_check_fixed(const struct server *server, json_t *throttle, struct error *err);
/* Do both say the same of what attach sets? */
bool policy_same_settings(const struct server *a, const struct server *b);

/* --- export.c */

/* All documents that make the server what it is: its Throttle first. A new reference. */
json_t *policy_export(const struct server *server);
/* The same without the overrides of limits, of which there may be thousands; and have two servers the same ones? */
json_t *policy_export_settings(const struct server *server);
bool policy_same_overrides(const struct server *a, const struct server *b);

#endif
