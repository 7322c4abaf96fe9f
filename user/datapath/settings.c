/* SPDX-License-Identifier: GPL-2.0 */
/* What the maps `settings` and `answers` hold, for all servers of the namespace. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "weir/abi/answer.h"
#include "weir/http/ambiguity.h"

#include "datapath/answer_text.h"
#include "datapath/private.h"

int datapath_settings_fill(struct datapath *dp, struct error *err)
{
	struct weir_settings settings;
	__u32 zero = 0;

	if (bpf_map_lookup_elem(dp->maps.settings, &zero, &settings))
		return datapath_map_failed(err, -errno, "settings");
	if (!settings.abi_version) {
		settings.abi_version = WEIR_ABI_VERSION;
		settings.netns_cookie = dp->netns_cookie;
		if (getrandom(settings.seed, sizeof(settings.seed), 0) != sizeof(settings.seed) ||
		    bpf_map_update_elem(dp->maps.settings, &zero, &settings, BPF_ANY))
			return datapath_map_failed(err, -errno, "settings");
	}
	memcpy(dp->seed, settings.seed, sizeof(dp->seed));
	dp->pace_ifindex = settings.pace_ifindex;
	return 0;
}

int datapath_settings_sync(struct datapath *dp, struct error *err)
{
	struct weir_settings there, wanted = { .abi_version = WEIR_ABI_VERSION,
					       .pace_ifindex = dp->pace_ifindex,
					       .seed = { dp->seed[0], dp->seed[1] },
					       .netns_cookie = dp->netns_cookie };
	__u32 zero = 0;

	if (!bpf_map_lookup_elem(dp->maps.settings, &zero, &there) && !memcmp(&there, &wanted, sizeof(there)))
		return 0;
	dp->written.of[DATAPATH_settings].changed++;
	if (bpf_map_update_elem(dp->maps.settings, &zero, &wanted, BPF_ANY))
		return datapath_map_failed(err, -errno, "settings");
	return 0;
}

/* What is right already is not written again: a program may be copying it. */
static int answer_fill(struct datapath *dp, __u32 index, const struct weir_answer *answer, struct error *err)
{
	struct weir_answer there;

	if (!bpf_map_lookup_elem(dp->maps.answers, &index, &there) && !memcmp(answer, &there, sizeof(there)))
		return 0;
	dp->written.of[DATAPATH_answers].changed++;
	if (bpf_map_update_elem(dp->maps.answers, &index, answer, BPF_ANY))
		return datapath_map_failed(err, -errno, "answers");
	return 0;
}

static int limit_answers_fill(struct datapath *dp, struct error *err)
{
	struct weir_answer answer;
	int ret = 0;

	for (__u32 kind = 0; kind < WEIR_ANSWER_KINDS; kind++) {
		for (__u32 digits = 0; digits <= WEIR_RETRY_DIGITS && !ret; digits++) {
			ret = weir_answer_make(NULL, kind, digits, &answer);
			if (ret)
				return error_set(err, ret, "preparing the responses: %s", strerror(-ret));
			ret = answer_fill(dp, weir_answer_index(kind, digits), &answer, err);
		}
	}
	return ret;
}

static int rejections_fill(struct datapath *dp, struct error *err)
{
	struct weir_answer answer;
	int ret = 0;

	for (enum weir_reason why = 0; why < WEIR_REASON_COUNT && !ret; why++) {
		if (!weir_reason_is_ambiguity(why, false))
			continue;
		ret = weir_rejection_make(why, &answer);
		if (ret)
			return error_set(err, ret, "preparing the 400 response: %s", strerror(-ret));
		ret = answer_fill(dp, weir_rejection_index(why), &answer, err);
	}
	return ret;
}

int datapath_answers_fill(struct datapath *dp, struct error *err)
{
	return limit_answers_fill(dp, err) ?: rejections_fill(dp, err);
}
