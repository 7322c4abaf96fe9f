/* SPDX-License-Identifier: GPL-2.0 */
#include "base/twice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "weir/base/subject.h"

#include "base/cleanup.h"

/* A text by its hash: what is compared first. */
struct place {
	__u64 hash; /* 0: nothing is here */
	const char *text;
};

static __u64 hash_of(const __u64 seed[static 2], const char *text)
{
	struct weir_subject_hash hash;

	weir_subject_start(&hash, seed, 0);
	for (; *text; text++)
		weir_subject_byte(&hash, *text);
	return weir_subject_end(&hash);
}

/* The place of a text like this one, or the free one where it belongs. mask: of places, some of which are free. */
static struct place *place_of(struct place *places, size_t mask, __u64 hash, const char *text)
{
	size_t i = hash & mask;

	while (places[i].hash && (places[i].hash != hash || strcmp(places[i].text, text) != 0))
		i = (i + 1) & mask;
	return &places[i];
}

/* Half of the places stay free. The seed is new each time: nobody can choose texts that fall together. */
int twice_find(const char *const *texts, size_t n, const char **out)
{
	CLEANUP_FREE struct place *places = NULL;
	const char *found = NULL;
	__u64 seed[2] = { 0 };
	size_t room = 2;

	while (room / 2 < n)
		room *= 2;
	places = calloc(room, sizeof(*places));
	if (!places || getrandom(seed, sizeof(seed), 0) < 0)
		return places ? -errno : -ENOMEM;
	for (size_t i = 0; i < n && !found; i++) {
		__u64 hash = hash_of(seed, texts[i]);
		struct place *place = place_of(places, room - 1, hash, texts[i]);

		if (place->hash)
			found = texts[i];
		*place = (struct place){ hash, texts[i] };
	}
	*out = found;
	return 0;
}
