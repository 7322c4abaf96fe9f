/* SPDX-License-Identifier: GPL-2.0 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/nearest.h"

#define WORD_MAX 256 /* bytes; longer ones are near to nothing */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * How many letters to change, add, leave out or exchange with the next, at most `most` (the distance of Damerau and Levenshtein,
 * where no letter is moved twice).
 */
static size_t distance(const char *a, const char *b, size_t most)
{
	size_t rows[3][WORD_MAX + 1], n = strlen(b);

	if (strlen(a) > WORD_MAX || n > WORD_MAX)
		return most;
	for (size_t j = 0; j <= n; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= strlen(a); i++) {
		size_t *row = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			row[j] = least(least(before[j], row[j - 1]) + 1, before[j - 1] + !same(a[i - 1], b[j - 1]));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				row[j] = least(row[j], earlier[j - 2] + 1);
		}
	}
	return least(rows[strlen(a) % 3][n], most);
}

struct nearest nearest_to(const char *word)
{
	return (struct nearest){ .word = word, .best = strlen(word) > 4 ? 3 : 2 };
}

void nearest_try(struct nearest *nearest, const char *candidate)
{
	size_t d = distance(nearest->word, candidate, nearest->best);

	if (d >= nearest->best)
		return;
	nearest->best = d;
	nearest->found = candidate;
}
