/* SPDX-License-Identifier: GPL-2.0 */
/* Asks the programs what would become of a request (weir/conn/explain.h). */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>

#include "datapath/private.h"
#include "sys/libbpf_log.h"
#include "sys/privilege.h"
#include "weir.skel.h"
#include "weir/conn/explain.h"

#define HEAD_BYTES (ETH_HLEN + sizeof(struct weir_explain))

struct frame {
	__u8 bytes[HEAD_BYTES + WEIR_EXPLAIN_BYTES];
	size_t length;
};

int datapath_question_fill(struct weir_explain *out, __u32 server, const struct datapath_question *question,
			   struct error *err)
{
	if (question->length > WEIR_EXPLAIN_BYTES)
		return error_set(err, -E2BIG, "the request has %zu bytes: at most %d can be explained",
				 question->length, WEIR_EXPLAIN_BYTES);
	*out = (struct weir_explain){
		.server = server,
		.length = question->length,
		.believed = question->believed,
		.inside = question->inside,
		.now_ns = question->now_ns,
	};
	memcpy(out->source, question->source, sizeof(out->source));
	return 0;
}

/* The answer needs its room, too. */
static void frame_fill(struct frame *frame, const struct weir_explain *input, const struct datapath_question *question)
{
	size_t answer = ETH_HLEN + sizeof(struct weir_explained);

	memcpy(frame->bytes + ETH_HLEN, input, sizeof(*input));
	memcpy(frame->bytes + HEAD_BYTES, question->request, question->length);
	frame->length = HEAD_BYTES + question->length;
	if (frame->length < answer)
		frame->length = answer;
}

static int skeleton_load(struct weir_bpf *skeleton)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_LOAD);

	return weir_bpf__load(skeleton);
}

/* The program is loaded, on the maps that there are, when it is asked for the first time: a third of all there is to verify. */
int datapath_explain_load(struct datapath *dp, const char *name, struct error *err)
{
	struct bpf_program *program;
	struct weir_bpf *skeleton;
	int ret;

	if (dp->explain)
		return 0;
	ret = datapath_object_open(&skeleton, err);
	if (ret)
		return ret;
	bpf_object__for_each_program (program, skeleton->obj)
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), name));
	datapath_replay_wanted(skeleton->obj, !strcmp(name, "weir_replay"));
	ret = datapath_maps_share(dp, skeleton->obj) ?: skeleton_load(skeleton);
	if (ret) {
		weir_bpf__destroy(skeleton);
		return datapath_load_failed(ret, err);
	}
	dp->explain = skeleton;
	return 0;
}

int datapath_explain(struct datapath *dp, __u32 server, const struct datapath_question *question,
		     struct weir_explained *out, struct error *err)
{
	struct frame frame = {};
	struct weir_explain input;
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame.bytes, .data_out = frame.bytes);
	int ret;

	ret = datapath_question_fill(&input, server, question, err) ?: datapath_explain_load(dp, "weir_explain", err);
	if (ret)
		return ret;
	frame_fill(&frame, &input, question);
	run.data_size_in = run.data_size_out = frame.length;
	ret = bpf_prog_test_run_opts(bpf_program__fd(dp->explain->progs.weir_explain), &run);
	if (ret)
		return error_set(err, ret, "asking the kernel: %s", strerror(-ret));
	if (run.retval)
		return error_set(err, -EIO, "asking the kernel: the server is not in force there");
	memcpy(out, frame.bytes + ETH_HLEN, sizeof(*out));
	return 0;
}
