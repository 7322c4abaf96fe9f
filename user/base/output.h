/* SPDX-License-Identifier: GPL-2.0 */
/* What commands print: a JSON value as JSON or YAML, or a table for people. Functions return 0 or a negative errno. */
#ifndef WEIR_USER_BASE_OUTPUT_H
#define WEIR_USER_BASE_OUTPUT_H

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

enum output_format {
	OUTPUT_TABLE,
	OUTPUT_JSON,
	OUTPUT_YAML,
	OUTPUT_FORMATS,
};

int output_format_parse(const char *text, enum output_format *format, struct error *err);

int output_json(FILE *file, json_t *value);
int output_yaml(FILE *file, json_t *value); /* yaml.c */
/* One of several documents, flushed: for what comes over time. */
int output_yaml_more(FILE *file, json_t *value);

/* All that was printed goes out. */
int output_flush(FILE *file);
/* The error of one of these functions. Returns ret. */
int output_error(int ret, struct error *err);

/* In one line, flushed: for what comes over time. */
int output_json_line(FILE *file, json_t *value);

/*
 * text with everything that is not printable UTF-8 as \xNN, so that names chosen by clients can neither move a
 * terminal's cursor nor break a line. The caller frees it; NULL without memory.
 */
char *output_visible(const char *text);
/* The same of a format and its words. */
char *output_visible_format(const char *format, va_list words) __attribute__((format(printf, 1, 0)));
/* As a value of JSON: as it stands, or like that where it is no UTF-8, as names of files need not be. NULL without memory. */
json_t *output_text_json(const char *text);

/* What sets a colour on standard output; "" where that is no terminal, or NO_COLOR is set (no-color.org). */
enum output_colour {
	OUTPUT_PLAIN,
	OUTPUT_RED,
	OUTPUT_GREEN,
	OUTPUT_YELLOW,
	OUTPUT_COLOURS,
};
const char *output_colour(enum output_colour colour);

/* Rows of cells, as wide as their widest. */
struct table;

/* heads: borrowed, n of them. NULL without memory. */
struct table *table_new(const char *const *heads, size_t n);
void table_free(struct table *table);
/* The next cell, row by row. Texts are made visible. */
int table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Of the cell that was added last. */
void table_colour(struct table *table, enum output_colour colour);
size_t table_rows(const struct table *table);
/* The heads, at the first time, and the rows since the last. Columns only ever widen. */
int table_print(struct table *table, FILE *file);
/* Columns are this wide from the start; n_columns of them. */
void table_widen(struct table *table, const size_t *widths);

static inline void cleanup_table(struct table **table)
{
	table_free(*table);
}
#define CLEANUP_TABLE __attribute__((cleanup(cleanup_table)))

#endif
