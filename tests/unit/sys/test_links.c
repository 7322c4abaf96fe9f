/* SPDX-License-Identifier: GPL-2.0 */
/* Which devices get the programs: every packet is to be seen once. */
#include <linux/if_arp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sys/links.h"

/* The fields a case needs; the ifindex is the place in the list, from 1. */
#define ETHER(...)                                \
	{                                         \
		.type = ARPHRD_ETHER, __VA_ARGS__ \
	}

struct expected {
	struct device device;
	const char *why; /* left out; NULL: used */
};

static void check(const struct expected *expected, size_t n, const struct links_wanted *wanted)
{
	struct device devices[16];

	assert_true(n <= sizeof(devices) / sizeof(*devices));
	for (size_t i = 0; i < n; i++) {
		devices[i] = expected[i].device;
		devices[i].ifindex = i + 1;
	}
	for (size_t i = 0; i < n; i++) {
		const char *why = links_left_out(&devices[i], devices, n, wanted);

		if (expected[i].why)
			assert_string_equal(why ?: "used", expected[i].why);
		else
			assert_string_equal(why ?: "used", "used");
	}
}

#define CHECK(expected, wanted) check(expected, sizeof(expected) / sizeof(*(expected)), wanted)

static const struct links_wanted all;

static void test_plain(void **state)
{
	static const struct expected cases[] = {
		{ { .type = ARPHRD_LOOPBACK, .name = "lo" }, NULL },
		{ ETHER(.name = "eth0"), NULL },
		{ ETHER(.name = "eth0.7", .kind = "vlan", .parent = 2), NULL },
		{ ETHER(.name = "veth1", .kind = "veth"), NULL },
		{ ETHER(.name = "vxlan0", .kind = "vxlan", .parent = 2), NULL },
		{ ETHER(.name = "ifb0", .kind = "ifb"), "ifb" },
		{ { .type = ARPHRD_NONE, .name = "wg0", .kind = "wireguard" }, "not Ethernet" },
		{ { .type = ARPHRD_TUNNEL, .name = "tunl0", .kind = "ipip" }, "not Ethernet" },
	};

	(void)state;
	CHECK(cases, &all);
}

static void test_masters(void **state)
{
	static const struct expected cases[] = {
		{ ETHER(.name = "br0", .kind = "bridge"), NULL },
		{ ETHER(.name = "port", .kind = "veth", .master = 1), "bridge port" },
		{ ETHER(.name = "bond0", .kind = "bond"), NULL },
		{ ETHER(.name = "slave", .master = 3), "bond slave" },
		{ ETHER(.name = "team0", .kind = "team"), NULL },
		{ ETHER(.name = "member", .master = 5), "team port" },
		{ ETHER(.name = "ovs-system", .kind = "openvswitch"), NULL },
		{ ETHER(.name = "ovs-port", .master = 7), "openvswitch port" },
		{ ETHER(.name = "netvsc"), NULL },
		{ ETHER(.name = "vf", .master = 9), "slave of another device" },
		{ ETHER(.name = "vrf0", .kind = "vrf"), "VRF" },
		{ ETHER(.name = "in-vrf", .master = 11), "in a VRF" },
	};

	(void)state;
	CHECK(cases, &all);
}

static void test_parents(void **state)
{
	static const struct expected cases[] = {
		{ ETHER(.name = "eth0"), NULL },
		{ ETHER(.name = "macvlan0", .kind = "macvlan", .parent = 1), "on top of another device" },
		{ ETHER(.name = "macvtap0", .kind = "macvtap", .parent = 1), "on top of another device" },
		{ ETHER(.name = "ipvlan0", .kind = "ipvlan", .parent = 1), "on top of another device" },
		/* The parent is in another namespace. */
		{ ETHER(.name = "macvlan1", .kind = "macvlan"), NULL },
		/* The parent of macsec sees cipher text, unless the hardware does the work. */
		{ ETHER(.name = "macsec0", .kind = "macsec", .parent = 1), NULL },
		{ ETHER(.name = "macsec1", .kind = "macsec", .parent = 1, .offload = true),
		  "on top of another device" },
		/* A parent without the programs sees nothing. */
		{ { .type = ARPHRD_NONE, .name = "tun0", .kind = "tun" }, "not Ethernet" },
		{ ETHER(.name = "ipvlan1", .kind = "ipvlan", .parent = 8), NULL },
	};

	(void)state;
	CHECK(cases, &all);
}

static void test_stacks(void **state)
{
	static const struct expected cases[] = {
		{ ETHER(.name = "eth0", .master = 2), "bond slave" },
		{ ETHER(.name = "bond0", .kind = "bond", .master = 3), "bridge port" },
		{ ETHER(.name = "br0", .kind = "bridge"), NULL },
		{ ETHER(.name = "br0.5", .kind = "vlan", .parent = 3), NULL },
		{ ETHER(.name = "mac0", .kind = "macvlan", .parent = 4), "on top of another device" },
		{ ETHER(.name = "mac1", .kind = "macvlan", .parent = 3, .master = 7), "in a VRF" },
		{ ETHER(.name = "vrf0", .kind = "vrf"), "VRF" },
		/* What is left out with the device above it is not read, either. */
		{ ETHER(.name = "eth1", .master = 9), "bridge port" },
		{ ETHER(.name = "br1", .kind = "bridge", .master = 7), "in a VRF" },
	};

	(void)state;
	CHECK(cases, &all);
}

static void test_names(void **state)
{
	static const char *const ends[] = { "eth0", "br0" }, *const middle[] = { "bond0", "lo" },
				 *const low[] = { "eth0" };
	static const struct links_wanted want_ends = { ends, 2 }, want_middle = { middle, 2 }, want_low = { low, 1 };
	static const struct links_wanted want_none = { ends, 0 };
	struct expected cases[] = {
		{ ETHER(.name = "eth0", .master = 2), "bond slave" },
		{ ETHER(.name = "bond0", .kind = "bond", .master = 3), "not asked for" },
		{ ETHER(.name = "br0", .kind = "bridge"), NULL },
		{ { .type = ARPHRD_LOOPBACK, .name = "lo" }, "not asked for" },
	};

	(void)state;
	/* The bridge sees it two floors up. */
	CHECK(cases, &want_ends);

	cases[0].why = cases[2].why = "not asked for";
	cases[1].why = cases[3].why = NULL;
	CHECK(cases, &want_middle);

	cases[0].why = NULL;
	cases[1].why = cases[2].why = cases[3].why = "not asked for";
	CHECK(cases, &want_low);

	cases[0].why = "not asked for";
	CHECK(cases, &want_none);
}

static void check_named(const struct links_wanted *wanted, const bool *is_named)
{
	static const struct device devices[] = {
		ETHER(.name = "eth0", .ifindex = 1, .master = 2),
		ETHER(.name = "vrf0", .ifindex = 2, .kind = "vrf"),
		ETHER(.name = "eth1", .ifindex = 3, .master = 4),
		ETHER(.name = "br0", .ifindex = 4, .kind = "bridge"),
		{ .type = ARPHRD_NONE, .name = "tun0", .ifindex = 5, .kind = "tun" },
	};
	const size_t n = sizeof(devices) / sizeof(*devices);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(links_named(&devices[i], devices, n, wanted), is_named[i]);
}

/* What no program can be on is named, too, and a VRF by its devices. A bridge sees its ports' packets under its own name. */
static void test_named(void **state)
{
	static const char *const slave[] = { "eth0" }, *const port[] = { "eth1" }, *const tun[] = { "tun0" };

	(void)state;
	check_named(&all, (const bool[]){ true, true, true, true, true });
	check_named(&(struct links_wanted){ slave, 1 }, (const bool[]){ true, true, false, false, false });
	check_named(&(struct links_wanted){ port, 1 }, (const bool[]){ false, false, true, false, false });
	check_named(&(struct links_wanted){ tun, 1 }, (const bool[]){ false, false, false, false, true });
	check_named(&(struct links_wanted){ tun, 0 }, (const bool[]){ false, false, false, false, false });
}

/* No such thing exists, but a dump is not atomic. */
static void test_circle(void **state)
{
	static const struct expected cases[] = {
		{ { .type = ARPHRD_NONE, .name = "a", .kind = "bond", .master = 2 }, "not Ethernet" },
		{ { .type = ARPHRD_NONE, .name = "b", .kind = "bond", .master = 1 }, "not Ethernet" },
		{ ETHER(.name = "c", .master = 1), NULL },
		{ ETHER(.name = "d", .master = 99), NULL },
	};

	(void)state;
	CHECK(cases, &all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),  cmocka_unit_test(test_masters), cmocka_unit_test(test_parents),
		cmocka_unit_test(test_stacks), cmocka_unit_test(test_names),   cmocka_unit_test(test_named),
		cmocka_unit_test(test_circle),
	};

	return cmocka_run_group_tests_name("links", tests, NULL, NULL);
}
