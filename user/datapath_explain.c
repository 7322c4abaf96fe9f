/* SPDX-License-Identifier: GPL-2.0 */
/* Asks the programs what would become of a request (weir/explain.h). */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>

#include "datapath_private.h"

#define HEAD_BYTES (ETH_HLEN + sizeof(struct weir_explain))

struct frame {
	__u8 bytes[HEAD_BYTES + WEIR_EXPLAIN_BYTES];
	size_t length;
};

/* The answer needs its room, too. */
static void frame_fill(struct frame *frame, __u32 server, const struct datapath_question *question)
{
	struct weir_explain input = { .server = server, .length = question->length, .believed = question->believed };
	size_t answer = ETH_HLEN + sizeof(struct weir_explained);

	memcpy(input.source, question->source, sizeof(input.source));
	memcpy(frame->bytes + ETH_HLEN, &input, sizeof(input));
	memcpy(frame->bytes + HEAD_BYTES, question->request, question->length);
	frame->length = HEAD_BYTES + question->length;
	if (frame->length < answer)
		frame->length = answer;
}

int datapath_explain(struct datapath *dp, __u32 server, const struct datapath_question *question,
		     struct weir_explained *out, struct error *err)
{
	struct frame frame = {};
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame.bytes, .data_out = frame.bytes);
	int ret;

	if (question->length > WEIR_EXPLAIN_BYTES)
		return error_set(err, -E2BIG, "the request has %zu bytes: at most %d can be explained",
				 question->length, WEIR_EXPLAIN_BYTES);
	frame_fill(&frame, server, question);
	run.data_size_in = run.data_size_out = frame.length;
	ret = bpf_prog_test_run_opts(dp->explain_fd, &run);
	if (ret)
		return error_set(err, ret, "asking the kernel: %s", strerror(-ret));
	if (run.retval)
		return error_set(err, -EIO, "asking the kernel: the server is not in force there");
	memcpy(out, frame.bytes + ETH_HLEN, sizeof(*out));
	return 0;
}
