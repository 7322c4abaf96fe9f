/* SPDX-License-Identifier: GPL-2.0 */
/* The fields of policy files: a table for each shape, in the order of their first use. */
#include <ctype.h>
#include <string.h>

#include "base/rate.h"
#include "cli/reference.h"
#include "policy/kinds.h"

#define SECTIONS_MAX 64

/* Each shape is described once, at its first use. */
struct section {
	const struct shape *shape;
	char title[96]; /* "Throttle spec.limits" */
};

struct sections {
	struct section items[SECTIONS_MAX];
	size_t n;
};

static const struct section *find(const struct sections *sections, const struct shape *shape)
{
	for (size_t i = 0; i < sections->n; i++)
		if (sections->items[i].shape == shape)
			return &sections->items[i];
	return NULL;
}

static const struct section *add(struct sections *sections, const struct shape *shape, const char *parent,
				 const char *field)
{
	const struct section *known = find(sections, shape);
	struct section *section = &sections->items[sections->n];

	if (known || sections->n == SECTIONS_MAX)
		return known;
	section->shape = shape;
	snprintf(section->title, sizeof(section->title), "%s%s%s", parent,
		 !*field	     ? "" :
		 strchr(parent, ' ') ? "." :
				       " ",
		 field);
	sections->n++;
	return section;
}

/* As GitHub makes an anchor of a heading. */
static void print_link(FILE *out, const struct section *section)
{
	const char *name = strchr(section->title, ' ');

	fprintf(out, "[%s](#", name ? name + 1 : section->title);
	for (const char *at = section->title; *at; at++)
		if (isalnum(*at))
			fputc(tolower(*at), out);
		else if (*at == ' ')
			fputc('-', out);
	fputc(')', out);
}

static void print_type(FILE *out, const struct field *field, const struct section *object)
{
	if (field->list)
		fputs("list of ", out);
	switch (field->type) {
	case FIELD_TEXT:
		for (const char *const *word = field->words; word && *word; word++)
			fprintf(out, "%s`%s`", word == field->words ? "" : ", ", *word);
		if (!field->words)
			fputs("text", out);
		break;
	case FIELD_NUMBER:
		fprintf(out, "number, %u to %u", field->min, field->max);
		break;
	case FIELD_RATE:
		fprintf(out, "decimal, 0 to %u, or a text like 100/m or 2k", WEIR_QPS_MAX);
		break;
	case FIELD_FLAG:
		fputs("true or false", out);
		break;
	case FIELD_OBJECT:
		if (object)
			print_link(out, object);
		break;
	case FIELD_IGNORED:
		fputs("ignored", out);
		break;
	}
	if (field->list && field->most)
		fprintf(out, ", at most %u", field->most);
}

/* Rules are the same wherever they stand: not named after the field that has them first. */
static const char *name_of(const struct field *field)
{
	return field->shape == &policy_own_rule_shape ? "rule" : field->name;
}

static void print_section(FILE *out, struct sections *sections, size_t i)
{
	const struct section *section = &sections->items[i];

	fprintf(out, "%s %s\n\n| Field | Type | |\n| --- | --- | --- |\n", strchr(section->title, ' ') ? "###" : "##",
		section->title);
	for (const struct field *field = section->shape->fields; field->name; field++) {
		const struct section *object = field->type == FIELD_OBJECT ?
						       add(sections, field->shape, section->title, name_of(field)) :
						       NULL;

		fprintf(out, "| `%s` | ", field->name);
		print_type(out, field, object);
		fputs(field->required ? " | Required." : " |", out);
		if (field->help) {
			fputc(' ', out);
			reference_cell(out, field->help);
		}
		fputs(" |\n", out);
	}
	fputc('\n', out);
}

void reference_policy(FILE *out)
{
	static struct sections sections;
	size_t done = 0;

	reference_title(out, "Policy files");
	fputs("How to apply and follow policy files is in [Use policy files](../howto/use-policy-files.md). "
	      "`weir schema` prints the same fields as a JSON Schema.\n\n| Kind | apiVersion |\n| --- | --- |\n",
	      out);
	for (const struct policy_kind *kind = policy_kinds; kind->kind; kind++) {
		fprintf(out, "| %s | ", kind->kind);
		for (const char *const *version = kind->versions; *version; version++)
			fprintf(out, "%s`%s`", version == kind->versions ? "" : ", ", *version);
		fputs(" |\n", out);
	}
	fputs("| List | of any of these, as `kubectl get -o yaml` prints it |\n\n", out);
	for (const struct policy_kind *kind = policy_kinds; kind->kind; kind++) {
		add(&sections, kind->shape, kind->kind, "");
		while (done < sections.n)
			print_section(out, &sections, done++);
	}
}
