/* SPDX-License-Identifier: GPL-2.0 */
#include "model/identity_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/csv.h"
#include "sys/secret.h"

/* Reading one text: a file's, or what the command line gave. */
struct reading {
	const char *name;
	bool quoted; /* the name is the text itself */
	struct error *err;
	bool failed;
	int (*row)(struct reading *reading, const struct csv_record *record);
	token_each *token;
	address_each *address;
	void *context;
};

/* Appends an error to the earlier ones, if there is room. */
__attribute__((format(printf, 3, 4))) static void complain(struct reading *r, const struct csv_place *place,
							   const char *format, ...)
{
	size_t used = r->failed && r->err ? strlen(r->err->text) : 0;
	struct error one;
	va_list args;
	char text[256];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (r->quoted)
		error_set(&one, 0, "%s\"%s\": %s", used ? "; " : "", r->name, text);
	else
		error_set(&one, 0, "%s%s:%u:%u: %s", used ? "; " : "", r->name, place->line, place->column, text);
	if (r->err && used + strlen(one.text) < sizeof(r->err->text))
		strcpy(r->err->text + used, one.text);
	r->failed = true;
}

bool group_next(const char **list, const char **name, size_t *length)
{
	while (**list == ',')
		(*list)++;
	*name = *list;
	*length = strcspn(*list, ",");
	*list += *length;
	return *length;
}

static void check_name(struct reading *r, const struct csv_record *record, size_t field, const char *what)
{
	struct error err;

	if (parse_subject_name(record->fields[field], &err))
		complain(r, &record->places[field], "%s: %s", what, err.text);
}

static void check_groups(struct reading *r, const struct csv_record *record, size_t field)
{
	char group[PARSE_SUBJECT_MAX + 1];
	const char *list = record->fields[field], *name;
	size_t length;
	struct error err;

	while (group_next(&list, &name, &length)) {
		snprintf(group, sizeof(group), "%.*s", (int)length, name);
		if (length > PARSE_SUBJECT_MAX || parse_subject_name(group, &err))
			complain(r, &record->places[field],
				 "the groups: a name is 1 to %d bytes without control characters", PARSE_SUBJECT_MAX);
	}
}

static const char *field_or_none(const struct csv_record *record, size_t field)
{
	return record->n > field ? record->fields[field] : "";
}

/* A row without a token is for nobody: Kubernetes passes over it. */
static int token_row_read(struct reading *r, const struct csv_record *record)
{
	struct token_row row;

	if (record->n < 3) {
		complain(r, &record->place, "a token, a user and a uid are needed, and %zu column%s there", record->n,
			 record->n == 1 ? " is" : "s are");
		return 0;
	}
	check_name(r, record, 1, "the user");
	if (record->n > 3)
		check_groups(r, record, 3);
	if (!*record->fields[0] || r->failed)
		return 0;
	row = (struct token_row){ record->fields[0], record->fields[1], field_or_none(record, 3) };
	return r->token(&row, r->context);
}

static int address_row_read(struct reading *r, const struct csv_record *record)
{
	struct address_row row = { 0 };
	struct error err;

	if (record->n < 2 || record->n > 4) {
		complain(r, &record->place, "CIDR,user,\"groups\",namespace are 2 to 4 columns, and %zu %s there",
			 record->n, record->n == 1 ? "is" : "are");
		return 0;
	}
	/* What stands there is not quoted: it may be a file of tokens, given by mistake. */
	if (parse_cidr(record->fields[0], &row.cidr, &err))
		complain(r, &record->places[0], "this is not an IP address or CIDR");
	check_name(r, record, 1, "the user");
	if (record->n > 2)
		check_groups(r, record, 2);
	if (record->n > 3 && *record->fields[3] &&
	    parse_subject(WEIR_KEY_NAMESPACE, record->fields[3], &(struct subject){ 0 }, &err))
		complain(r, &record->places[3], "this is not a namespace");
	if (r->failed)
		return 0;
	row.user = record->fields[1];
	row.groups = field_or_none(record, 2);
	row.namespace = field_or_none(record, 3);
	return r->address(&row, r->context);
}

static int read_text(struct reading *r, char *text, size_t length)
{
	struct csv_record record;
	struct error err;
	struct csv csv;
	int ret;

	csv_start(&csv, text, length);
	while ((ret = csv_next(&csv, &record, &err)) > 0) {
		ret = r->row(r, &record);
		if (ret)
			return error_set(r->err, ret, "%s: %s", r->name, strerror(-ret));
	}
	if (ret)
		complain(r, &csv.place, "%s", err.text);
	return r->failed ? -EINVAL : 0;
}

static int read_file(struct reading *r)
{
	CLEANUP_SECRET struct secret secret = { 0 };
	int ret = secret_read(r->name, &secret, r->err) ?: read_text(r, secret.text, secret.length);

	secret_wipe_stack();
	return ret;
}

int token_file_read(const char *path, token_each *each, void *context, struct error *err)
{
	struct reading r = { .name = path, .err = err, .row = token_row_read, .token = each, .context = context };

	return read_file(&r);
}

int address_file_read(const char *path, address_each *each, void *context, struct error *err)
{
	struct reading r = { .name = path, .err = err, .row = address_row_read, .address = each, .context = context };

	return read_file(&r);
}

int address_text_read(const char *text, address_each *each, void *context, struct error *err)
{
	struct reading r = {
		.name = text, .quoted = true, .err = err, .row = address_row_read, .address = each, .context = context
	};
	CLEANUP_FREE char *copy = strdup(text);

	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	if (!*text)
		return error_set(err, -EINVAL, "the address is empty");
	return read_text(&r, copy, strlen(copy));
}
