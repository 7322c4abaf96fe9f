/* SPDX-License-Identifier: GPL-2.0 */
/* The exposition format 0.0.4. */
#include <stdio.h>
#include <stdlib.h>

#include "metrics/metrics.h"

static void print_label_value(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
}

static void print_labels(FILE *out, json_t *labels)
{
	const char *name, *separator = "{";
	json_t *value;

	json_object_foreach (labels, name, value) {
		fprintf(out, "%s%s=\"", separator, name);
		print_label_value(out, json_string_value(value));
		fputc('"', out);
		separator = ",";
	}
	if (json_object_size(labels))
		fputc('}', out);
}

/* Milliseconds, but what histograms add up to the ns. */
static void print_value(FILE *out, json_t *value, bool of_histogram)
{
	if (json_is_integer(value))
		fprintf(out, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
	else
		fprintf(out, " %.*f\n", of_histogram ? 9 : 3, json_real_value(value));
}

static void print_family(FILE *out, json_t *family)
{
	const char *name = json_string_value(json_object_get(family, "name"));
	json_t *sample;
	size_t i;

	fprintf(out, "# HELP %s %s\n", name, json_string_value(json_object_get(family, "help")));
	fprintf(out, "# TYPE %s %s\n", name, json_string_value(json_object_get(family, "type")));
	json_array_foreach (json_object_get(family, "samples"), i, sample) {
		const char *suffix = json_string_value(json_object_get(sample, "suffix"));

		fprintf(out, "%s%s", name, suffix ?: "");
		print_labels(out, json_object_get(sample, "labels"));
		print_value(out, json_object_get(sample, "value"), suffix);
	}
}

char *metrics_text(json_t *families)
{
	char *text = NULL;
	json_t *family;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	json_array_foreach (families, i, family)
		print_family(out, family);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
