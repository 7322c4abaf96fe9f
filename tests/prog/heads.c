/* SPDX-License-Identifier: GPL-2.0 */
#include "heads.h"

#include "weir.skel.h"

static struct weir_reading how;

void heads_look(void)
{
	struct weir_server server;
	__u32 zero = 0;

	assert_int_equal(bpf_map_lookup_elem(dp->maps.servers, &zero, &server), 0);
	how = server.reading;
}

__u64 head_digest(const char *head)
{
	struct weir_request r;

	weir_request_start(&r);
	for (const char *byte = head; *byte; byte++)
		weir_request_byte(&r, &how, *byte);
	assert_true(weir_request_ended(&r));
	return weir_request_digest(&r, (const struct weir_digest_keys *)dp->skeleton->rodata_keys->digest_keys);
}
