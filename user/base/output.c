/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/output.h"

static const char *const formats[OUTPUT_FORMATS] = {
	[OUTPUT_TABLE] = "table",
	[OUTPUT_JSON] = "json",
	[OUTPUT_YAML] = "yaml",
};

int output_format_parse(const char *text, enum output_format *format, struct error *err)
{
	for (unsigned int i = 0; i < OUTPUT_FORMATS; i++) {
		if (strcmp(text, formats[i]) == 0) {
			*format = i;
			return 0;
		}
	}
	return error_set(err, -EINVAL, "\"%s\" is not a format (table, json or yaml)", text);
}

int output_json(FILE *file, json_t *value)
{
	errno = 0;
	if (json_dumpf(value, file, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) ||
	    fputc('\n', file) == EOF)
		return error_errno();
	return 0;
}

/* What is in the buffer fails again, for the same reason, if what was before it has failed. */
int output_flush(FILE *file)
{
	if (fflush(file))
		return error_errno();
	return ferror(file) ? -EIO : 0;
}

int output_error(int ret, struct error *err)
{
	return error_set(err, ret, "cannot write the output: %s", strerror(-ret));
}

int output_json_line(FILE *file, json_t *value)
{
	errno = 0;
	if (json_dumpf(value, file, JSON_COMPACT | JSON_REAL_PRECISION(15)) || fputc('\n', file) == EOF)
		return error_errno();
	return output_flush(file);
}

/* The length of the UTF-8 sequence at p when it is one printable character, else 0. C1 controls are not printable. */
static size_t printable_length(const unsigned char *p)
{
	size_t length = *p < 0x80 ? 1 : *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
	json_t *valid;

	if (length == 1)
		return *p >= ' ' && *p != 0x7f;
	if (strnlen((const char *)p, length) < length || (p[0] == 0xc2 && p[1] < 0xa0))
		return 0;
	valid = json_stringn((const char *)p, length);
	json_decref(valid);
	return valid ? length : 0;
}

char *output_visible(const char *text)
{
	char *visible = malloc(4 * strlen(text) + 1);
	char *out = visible;

	if (!visible)
		return NULL;
	while (*text) {
		size_t length = printable_length((const unsigned char *)text);

		if (length) {
			memcpy(out, text, length);
			out += length;
			text += length;
		} else {
			out += sprintf(out, "\\x%02x", (unsigned char)*text++);
		}
	}
	*out = '\0';
	return visible;
}

char *output_visible_format(const char *format, va_list words)
{
	CLEANUP_FREE char *text = NULL;

	if (vasprintf(&text, format, words) < 0) {
		text = NULL;
		return NULL;
	}
	return output_visible(text);
}

json_t *output_text_json(const char *text)
{
	json_t *json = json_string(text);
	CLEANUP_FREE char *visible = json ? NULL : output_visible(text);

	return visible ? json_string(visible) : json;
}

const char *output_colour(enum output_colour colour)
{
	static const char *const codes[OUTPUT_COLOURS] = { "\033[0m", "\033[31m", "\033[32m", "\033[33m" };
	const char *off = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(off && *off) ? codes[colour] : "";
}

struct cell {
	char *text;
	enum output_colour colour;
};

struct table {
	const char *const *heads;
	size_t n_columns;
	size_t *widths;
	bool headed; /* the heads are printed */
	struct cell *cells;
	size_t n_cells;
};

struct table *table_new(const char *const *heads, size_t n)
{
	struct table *table = calloc(1, sizeof(*table));
	size_t *widths = calloc(n, sizeof(*widths));

	if (!table || !widths) {
		free(table);
		free(widths);
		return NULL;
	}
	*table = (struct table){ .heads = heads, .n_columns = n, .widths = widths };
	return table;
}

static void forget_cells(struct table *table)
{
	for (size_t i = 0; i < table->n_cells; i++)
		free(table->cells[i].text);
	table->n_cells = 0;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	forget_cells(table);
	free(table->cells);
	free(table->widths);
	free(table);
}

int table_cell(struct table *table, const char *format, ...)
{
	CLEANUP_FREE char *text = NULL;
	struct cell *cells;
	char *visible;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0) {
		text = NULL;
		return -ENOMEM;
	}
	cells = reallocarray(table->cells, table->n_cells + 1, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	table->cells = cells;
	visible = output_visible(text);
	if (!visible)
		return -ENOMEM;
	cells[table->n_cells++] = (struct cell){ .text = visible };
	return 0;
}

void table_colour(struct table *table, enum output_colour colour)
{
	if (table->n_cells)
		table->cells[table->n_cells - 1].colour = colour;
}

/* Characters, not bytes: continuation bytes of UTF-8 take no column. */
static size_t columns_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void widen(struct table *table, size_t column, size_t width)
{
	if (table->widths[column] < width)
		table->widths[column] = width;
}

void table_widen(struct table *table, const size_t *widths)
{
	for (size_t i = 0; i < table->n_columns; i++)
		widen(table, i, widths[i]);
}

static void widen_by_row(struct table *table, const struct cell *cells)
{
	for (size_t i = 0; i < table->n_columns; i++)
		widen(table, i, columns_of(cells[i].text));
}

static void print_cell(const struct cell *cell, FILE *file)
{
	if (cell->colour == OUTPUT_PLAIN)
		fputs(cell->text, file);
	else
		fprintf(file, "%s%s%s", output_colour(cell->colour), cell->text, output_colour(OUTPUT_PLAIN));
}

static void print_row(const struct table *table, const struct cell *cells, FILE *file)
{
	for (size_t i = 0; i + 1 < table->n_columns; i++) {
		print_cell(&cells[i], file);
		fprintf(file, "%*s", (int)(table->widths[i] - columns_of(cells[i].text) + 2), "");
	}
	print_cell(&cells[table->n_columns - 1], file);
	fputc('\n', file);
}

static void print_heads(const struct table *table, FILE *file)
{
	for (size_t i = 0; i + 1 < table->n_columns; i++)
		fprintf(file, "%s%*s", table->heads[i], (int)(table->widths[i] - columns_of(table->heads[i]) + 2), "");
	fprintf(file, "%s\n", table->heads[table->n_columns - 1]);
}

size_t table_rows(const struct table *table)
{
	return table->n_columns ? table->n_cells / table->n_columns : 0;
}

int table_print(struct table *table, FILE *file)
{
	size_t rows = table_rows(table);

	for (size_t i = 0; i < table->n_columns; i++)
		widen(table, i, columns_of(table->heads[i]));
	for (size_t row = 0; row < rows; row++)
		widen_by_row(table, table->cells + row * table->n_columns);
	if (!table->headed)
		print_heads(table, file);
	table->headed = true;
	for (size_t row = 0; row < rows; row++)
		print_row(table, table->cells + row * table->n_columns, file);
	forget_cells(table);
	return output_flush(file);
}
