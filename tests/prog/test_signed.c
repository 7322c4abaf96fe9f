/* SPDX-License-Identifier: GPL-2.0 */
/* Segments with signatures (TCP-MD5, TCP-AO): whoever changes them breaks the connection. */
#include "attached.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <string.h>

static const char get[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
static const __u8 md5[20] = { 1, 1, 19, 18, 7, 8, 9 }, short_md5[8] = { 1, 1, 19, 6, 7, 8, 9 };
static const __u8 ao[16] = { 29, 16, 1, 1, 7, 8, 9 };

/* Is there a member of struct tcp_sock with this name? */
static bool kernel_has(const char *name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *type = btf__type_by_id(btf, btf__find_by_name_kind(btf, "tcp_sock", BTF_KIND_STRUCT));
	bool has = false;

	for (int i = 0; i < btf_vlen(type); i++)
		has |= !strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), name);
	btf__free(btf);
	return has;
}

static void left_alone(const __u8 *options, size_t n)
{
	struct spec request = {
		.seq = CLIENT_NEXT,
		.ack = SERVER_NEXT,
		.flags = PSH_ACK | WEIR_TCP_URG,
		.urgent = 3,
		.options = options,
		.n_options = n,
		.text = get,
	};

	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	assert_untouched(ingress, &request);
	request.seq += strlen(get);
	assert_untouched(ingress, &request);
	assert_untouched(egress, &(struct spec){ .from_server = true,
						 .seq = SERVER_NEXT,
						 .ack = CLIENT_NEXT + strlen(get),
						 .flags = PSH_ACK,
						 .options = options,
						 .n_options = n,
						 .text = "HTTP/1.1 200 OK\r\n\r\n" });
	assert_int_equal(counter(WEIR_SIGNED), 1);
	assert_int_equal(counter(WEIR_SHED), 0);
	assert_int_equal(counter(WEIR_PASSED), 0);
}

/* What the kernel takes for padding is no signature: the request is refused like any other. */
static void answered(const __u8 *options, size_t n)
{
	struct seen seen;

	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	assert_int_equal(run(ingress, &(struct spec){ .seq = CLIENT_NEXT,
						      .ack = SERVER_NEXT,
						      .flags = PSH_ACK,
						      .options = options,
						      .n_options = n,
						      .text = get }),
			 PASS);
	packet_see(&packet, &seen);
	assert_true(seen.from_server);
	assert_int_equal(counter(WEIR_SIGNED), 0);
	assert_int_equal(counter(WEIR_SHED), 1);
}

/* A kernel without such signatures takes them for padding. */
static void signature(const char *known_by, const __u8 *options, size_t n)
{
	if (kernel_has(known_by))
		left_alone(options, n);
	else
		answered(options, n);
}

static void test_md5(void **state)
{
	(void)state;
	signature("md5sig_info", md5, sizeof(md5));
}

static void test_ao(void **state)
{
	(void)state;
	signature("ao_info", ao, sizeof(ao));
}

static void test_short_md5(void **state)
{
	(void)state;
	answered(short_md5, sizeof(short_md5));
}

static void test_syn(void **state)
{
	static const __u8 mptcp_too[24] = { 1, 1, 19, 18, 7, 8, 9, [20] = 30, 4, 0, 1 };

	(void)state;
	if (!kernel_has("md5sig_info"))
		skip();
	assert_untouched(ingress, &(struct spec){ .seq = CLIENT_NEXT - 1,
						  .flags = WEIR_TCP_SYN,
						  .options = mptcp_too,
						  .n_options = sizeof(mptcp_too) });
	assert_int_equal(counter(WEIR_MPTCP_REMOVED), 0);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(md5),
		TEST(ao),
		TEST(short_md5),
		TEST(syn),
	};

	return cmocka_run_group_tests_name("signed", tests, attached_open, attached_close);
}
