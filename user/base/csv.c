/* SPDX-License-Identifier: GPL-2.0 */
#include "base/csv.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

void csv_start(struct csv *csv, char *text, size_t length)
{
	*csv = (struct csv){ .at = text, .end = text + length, .place = { 1, 1 } };
}

/* The length of the line end that stands here; 0: none does. A \r at the end of the text belongs to it. */
static size_t line_end(const struct csv *csv)
{
	size_t left = csv->end - csv->at;

	if (left && csv->at[0] == '\n')
		return 1;
	if (left && csv->at[0] == '\r' && (left == 1 || csv->at[1] == '\n'))
		return left == 1 ? 1 : 2;
	return 0;
}

static bool field_ends(const struct csv *csv)
{
	return csv->at == csv->end || *csv->at == ',' || line_end(csv);
}

static void skip(struct csv *csv, size_t n)
{
	csv->at += n;
	csv->place.column += n;
}

static void skip_line_end(struct csv *csv)
{
	csv->at += line_end(csv);
	csv->place = (struct csv_place){ csv->place.line + 1, 1 };
}

/* Its end; NULL: err says why not. */
static char *read_plain(struct csv *csv, struct error *err)
{
	for (; !field_ends(csv); skip(csv, 1)) {
		if (*csv->at == '"') {
			error_set(err, -EINVAL, "a quote in a field that does not begin with a quote");
			return NULL;
		}
	}
	return csv->at;
}

/* Behind the opening quote: moves the bytes to `to`, where two quotes are one. */
static char *read_quoted(struct csv *csv, char *to, struct error *err)
{
	struct csv_place start = csv->place;

	while (csv->at != csv->end) {
		if (*csv->at == '"') {
			skip(csv, 1);
			if (field_ends(csv))
				return to;
			if (*csv->at != '"') {
				error_set(err, -EINVAL, "text after the closing quote of a field");
				return NULL;
			}
		} else if (line_end(csv)) {
			*to++ = '\n';
			skip_line_end(csv);
			continue;
		}
		*to++ = *csv->at;
		skip(csv, 1);
	}
	csv->place = start;
	error_set(err, -EINVAL, "a quote is not closed");
	return NULL;
}

static int read_field(struct csv *csv, struct csv_record *record, struct error *err)
{
	struct csv_place place = csv->place;
	char *field = csv->at, *end;
	bool quoted = csv->at != csv->end && *csv->at == '"';

	skip(csv, quoted);
	end = quoted ? read_quoted(csv, field, err) : read_plain(csv, err);
	if (!end)
		return -EINVAL;
	if (memchr(field, 0, end - field)) {
		csv->place = place;
		return error_set(err, -EINVAL, "a NUL byte");
	}
	if (record->n < CSV_FIELDS) {
		record->fields[record->n] = field;
		record->places[record->n] = place;
	}
	record->n++;
	if (csv->at != csv->end && *csv->at == ',') {
		*end = 0;
		skip(csv, 1);
		return 1;
	}
	if (csv->at != csv->end)
		skip_line_end(csv);
	*end = 0;
	return 0;
}

int csv_next(struct csv *csv, struct csv_record *record, struct error *err)
{
	int ret;

	while (csv->at != csv->end && line_end(csv))
		skip_line_end(csv);
	if (csv->at == csv->end)
		return 0;
	*record = (struct csv_record){ .place = csv->place };
	do
		ret = read_field(csv, record, err);
	while (ret > 0);
	return ret < 0 ? ret : 1;
}
