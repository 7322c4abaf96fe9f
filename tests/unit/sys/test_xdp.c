/* SPDX-License-Identifier: GPL-2.0 */
/* Where a device's connections are refused: at XDP, or at tc, and why. */
#include <linux/if_arp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sys/links.h"
#include "sys/xdp.h"
#include "weir/abi/abi.h"

#define HARDWARE                      \
	{                             \
		.type = ARPHRD_ETHER, \
	}
#define OURS(mode_)                                                        \
	{                                                                  \
		.mode = (mode_), .ours = true, .id = 7, .name = "weir_xdp" \
	}

static const struct test_case {
	enum xdp_asked asked;
	struct device device;
	struct xdp_owner there;
	enum xdp_mode mode;
	const char *why; /* a part of it */
} cases[] = {
	{ XDP_OFF, HARDWARE, { 0 }, XDP_NONE, "off" },
	{ XDP_OFF, HARDWARE, OURS(XDP_MODE_NATIVE), XDP_NONE, "off" },
	{ XDP_AUTO, HARDWARE, { 0 }, XDP_MODE_NATIVE, "" },
	{ XDP_AUTO, { .type = ARPHRD_ETHER, .up = true }, { 0 }, XDP_NONE, "reset" },
	{ XDP_AUTO, { .type = ARPHRD_ETHER, .up = true }, OURS(XDP_MODE_NATIVE), XDP_MODE_NATIVE, "" },
	{ XDP_AUTO, { .type = ARPHRD_ETHER, .up = true }, OURS(XDP_MODE_GENERIC), XDP_NONE, "reset" },
	{ XDP_AUTO, { .type = ARPHRD_ETHER, .kind = "veth" }, { 0 }, XDP_NONE, "virtual" },
	{ XDP_GENERIC, { .type = ARPHRD_ETHER, .kind = "veth", .up = true }, { 0 }, XDP_MODE_GENERIC, "" },
	{ XDP_GENERIC, HARDWARE, OURS(XDP_MODE_NATIVE), XDP_MODE_GENERIC, "" },
	{ XDP_NATIVE, { .type = ARPHRD_ETHER, .kind = "veth", .up = true }, { 0 }, XDP_MODE_NATIVE, "" },
	{ XDP_NATIVE, { .type = ARPHRD_LOOPBACK, .up = true }, { 0 }, XDP_NONE, "loopback" },
	{ XDP_NATIVE, HARDWARE, { .mode = XDP_MODE_GENERIC, .id = 9, .name = "theirs" }, XDP_NONE, "theirs (id 9)" },
	{ XDP_AUTO, HARDWARE, { .mode = XDP_MODE_NATIVE, .id = 9, .name = "theirs" }, XDP_NONE, "theirs (id 9)" },
};

static void test_choices(void **state)
{
	struct xdp_choice choice;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		xdp_choose(cases[i].asked, &cases[i].device, &cases[i].there, &choice);
		assert_int_equal(choice.mode, cases[i].mode);
		assert_non_null(strstr(choice.why, cases[i].why));
		assert_int_equal(!choice.why[0], !cases[i].why[0]);
	}
}

/* Tags of other kinds, numbers and orders are other ones; a priority is none. */
static void test_tags(void **state)
{
	__u32 five = weir_device_tags(0, 5, false);

	(void)state;
	assert_int_equal(weir_device_tags(0, 0, false), 0);
	assert_int_equal(weir_device_tags(0, 0xe000, true), 0);
	assert_int_equal(weir_device_tags(0, 0xe005, false), five);
	assert_int_not_equal(weir_device_tags(0, 5, true), five);
	assert_int_equal(weir_device_tags(five, 0, false), five);
	assert_int_not_equal(weir_device_tags(five, 7, false),
			     weir_device_tags(weir_device_tags(0, 7, false), 5, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_tags),
	};

	return cmocka_run_group_tests_name("xdp", tests, NULL, NULL);
}
