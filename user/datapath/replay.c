/* SPDX-License-Identifier: GPL-2.0 */
/* Has the programs decide a recording's requests, a batch at a time (weir/conn/explain.h). */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/mman.h>

#include "datapath/private.h"
#include "weir.skel.h"
#include "weir/conn/explain.h"

#define SLOTS_BYTES (WEIR_REPLAY_SLOTS * sizeof(struct weir_replayed))

void datapath_replay_wanted(struct bpf_object *object, bool wanted)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, "replayed");

	if (map)
		bpf_map__set_autocreate(map, wanted);
}

static int slots_map(struct datapath *dp, struct error *err)
{
	void *slots = mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			   bpf_map__fd(dp->explain->maps.replayed), 0);

	if (slots == MAP_FAILED)
		return datapath_map_failed(err, -errno, "replayed");
	dp->replayed = slots;
	return 0;
}

int datapath_replay_open(struct datapath *dp, struct error *err)
{
	return datapath_explain_load(dp, "weir_replay", err) ?: slots_map(dp, err);
}

void datapath_replay_close(struct datapath *dp)
{
	if (dp->replayed)
		munmap(dp->replayed, SLOTS_BYTES);
	dp->replayed = NULL;
}

int datapath_replay_put(struct datapath *dp, __u32 at, __u32 server, const struct datapath_question *question,
			struct error *err)
{
	struct weir_replayed *slot = &dp->replayed[at];
	int ret = datapath_question_fill(&slot->question, server, question, err);

	if (ret)
		return ret;
	slot->done = WEIR_REPLAY_WAITING;
	memcpy(slot->request, question->request, question->length);
	return 0;
}

/* How many of n slots are behind the programs. */
static __u32 slots_done(const struct datapath *dp, __u32 from, __u32 n)
{
	__u32 done = 0;

	while (done < n && dp->replayed[from + done].done != WEIR_REPLAY_WAITING)
		done++;
	return done;
}

static int run_slots(struct datapath *dp, __u32 from, __u32 n)
{
	/* Its bytes are each request's in its turn. */
	__u8 frame[ETH_HLEN + sizeof(struct weir_explain) + WEIR_EXPLAIN_BYTES] = { 0 };
	struct __sk_buff context = { .mark = from };
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = sizeof(frame), .ctx_in = &context,
		    .ctx_size_in = sizeof(context), .repeat = n);

	return bpf_prog_test_run_opts(bpf_program__fd(dp->explain->progs.weir_replay), &run);
}

int datapath_replay_run(struct datapath *dp, __u32 from, __u32 n, struct error *err)
{
	__u32 done = 0;

	while (done < n) {
		int ret = run_slots(dp, from + done, n - done);
		__u32 more = slots_done(dp, from + done, n - done);

		/* A signal ends it early. */
		if (ret && ret != -EINTR)
			return error_set(err, ret, "asking the kernel: %s", strerror(-ret));
		if (!ret && !more)
			return error_set(err, -EIO, "asking the kernel: nothing was decided");
		done += more;
	}
	for (__u32 i = 0; i < n; i++)
		if (dp->replayed[from + i].done != WEIR_REPLAY_DECIDED)
			return error_set(err, -EIO, "asking the kernel: the server is not in force there");
	return 0;
}

const struct weir_explained *datapath_replay_answer(const struct datapath *dp, __u32 at)
{
	return &dp->replayed[at].answer;
}
