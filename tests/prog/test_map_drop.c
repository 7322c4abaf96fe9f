/* SPDX-License-Identifier: GPL-2.0 */
/* Many entries of a map are dropped at once, also where some are not there any more; no other is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "datapath/map_cursor.h"
#include "datapath/private.h"

#define MANY 5000 /* more than a batch that a cursor reads */

struct trie_key {
	__u32 bits, number;
};

static int full_hash(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "drop", sizeof(__u32), sizeof(__u64), MANY, NULL);

	assert_true(fd >= 0);
	for (__u32 key = 0; key < MANY; key++)
		assert_int_equal(bpf_map_update_elem(fd, &key, &(__u64){ key }, BPF_ANY), 0);
	return fd;
}

static void assert_there(int fd, __u32 key, bool there)
{
	__u64 value;

	if (!bpf_map_lookup_elem(fd, &key, &value) != there)
		fail_msg("%u is %sthere", key, there ? "not " : "");
}

/* Gone already: the first, the last, and two that follow each other. */
static void keys(void **state)
{
	const __u32 gone[] = { 0, 7, 8, 99 };
	CLEANUP_CLOSE int fd = full_hash();
	__u32 all[100];

	(void)state;
	for (__u32 i = 0; i < 100; i++)
		all[i] = i;
	for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++)
		assert_int_equal(bpf_map_delete_elem(fd, &gone[i]), 0);
	assert_int_equal(map_drop_keys(fd, all, 100, sizeof(*all)), 0);
	for (__u32 key = 0; key < MANY; key++)
		assert_there(fd, key, key >= 100);
	assert_int_equal(map_drop_keys(fd, all, 100, sizeof(*all)), 0);
	assert_int_equal(map_drop_keys(fd, all, 0, sizeof(*all)), 0);
	assert_int_equal(map_drop_keys(-1, all, 1, sizeof(*all)), -EBADF);
}

static bool is_odd(const void *key, const void *value, const void *arg)
{
	assert_int_equal(*(const __u32 *)key, *(const __u64 *)value);
	assert_null(arg);
	return *(const __u32 *)key % 2;
}

static void of_a_hash(void **state)
{
	CLEANUP_CLOSE int fd = full_hash();

	(void)state;
	assert_int_equal(map_drop_if(fd, sizeof(__u32), sizeof(__u64), is_odd, NULL), 0);
	for (__u32 key = 0; key < MANY; key++)
		assert_there(fd, key, key % 2 == 0);
}

static bool is_odd_prefix(const void *key, const void *value, const void *arg)
{
	(void)value;
	(void)arg;
	return ((const struct trie_key *)key)->number % 2;
}

static void of_a_trie(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	CLEANUP_CLOSE int fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "drop", sizeof(struct trie_key), sizeof(__u64),
					      MANY, &options);

	(void)state;
	assert_true(fd >= 0);
	for (__u32 i = 0; i < MANY; i++)
		assert_int_equal(bpf_map_update_elem(fd, &(struct trie_key){ 32, i }, &(__u64){ i }, BPF_ANY), 0);
	assert_int_equal(map_drop_of_trie_if(fd, sizeof(struct trie_key), sizeof(__u64), is_odd_prefix, NULL), 0);
	for (__u32 i = 0; i < MANY; i++) {
		__u64 value;

		assert_int_equal(!bpf_map_lookup_elem(fd, &(struct trie_key){ 32, i }, &value), i % 2 == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(keys), cmocka_unit_test(of_a_hash),
					    cmocka_unit_test(of_a_trie) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
