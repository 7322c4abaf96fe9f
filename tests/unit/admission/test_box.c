/* SPDX-License-Identifier: GPL-2.0 */
/* Whose box is it, and who may be put into it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weir/admission/box.h"

#define NOW_NS (5000 * WEIR_NS_PER_S)

static bool user_fits(const struct weir_box *box, __u64 now_ns)
{
	return weir_box_fits(box, WEIR_KEY_USER, now_ns);
}

static void of_one_user(void **state)
{
	struct weir_box box = {};

	(void)state;
	assert_true(weir_box_asked(&box, 1, NOW_NS));
	assert_false(weir_box_asked(&box, 1, NOW_NS + 2 * WEIR_BOX_NOTE_NS));
	assert_true(user_fits(&box, NOW_NS + 2));
}

static void of_several(void **state)
{
	__u64 then_ns = NOW_NS + WEIR_BOX_NOTE_NS + 1;
	struct weir_box box = {};

	(void)state;
	weir_box_asked(&box, 1, NOW_NS - 1);
	assert_true(weir_box_asked(&box, 2, NOW_NS));
	assert_false(user_fits(&box, NOW_NS));
	assert_false(user_fits(&box, NOW_NS - 1)); /* another CPU's clock */
	assert_false(user_fits(&box, NOW_NS + WEIR_BOX_OTHERS_NS));
	assert_true(user_fits(&box, NOW_NS + WEIR_BOX_OTHERS_NS + 1));
	/* They take turns: that is noted once a second. */
	assert_false(weir_box_asked(&box, 1, NOW_NS + WEIR_BOX_NOTE_NS));
	assert_true(weir_box_asked(&box, 1, then_ns));
	assert_false(user_fits(&box, then_ns + WEIR_BOX_OTHERS_NS));
	/* One of them alone is alone in the end. */
	for (int i = 0; i < 2 * 600; i++)
		weir_box_asked(&box, 2, then_ns + i * WEIR_NS_PER_S);
	assert_true(user_fits(&box, then_ns + 2 * WEIR_BOX_OTHERS_NS));
}

static void of_somebody_exempt(void **state)
{
	struct weir_box box = {};

	(void)state;
	weir_box_asked(&box, 1, NOW_NS);
	assert_true(weir_box_exempt(&box, NOW_NS));
	assert_false(weir_box_exempt(&box, NOW_NS + WEIR_BOX_NOTE_NS));
	assert_false(user_fits(&box, NOW_NS + WEIR_BOX_OTHERS_NS));
	assert_false(weir_box_fits(&box, WEIR_KEY_SOURCE, NOW_NS + WEIR_BOX_OTHERS_NS));
	assert_true(weir_box_fits(&box, WEIR_KEY_SOURCE, NOW_NS + WEIR_BOX_OTHERS_NS + 1));
	assert_true(user_fits(&box, NOW_NS + WEIR_BOX_OTHERS_NS + 1));
}

/* An address is one's own, whoever asks from there. What else limits charge is nobody's address. */
static void keys(void **state)
{
	struct weir_box box = { .user = 1, .others_ns = NOW_NS };

	(void)state;
	assert_true(weir_box_fits(&box, WEIR_KEY_SOURCE, NOW_NS));
	assert_false(weir_box_fits(&box, WEIR_KEY_USER, NOW_NS));
	box.others_ns = 0;
	for (__u32 key = 0; key < 1U << WEIR_KEY_PARTS; key++)
		assert_int_equal(weir_box_fits(&box, key, NOW_NS), key == WEIR_KEY_SOURCE || key == WEIR_KEY_USER);
}

static void names(void **state)
{
	struct weir_box box = {};

	(void)state;
	assert_false(weir_box_name(&box, 0, 0));
	assert_true(weir_box_name(&box, 1, 7));
	assert_false(weir_box_name(&box, 1, 7));
	assert_true(weir_box_name(&box, 1, 8));
	assert_true(weir_box_name(&box, 0, 0));
	assert_int_equal(box.limit + box.subject, 0);
}

/* Of each change of a box or its key, the seal is another; of nothing there is none. */
static void seals(void **state)
{
	struct weir_box_key key = { .address = { 1 }, .server = 2 };
	struct weir_box box = { .user = 1, .others_ns = 2, .exempt_ns = 3, .subject = 4, .limit = 5 }, empty = {};
	__u64 seal = weir_box_seal(&box, &key);

	(void)state;
	for (size_t i = 0; i < offsetof(struct weir_box, seal); i++) {
		struct weir_box other;

		memcpy(&other, &box, sizeof(other));
		((__u8 *)&other)[i] ^= 1;
		assert_true(weir_box_seal(&other, &key) != seal);
	}
	for (size_t i = 0; i < sizeof(key); i++) {
		struct weir_box_key other;

		memcpy(&other, &key, sizeof(other));
		((__u8 *)&other)[i] ^= 1;
		assert_true(weir_box_seal(&box, &other) != seal);
	}
	assert_true(weir_box_seal(&empty, &key) != empty.seal);
}

static void addresses(void **state)
{
	static const __u8 ipv4[16] = { [10] = 0xff, 0xff, 192, 0, 2, 7 }, ipv6[16] = { 0x20, 1, [15] = 7 };
	struct weir_box_key key = weir_box_key(3, ipv4);

	(void)state;
	assert_memory_equal(key.address, ipv4, 16);
	assert_int_equal(key.server, 3);
	key = weir_box_key(3, ipv6);
	assert_memory_equal(key.address, ipv6, 8);
	assert_int_equal(key.address[15], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_one_user), cmocka_unit_test(of_several), cmocka_unit_test(of_somebody_exempt),
		cmocka_unit_test(keys),	       cmocka_unit_test(names),	     cmocka_unit_test(seals),
		cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests_name("box", tests, NULL, NULL);
}
