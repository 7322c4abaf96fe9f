/* SPDX-License-Identifier: GPL-2.0 */
/* Names the option that was probably meant by one that is misspelt. argp reports all other errors. */
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "cli/cli.h"

struct known {
	struct option *options;
	size_t n;
	char letters[256]; /* as getopt_long() takes them: what lacks its argument is told by a colon */
};

static bool add(struct known *known, const char *name, int has_argument)
{
	struct option *grown = array_grow(known->options, known->n, sizeof(*grown));

	if (!grown)
		return false;
	known->options = grown;
	grown[known->n++] = (struct option){ .name = name, .has_arg = has_argument };
	return true;
}

static void add_letter(struct known *known, char letter, int has_argument)
{
	size_t used = strlen(known->letters);

	if (used + 2 < sizeof(known->letters))
		memcpy(&known->letters[used], (char[]){ letter, has_argument ? ':' : '\0', '\0' }, 3);
}

static bool is_end(const struct argp_option *option)
{
	return !option->name && !option->key && !option->doc && !option->group;
}

static bool add_all(struct known *known, const struct argp *argp)
{
	bool added = true;

	for (const struct argp_option *option = argp->options; option && !is_end(option); option++) {
		int has_argument = option->arg ? required_argument : no_argument;

		if (isascii(option->key) && isalpha(option->key))
			add_letter(known, option->key, has_argument);
		added &= !option->name || add(known, option->name, has_argument);
	}
	for (const struct argp_child *child = argp->children; child && child->argp; child++)
		added &= add_all(known, child->argp);
	return added;
}

/* As an option, if argp would print what nobody can read. */
static char *unprintable_letter(int letter)
{
	char *text = NULL;

	return (isascii(letter) && isprint(letter)) || asprintf(&text, "-%c", letter) < 0 ? NULL : text;
}

/*
 * The first option that is not known, if it is a long one or a letter that nobody can read: with its dashes, without its argument. The
 * caller frees it. NULL: there is none.
 */
static char *first_unknown(const struct known *known, int argc, char **argv)
{
	CLEANUP_FREE char **words = array_copy(argv, argc + 1, sizeof(*words));
	int got = 0;

	optind = 0;
	opterr = 0;
	while (words && got != -1 && got != '?')
		got = getopt_long(argc, words, known->letters, known->options, NULL);
	if (got != '?')
		return NULL;
	if (optopt)
		return unprintable_letter(optopt);
	return strncmp(words[optind - 1], "--", 2) ? NULL : strndup(words[optind - 1], strcspn(words[optind - 1], "="));
}

/* One that is cut short is told by argp, with all that it may be. */
static const char *meant_by(const struct known *known, const char *option)
{
	const char *typed = option + strspn(option, "-");
	struct nearest nearest = nearest_to(typed);

	for (size_t i = 0; i < known->n && known->options[i].name; i++) {
		if (strncmp(known->options[i].name, typed, strlen(typed)) == 0)
			return NULL;
		nearest_try(&nearest, known->options[i].name);
	}
	return nearest.found;
}

void cli_find_misspelt(const struct argp *argp, bool in_order, int argc, char **argv)
{
	struct known known = { 0 };
	CLEANUP_FREE char *typed = NULL, *visible = NULL;
	const char *meant = NULL;
	bool ends;

	strcpy(known.letters, in_order ? "+:V?" : ":V?");
	if (add_all(&known, argp) && add(&known, "help", no_argument) && add(&known, "usage", no_argument) &&
	    add(&known, "version", no_argument) && add(&known, NULL, 0))
		typed = first_unknown(&known, argc, argv);
	if (typed)
		meant = meant_by(&known, typed);
	visible = typed ? output_visible(typed) : NULL;
	ends = meant || (visible && strcmp(visible, typed) != 0); /* argp would print control characters as they are */
	if (meant)
		fprintf(stderr, "%s: there is no option \"%s\": is \"--%s\" meant?\n", argv[0], visible ?: "", meant);
	else if (ends)
		fprintf(stderr, "%s: there is no option \"%s\"\n", argv[0], visible);
	free(known.options);
	if (ends)
		exit(CLI_USAGE);
}
