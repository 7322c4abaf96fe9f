/* SPDX-License-Identifier: GPL-2.0 */
/* The programs on real devices that come, go and are stacked on each other; and what conntrack does on loopback. */
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "datapath/remains.h"
#include "datapath_fixture.h"

static struct datapath_link link_of(struct datapath *dp, const char *device)
{
	struct datapath_link *links, found = { .how = "not there" };
	int n = datapath_links(dp, &links, &error);

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		if (!strcmp(links[i].name, device))
			found = links[i];
	}
	free(links);
	return found;
}

static bool attached(struct datapath *dp, const char *device)
{
	bool both = runs(dp, device, ATTACH_INGRESS) && runs(dp, device, ATTACH_EGRESS);

	assert_int_equal(both, runs(dp, device, ATTACH_INGRESS) || runs(dp, device, ATTACH_EGRESS));
	assert_int_equal(both, link_of(dp, device).attached);
	return both;
}

static void sync_all(struct datapath *dp)
{
	done(datapath_links_sync(dp, NULL, &error));
}

/* By the names of what is pinned alone: the way out when another version has made it. */
static void check_remains(enum attach_way way)
{
	struct datapath *dp = open_datapath(1024);
	char *dir = strdup(dp->dir);
	bool others;

	inside("tc qdisc add dev veth0 clsact 2>/dev/null");
	others = !inside("tc qdisc show dev veth0 | grep -q clsact");
	if (way)
		dp->attach.way = way;
	sync_all(dp);
	datapath_pace(dp, true, NULL); /* where the kernel can */
	assert_true(attached(dp, "lo") && attached(dp, "veth0"));
	assert_int_equal(remains_remove(dir, test_netns, &error), -EBUSY);
	agent_dies();
	datapath_close(dp);
	done(remains_remove(dir, test_netns, &error));
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_not_equal(inside("tc qdisc show dev lo | grep -q clsact"), 0);
	assert_int_equal(!inside("tc qdisc show dev veth0 | grep -q clsact"), others);
	assert_int_not_equal(inside("tc filter show dev veth0 ingress | grep -q weir"), 0);
	assert_int_not_equal(inside("ip link show weir-hold 2>/dev/null | grep -q weir"), 0);
	done(remains_remove(dir, test_netns, &error));
	free(dir);
}

static void test_remains(void **state)
{
	(void)state;
	assert_int_equal(inside("ip link add veth0 type veth peer name veth1"), 0);
	check_remains(ATTACH_UNKNOWN);
	check_remains(ATTACH_CLSACT);
	inside("ip link del veth0");
}

static int devices_teardown(void **state)
{
	inside("for d in veth0 veth2 br0 mac0; do ip link del $d; done 2>/dev/null");
	return datapath_teardown(state);
}

static bool monitor_readable(struct datapath *dp)
{
	struct pollfd wait = { .fd = datapath_netlink_fd(dp), .events = POLLIN };

	return poll(&wait, 1, 0) == 1;
}

static void test_links_follow_devices(void **state)
{
	struct datapath *dp = *state;
	__u32 ifindex;

	assert_string_equal(link_of(dp, "lo").how, "not there");
	sync_all(dp);
	assert_true(attached(dp, "lo"));
	assert_string_equal(link_of(dp, "lo").how, dp->attach.way == ATTACH_TCX ? "tcx" : "clsact");
	assert_false(monitor_readable(dp));

	assert_int_equal(inside("ip link add veth0 type veth peer name veth1"), 0);
	assert_true(monitor_readable(dp));
	sync_all(dp);
	assert_false(monitor_readable(dp));
	assert_true(attached(dp, "veth0"));
	assert_true(attached(dp, "veth1"));
	ifindex = link_of(dp, "veth0").ifindex;
	assert_int_equal(ifindex, ifindex_of("veth0"));
	if (dp->attach.way == ATTACH_TCX) {
		assert_true(pinned("link-%u-ingress", ifindex));
		assert_true(pinned("link-%u-egress", ifindex));
	}

	/* Another device under the number of one that is gone. */
	assert_int_equal(inside("ip link del veth0"), 0);
	assert_int_equal(inside("ip link add name veth2 index %u type veth peer name veth3", ifindex), 0);
	assert_int_equal(ifindex_of("veth2"), ifindex);
	assert_false(runs(dp, "veth2", ATTACH_INGRESS));
	sync_all(dp);
	assert_true(attached(dp, "veth2"));

	assert_int_equal(inside("ip link del veth2"), 0);
	sync_all(dp);
	assert_false(pinned("link-%u-ingress", ifindex));
	assert_false(pinned("link-%u-egress", ifindex));
	assert_false(pinned("clsact-%u", ifindex));
	assert_string_equal(link_of(dp, "veth2").how, "not there");
}

/* A link's descriptor. */
static int attach_ingress_to_egress(void *arg)
{
	struct datapath *dp = arg;

	return bpf_link_create(dp->attach.program[ATTACH_INGRESS].fd, if_nametoindex("lo"), 47 /* tcx */, NULL);
}

static void test_links_repair(void **state)
{
	struct datapath *dp = *state;
	char name[64];
	int other;

	sync_all(dp);
	if (dp->attach.way != ATTACH_TCX)
		skip();
	/* As if killed between the two directions, or between detaching and unpinning. */
	snprintf(name, sizeof(name), "link-%u-ingress", ifindex_of("lo"));
	assert_int_equal(detach_pinned(name), 0);
	assert_int_equal(unpin(name), 0);
	sync_all(dp);
	assert_true(pinned("%s", name));
	assert_true(attached(dp, "lo"));
	snprintf(name, sizeof(name), "link-%u-egress", ifindex_of("lo"));
	assert_int_equal(detach_pinned(name), 0);
	assert_false(runs(dp, "lo", ATTACH_EGRESS));
	/* Someone else's program there does not pass for ours. */
	other = call_inside(attach_ingress_to_egress, dp);
	assert_true(other >= 0);
	sync_all(dp);
	assert_true(attached(dp, "lo"));
	close(other);
}

static void test_links_leave_a_device_that_moved_away(void **state)
{
	struct datapath *dp = *state;
	__u32 ifindex;

	assert_int_equal(inside("ip link add veth0 type veth peer name veth1"), 0);
	sync_all(dp);
	ifindex = ifindex_of("veth1");
	assert_int_equal(inside("unshare -n sleep 1000 & echo $! >/run/weir-test-pid"), 0);
	assert_int_equal(inside("until ip link set veth1 netns $(cat /run/weir-test-pid) 2>/dev/null && "
				"! ip link show veth1 >/dev/null 2>&1; do :; done"),
			 0);
	sync_all(dp);
	assert_false(pinned("link-%u-ingress", ifindex));
	assert_false(pinned("clsact-%u", ifindex));
	assert_true(attached(dp, "veth0"));
	assert_int_equal(inside("kill $(cat /run/weir-test-pid); rm /run/weir-test-pid"), 0);
}

static void test_bridge_port_is_left_to_the_bridge(void **state)
{
	struct datapath *dp = *state;
	const char *const port[] = { "veth0" };
	struct datapath_interfaces only_port = { .names = port, .n = 1 };

	assert_int_equal(inside("ip link add veth0 type veth peer name veth1 && ip link add br0 type bridge"), 0);
	sync_all(dp);
	assert_true(attached(dp, "veth0"));
	assert_true(attached(dp, "br0"));
	assert_int_equal(inside("ip link set veth0 master br0"), 0);
	sync_all(dp);
	assert_false(attached(dp, "veth0"));
	assert_string_equal(link_of(dp, "veth0").how, "bridge port");
	assert_true(attached(dp, "veth1"));
	assert_true(attached(dp, "br0"));

	/* Where the bridge is not asked for, its port is the only one to see the packets. */
	done(datapath_links_sync(dp, &only_port, &error));
	assert_true(attached(dp, "veth0"));
	assert_false(attached(dp, "br0"));
	assert_false(attached(dp, "lo"));
	assert_string_equal(link_of(dp, "lo").how, "not asked for");

	sync_all(dp);
	assert_int_equal(inside("ip link set veth0 nomaster"), 0);
	sync_all(dp);
	assert_true(attached(dp, "veth0"));
}

static void test_macvlan_is_left_to_its_parent(void **state)
{
	struct datapath *dp = *state;

	assert_int_equal(
		inside("ip link add veth0 type veth peer name veth1 && ip link add mac0 link veth0 type macvlan"), 0);
	sync_all(dp);
	assert_true(attached(dp, "veth0"));
	assert_false(attached(dp, "mac0"));
	assert_string_equal(link_of(dp, "mac0").how, "on top of another device");
}

static void test_tunnel_is_left_out(void **state)
{
	struct datapath *dp = *state;

	if (inside("ip tuntap add dev tun9 mode tun 2>/dev/null"))
		skip();
	sync_all(dp);
	assert_false(attached(dp, "tun9"));
	assert_string_equal(link_of(dp, "tun9").how, "not Ethernet");
	assert_int_equal(inside("ip tuntap del dev tun9 mode tun"), 0);
}

static bool named(struct datapath *dp, __u32 ifindex)
{
	__u8 value;

	return !bpf_map_lookup_elem(dp->maps.named_devices, &ifindex, &value);
}

/* What others have written there goes. Where all devices are meant, none is named. */
static void test_named_devices(void **state)
{
	static const char *const names[] = { "lo", "veth0", "nowhere" };
	const struct datapath_interfaces wanted = { .names = names, .n = 3 };
	struct datapath *dp = *state;
	const __u32 stranger = 12345;
	__u32 ours;

	assert_int_equal(inside("ip link add veth0 type veth peer name veth1"), 0);
	done(datapath_links_sync(dp, &wanted, &error));
	ours = ifindex_of("veth0");
	assert_true(named(dp, 1) && named(dp, ours) && !named(dp, ifindex_of("veth1")));

	assert_int_equal(bpf_map_update_elem(dp->maps.named_devices, &stranger, &(__u8){ 0 }, BPF_ANY), 0);
	assert_int_equal(bpf_map_delete_elem(dp->maps.named_devices, &ours), 0);
	done(datapath_links_sync(dp, &wanted, &error));
	assert_true(named(dp, 1) && named(dp, ours) && !named(dp, stranger));

	assert_int_equal(inside("ip link del veth0"), 0);
	done(datapath_links_sync(dp, &wanted, &error));
	assert_true(named(dp, 1) && !named(dp, ours));
	sync_all(dp);
	assert_false(named(dp, 1));
}

static void test_remove_takes_everything_off(void **state)
{
	struct datapath *dp = *state;
	__u32 ids[ATTACH_DIRECTIONS] = { dp->attach.program[0].id, dp->attach.program[1].id };

	assert_int_equal(inside("ip link add veth0 type veth peer name veth1"), 0);
	sync_all(dp);
	done(datapath_remove(dp, &error));
	assert_false(runs(dp, "lo", ATTACH_INGRESS));
	assert_false(runs(dp, "veth0", ATTACH_EGRESS));
	assert_false(pinned("settings"));
	done(datapath_remove(dp, &error));
	datapath_close(dp);
	for (int d = 0; d < ATTACH_DIRECTIONS; d++)
		assert_true(program_is_gone(ids[d]));
	*state = open_datapath(0);
}

/* --- kernels without tcx */

static int filters(const char *device)
{
	return inside("tc filter show dev %s ingress | grep -q weir_ingress && "
		      "tc filter show dev %s egress | grep -q weir_egress",
		      device, device);
}

static int qdisc(const char *device)
{
	return inside("tc qdisc show dev %s | grep -q clsact", device);
}

static void test_clsact(void **state)
{
	struct datapath *dp = *state, *again;
	__u32 lo;

	dp->attach.way = ATTACH_CLSACT;
	assert_int_equal(inside("ip link add veth0 type veth peer name veth1"), 0);
	assert_int_equal(inside("tc qdisc add dev veth1 clsact"), 0);
	lo = ifindex_of("lo");
	sync_all(dp);
	sync_all(dp);
	assert_string_equal(link_of(dp, "lo").how, "clsact");
	assert_true(link_of(dp, "lo").attached);
	assert_int_equal(filters("lo"), 0);
	assert_int_equal(filters("veth1"), 0);
	assert_true(pinned("qdisc-%u", lo));
	assert_false(pinned("qdisc-%u", ifindex_of("veth1")));
	assert_false(pinned("link-%u-ingress", lo));

	/* Taken over by opening, before anything is synchronised. */
	again = open_datapath(0);
	assert_int_equal(inside("tc filter show dev lo ingress | grep -q 'id %u '",
				again->attach.program[ATTACH_INGRESS].id),
			 0);
	assert_int_equal(inside("tc filter show dev lo ingress | grep -c weir_ingress | grep -qx 1"), 0);
	datapath_close(dp);
	*state = again;

	/* Someone else's filter or qdisc stays. */
	assert_int_equal(
		inside("tc filter add dev veth0 ingress protocol all prio 7 matchall action pass 2>/dev/null || "
		       "tc filter add dev veth0 ingress protocol all prio 7 bpf da object-pinned %s/prog-egress",
		       again->dir),
		0);
	done(datapath_remove(again, &error));
	assert_int_not_equal(qdisc("lo"), 0);
	assert_int_not_equal(filters("lo"), 0);
	assert_int_equal(qdisc("veth1"), 0);
	assert_int_not_equal(filters("veth1"), 0);
	assert_int_equal(qdisc("veth0"), 0);
	assert_int_not_equal(inside("tc filter show dev veth0 ingress | grep -q weir_ingress"), 0);
	assert_int_equal(inside("tc filter show dev veth0 ingress | grep -q ."), 0);
}

/* --- conntrack */

static void test_conntrack_on_loopback(void **state)
{
	struct datapath *dp = *state;

	assert_int_equal(datapath_loopback_tracked(dp, &error), 0);
	if (inside("command -v nft >/dev/null"))
		skip();
	assert_int_equal(inside("nft 'add table inet t; add chain inet t c { type filter hook input priority 0; }; "
				"add rule inet t c ct state invalid drop'"),
			 0);
	assert_int_equal(datapath_loopback_tracked(dp, &error), 1);
	assert_int_equal(inside("nft 'add chain inet t raw { type filter hook output priority raw; }; "
				"add rule inet t raw oif lo notrack'"),
			 0);
	assert_int_equal(datapath_loopback_tracked(dp, &error), 0);
	assert_int_equal(inside("nft flush chain inet t raw"), 0);
	/* Only IPv6 is tracked. */
	assert_int_equal(inside("nft 'add rule inet t raw meta nfproto ipv4 notrack'"), 0);
	assert_int_equal(datapath_loopback_tracked(dp, &error), 1);
	assert_int_equal(inside("nft delete table inet t"), 0);
	/* The kernel lets go of conntrack some time after the last rule that needs it. */
	for (int i = 0; i < 1000 && datapath_loopback_tracked(dp, &error); i++)
		usleep(5000);
	assert_int_equal(datapath_loopback_tracked(dp, &error), 0);

	/* Where no connection can be made there is no telling. */
	assert_int_equal(inside("ip link set lo down"), 0);
	assert_int_equal(datapath_loopback_tracked(dp, &error), -ETIMEDOUT);
	assert_int_equal(inside("ip link set lo up"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, datapath_setup, devices_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_links_follow_devices),
		TEST(test_links_repair),
		TEST(test_links_leave_a_device_that_moved_away),
		TEST(test_bridge_port_is_left_to_the_bridge),
		TEST(test_macvlan_is_left_to_its_parent),
		TEST(test_tunnel_is_left_out),
		TEST(test_named_devices),
		TEST(test_remove_takes_everything_off),
		TEST(test_clsact),
		TEST(test_conntrack_on_loopback),
		cmocka_unit_test(test_remains),
	};

	return cmocka_run_group_tests_name("datapath_links", tests, namespaces_setup, NULL);
}
