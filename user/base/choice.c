/* SPDX-License-Identifier: GPL-2.0 */
#include "base/choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/texts.h"

#define ROOM 128

/* "auto, pace or drop" */
static void list_words(const struct choice *choice, char text[static ROOM])
{
	size_t used = 0;

	for (unsigned int i = 0; i < choice->n && used < ROOM; i++)
		used += snprintf(text + used, ROOM - used, "%s%s",
				 i == 0		    ? "" :
				 i + 1 == choice->n ? " or " :
						      ", ",
				 choice->words[i]);
}

int choice_parse(const struct choice *choice, const char *text, struct error *err)
{
	unsigned int found = words_find(choice->words, choice->n, text);
	char words[ROOM] = "";

	if (found < choice->n)
		return found;
	list_words(choice, words);
	return error_set(err, -EINVAL, "\"%s\" is not %s (%s)", text, choice->what, words);
}
