/* SPDX-License-Identifier: GPL-2.0 */
/* weir probe --binary: what is found in a server's binary, and what missed. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/regular.h"
#include "cli/cli.h"
#include "cli/slow.h"
#include "golang/show.h"

static void finding_row(struct table *table, json_t *finding)
{
	const char *why = cli_text(finding, "why");

	table_cell(table, "%s", cli_text(finding, "finding"));
	table_cell(table, "%s", json_is_true(json_object_get(finding, "found")) ? "yes" : "no");
	table_cell(table, "%s", *why ? why : "-");
}

static int print_findings(json_t *found)
{
	static const char *const heads[] = { "FINDING", "FOUND", "WHY" };
	CLEANUP_TABLE struct table *table = cli_rows(found, heads, CLI_COLUMNS(heads), finding_row);

	return cli_print_more(table);
}

static void place_rows(struct table *table, json_t *finding)
{
	json_t *place;
	size_t i;

	json_array_foreach (json_object_get(finding, "places"), i, place) {
		table_cell(table, "%s", cli_text(finding, "finding"));
		table_cell(table, "%s", cli_text(place, "what"));
		table_cell(table, "%s", cli_text(place, "offset"));
		table_cell(table, "%s", cli_text(place, "name"));
	}
}

static int print_places(json_t *found)
{
	static const char *const heads[] = { "FINDING", "PLACE", "OFFSET", "FUNCTION" };
	CLEANUP_TABLE struct table *table = cli_rows(found, heads, CLI_COLUMNS(heads), place_rows);

	return cli_print_more(table);
}

static int print_binary(json_t *result)
{
	static const char *const heads[] = { "GO", "MACHINE", "PIE", "FUNCTIONS", "KUBERNETES", "MAIN" };
	CLEANUP_TABLE struct table *table = table_new(heads, CLI_COLUMNS(heads));
	const char *kubernetes = cli_text(result, "kubernetes"), *path = cli_text(result, "path");
	int ret;

	if (!table)
		return -ENOMEM;
	table_cell(table, "%s", cli_text(result, "go"));
	table_cell(table, "%s", cli_text(result, "machine"));
	table_cell(table, "%s", json_is_true(json_object_get(result, "pie")) ? "yes" : "no");
	table_cell(table, "%lld", (long long)cli_number(result, "functions"));
	table_cell(table, "%s", *kubernetes ? kubernetes : "-");
	table_cell(table, "%s", *path ? path : "-");
	ret = cli_print_first(table);
	return ret							?:
		       print_findings(json_object_get(result, "found")) ?:
									  print_places(json_object_get(result, "found"));
}

/* Is there a place where every request's head is known? */
static bool is_seen(json_t *found)
{
	json_t *finding;
	size_t i;

	json_array_foreach (found, i, finding) {
		const char *name = cli_text(finding, "finding");

		if ((!strcmp(name, "http") || !strcmp(name, "authorization")) &&
		    json_is_true(json_object_get(finding, "found")))
			return true;
	}
	return false;
}

static int look_into(int fd, struct golang **go, struct error *err)
{
	CLEANUP_SLOW struct slow slow;

	slow_begin(&slow, "reading the binary");
	return golang_open(fd, go, err);
}

int cli_probe_binary(const char *path)
{
	CLEANUP_JSON json_t *result = NULL;
	CLEANUP_GOLANG struct golang *go = NULL;
	struct error err, why;
	CLEANUP_CLOSE int fd = regular_open(path, &err);
	int ret;

	if (fd < 0)
		return cli_fail(&err);
	if (look_into(fd, &go, &why)) {
		error_set(&err, -ENOEXEC, "%.200s: %.300s", path, why.text);
		return cli_fail(&err);
	}
	result = golang_to_json(go);
	if (!result) {
		error_set(&err, -ENOMEM, "out of memory");
		return cli_fail(&err);
	}
	ret = cli_print(result, print_binary);
	return ret ?: !is_seen(json_object_get(result, "found"));
}
