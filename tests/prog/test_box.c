/* SPDX-License-Identifier: GPL-2.0 */
/* Who goes on while refused is held at XDP; and who stands beside is not. */
#include "frames.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weir/admission/box.h"

#define ETHERNET 14
#define NEIGHBOUR 8 /* last byte of an address in the /64 of the client's, fd00::9 */

static const char begun[] = "POST /api/v1/namespaces/a/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12";
static const char health[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

static struct datapath_limit penal(__u8 key)
{
	struct datapath_limit limit = rate_of(key, 0, 1);

	limit.penalty = (struct weir_backoff){ .parts = WEIR_BACKOFF_EXPONENTIAL,
					       .base_ns = 2000 * WEIR_NS_PER_S,
					       .max_ns = 3000 * WEIR_NS_PER_S };
	return limit;
}

static void flags_set(__u32 flags)
{
	done(datapath_server_flags(dp, 0, flags, &error));
}

static int setup(void **state)
{
	struct datapath_limit limit = penal(WEIR_KEY_SOURCE);
	int ret = attached_setup(state);

	flags_set(WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP);
	slot_set(&limit);
	rule_set("{}");
	device_add(0, 0);
	return ret;
}

static bool held(const struct packet *p)
{
	__u64 before = counter(WEIR_BOXED);
	bool drops = frame_verdict(p) == XDP_DROP;

	assert_int_equal(counter(WEIR_BOXED) - before, drops ? 2 : 0);
	return drops;
}

static bool segment_held(bool ipv6, __u32 at, __u8 flags, const char *text)
{
	packet_build(&packet,
		     &(struct spec){
			     .ipv6 = ipv6, .seq = CLIENT_NEXT + at, .ack = SERVER_NEXT, .flags = flags, .text = text });
	return held(&packet);
}

static bool syn_held(bool ipv6)
{
	return segment_held(ipv6, 0, WEIR_TCP_SYN, NULL);
}

/* Of another host in the same /64. */
static bool neighbours_syn_held(void)
{
	packet_build(&packet, &(struct spec){ .ipv6 = true, .flags = WEIR_TCP_SYN });
	packet.bytes[ETHERNET + 8 + 15] = NEIGHBOUR;
	return held(&packet);
}

/* One request that passes, one that begins the penalty, one within it. */
static void go_on_while_refused(bool ipv6)
{
	assert_true(passes(ipv6, get_pod));
	assert_false(passes(ipv6, get_pod));
	assert_false(syn_held(ipv6));
	assert_false(passes(ipv6, get_pod));
	assert_true(syn_held(ipv6));
}

static void proxy_add(int map, const __u8 address[16], __u32 bits)
{
	struct weir_proxy_key key = { .prefixlen = 32 + bits };
	__u8 yes = 1;

	memcpy(key.address, address, 16);
	assert_int_equal(bpf_map_update_elem(map, &key, &yes, BPF_ANY), 0);
}

static void address_of(bool ipv6, __u8 last, __u8 address[16])
{
	struct weir_flow flow;

	packet_flow(ipv6, &flow);
	memcpy(address, flow.client, 16);
	if (last)
		address[15] = last;
}

static void test_an_address(void **state)
{
	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		go_on_while_refused(ipv6);
		assert_true(segment_held(ipv6, strlen(get_pod), PSH_ACK, get_pod));
		assert_true(
			segment_held(ipv6, strlen(get_pod) + 100, PSH_ACK, get_pod)); /* what is to come behind it */
	}
	assert_true(neighbours_syn_held());
}

/* What was read before asks for its answer again, which may be lost. What ends a connection passes, and what nobody knows. */
static void test_what_passes(void **state)
{
	struct weir_flow flow;

	(void)state;
	go_on_while_refused(false);
	assert_false(segment_held(false, 0, PSH_ACK, get_pod));
	assert_false(segment_held(false, strlen(get_pod) - 1, ACK, "\n")); /* is it still there? */
	assert_false(segment_held(false, strlen(get_pod), ACK, NULL));
	assert_false(segment_held(false, strlen(get_pod), FIN_ACK, NULL));
	assert_false(segment_held(false, strlen(get_pod), WEIR_TCP_RST, NULL));
	assert_false(segment_held(false, strlen(get_pod), WEIR_TCP_RST | WEIR_TCP_ACK, "x"));
	assert_false(segment_held(false, 0, WEIR_TCP_SYN | WEIR_TCP_ACK, NULL));
	assert_true(segment_held(false, strlen(get_pod), PSH_ACK, get_pod));
	packet_flow(false, &flow);
	assert_int_equal(bpf_map_delete_elem(dp->maps.conns, &flow), 0);
	assert_false(segment_held(false, strlen(get_pod), PSH_ACK, get_pod));
}

/* The answer comes behind the rest of the request, which therefore does not wait. */
static void test_a_body_is_swallowed(void **state)
{
	__u32 at = strlen(begun);
	struct seen seen;

	(void)state;
	assert_true(passes(false, get_pod));
	assert_false(passes(false, get_pod));
	assert_false(passes(false, begun));
	assert_true(syn_held(false));
	assert_false(segment_held(false, at, PSH_ACK, "half"));
	client_says(false, at, "half");
	assert_false(segment_held(false, at + 4, PSH_ACK, "rest"));
	client_says(false, at + 4, "rest");
	packet_see(&packet, &seen);
	assert_true(seen.from_server);
	assert_memory_equal(seen.text, "HTTP/1.1 429 ", 13);
	assert_false(segment_held(false, at + 4, PSH_ACK, "rest"));
	assert_true(segment_held(false, at + 8, PSH_ACK, begun));
}

/* A stream that cannot be read has no requests that could wait: tc holds what is too much of it. */
static void test_streams_that_are_not_read(void **state)
{
	struct weir_conn c;
	struct weir_flow flow;

	(void)state;
	go_on_while_refused(false);
	packet_flow(false, &flow);
	for (int phase = WEIR_PHASE_FOLLOWED; phase <= WEIR_PHASE_CLOSED; phase++) {
		assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &c), 0);
		c.phase = phase;
		assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_ANY), 0);
		assert_int_equal(segment_held(false, strlen(get_pod), PSH_ACK, get_pod), phase == WEIR_PHASE_FOLLOWED);
	}
}

static void test_when_nobody_is_held(void **state)
{
	static const __u32 flags[] = { WEIR_SERVER_ACTIVE,
				       WEIR_SERVER_XDP,
				       WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP | WEIR_SERVER_PAUSED,
				       WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP | WEIR_SERVER_DRY_RUN,
				       WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP | WEIR_SERVER_DRAINING,
				       WEIR_SERVER_XDP | WEIR_SERVER_DRAINING };
	struct datapath_limit limit = penal(WEIR_KEY_SOURCE);

	(void)state;
	go_on_while_refused(false);
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		flags_set(flags[i]);
		assert_false(syn_held(false));
	}
	flags_set(WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP);
	assert_true(syn_held(false));
	limit.flags = WEIR_LIMIT_DRY_RUN;
	slot_set(&limit);
	assert_false(syn_held(false));
	limit = rate_of(WEIR_KEY_SOURCE, 0, 1);
	slot_set(&limit);
	assert_false(syn_held(false));
	done(datapath_limit_delete(dp, 0, SLOT, &error));
	assert_false(syn_held(false));
}

/* Those who bring the requests of many are not held by what one of them does, nor is their neighbour. */
static void test_proxies(void **state)
{
	int maps[] = { dp->maps.proxies, dp->maps.balancers };
	__u8 address[16];

	(void)state;
	for (int i = 0; i < 2; i++) {
		address_of(true, 0, address);
		proxy_add(maps[i], address, 128);
		assert_int_equal(passes(true, get_pod), !i);
		for (int n = 0; n < 3; n++)
			assert_false(passes(true, get_pod));
		assert_false(syn_held(true));
		assert_false(neighbours_syn_held());
		assert_int_equal(bpf_map_delete_elem(maps[i],
						     &(struct weir_proxy_key){ .prefixlen = 32 + 128,
									       .address = { 0xfd, [15] = 9 } }),
				 0);
	}
	assert_false(passes(true, get_pod));
	assert_true(syn_held(true));
	for (int i = 0; i < 2; i++) {
		address_of(true, NEIGHBOUR, address);
		proxy_add(maps[i], address, 128);
		assert_false(neighbours_syn_held());
		assert_true(syn_held(true));
		assert_int_equal(bpf_map_delete_elem(maps[i],
						     &(struct weir_proxy_key){ .prefixlen = 32 + 128,
									       .address = { 0xfd, [15] = NEIGHBOUR } }),
				 0);
		assert_true(neighbours_syn_held());
	}
}

/* Whose address says that no limit is for them. */
static void test_exempt_sources(void **state)
{
	CLEANUP_RULE struct rule exempt = rule_of("{\"sources\": [\"fd00::8/128\"]}"), any = { 0 };
	const struct rules_entry entries[] = { { .rules = &exempt, .n = 1, .limit = WEIR_RULE_EXEMPT },
					       { .rules = &any, .n = 1, .limit = SLOT } };

	(void)state;
	go_on_while_refused(true);
	assert_true(neighbours_syn_held());
	rules_set(entries, 2);
	assert_false(neighbours_syn_held());
	assert_true(syn_held(true));
}

/* Where somebody asks for whom no limit is, whom packets do not tell from others. */
static void test_somebody_exempt_asks(void **state)
{
	(void)state;
	go_on_while_refused(false);
	connect_ends(false);
	client_says(false, 0, health);
	assert_int_equal(counter(WEIR_EXEMPT), 1);
	assert_false(syn_held(false));
	assert_false(passes(false, get_pod));
	assert_false(syn_held(false));
}

/* Of the client's box. */
static struct weir_box_key own_key(void)
{
	__u8 address[16];

	address_of(false, 0, address);
	return weir_box_key(0, address);
}

/* The memory of a box may come to be another's while it is read; and what is half written is none. */
static void test_what_is_read_of_another(void **state)
{
	struct weir_box_key key = own_key(), other;
	struct weir_box box, torn;
	__u8 address[16];

	(void)state;
	go_on_while_refused(false);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.boxes, &key, &box), 0);
	for (size_t i = 0; i < sizeof(box); i++) {
		torn = box;
		((__u8 *)&torn)[i] ^= 1;
		assert_int_equal(bpf_map_update_elem(dp->maps.boxes, &key, &torn, BPF_ANY), 0);
		assert_false(syn_held(false));
	}
	address_of(true, 0, address);
	other = weir_box_key(0, address);
	assert_int_equal(bpf_map_update_elem(dp->maps.boxes, &other, &box, BPF_ANY), 0);
	assert_false(syn_held(true));
	assert_int_equal(bpf_map_update_elem(dp->maps.boxes, &key, &box, BPF_ANY), 0);
	assert_true(syn_held(false));
}

static void test_goes_with_its_server(void **state)
{
	struct weir_box_key key = own_key();
	struct weir_box box;

	(void)state;
	go_on_while_refused(false);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.boxes, &key, &box), 0);
	key.server = 1;
	assert_int_equal(bpf_map_update_elem(dp->maps.boxes, &key, &box, BPF_ANY), 0);
	done(datapath_server_clear(dp, 0, &error));
	assert_int_equal(bpf_map_lookup_elem(dp->maps.boxes, &key, &box), 0);
	key.server = 0;
	assert_int_equal(bpf_map_lookup_elem(dp->maps.boxes, &key, &box), -ENOENT);
}

/* What it is not for would wait, too. */
static void test_a_limit_with_rules(void **state)
{
	struct datapath_limit limit = penal(WEIR_KEY_SOURCE);

	(void)state;
	limit.flags |= WEIR_LIMIT_NARROW;
	slot_set(&limit);
	assert_true(passes(false, get_pod));
	for (int i = 0; i < 3; i++)
		assert_false(passes(false, get_pod));
	assert_false(syn_held(false));
	assert_false(segment_held(false, strlen(get_pod), PSH_ACK, get_pod));
}

#define BOX(name) cmocka_unit_test_setup_teardown(test_##name, setup, attached_teardown)

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		BOX(an_address),
		BOX(what_passes),
		BOX(a_body_is_swallowed),
		BOX(streams_that_are_not_read),
		BOX(when_nobody_is_held),
		BOX(proxies),
		BOX(exempt_sources),
		BOX(somebody_exempt_asks),
		BOX(what_is_read_of_another),
		BOX(goes_with_its_server),
		BOX(a_limit_with_rules),
	};

	return cmocka_run_group_tests_name("box", tests, frames_open, frames_close);
}
