/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Heads that come again (bpf/head_cache.h) in packets of real sockets: such a payload stands apart from its headers, as that of a packet that
 * the kernel is told to run a program on does not.
 */
#include "ends.h"
#include "heads.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "../array_size.h"
#include "weir.skel.h"
#include "weir/http/head_cache.h"

static int setup(void **state)
{
	int ret = attached_setup(state);

	done(datapath_links_sync(dp, NULL, &error));
	heads_look();
	return ret ?: call_inside(ends_make, NULL);
}

static int teardown(void **state)
{
	ends_close();
	return attached_teardown(state);
}

static __u64 ask(const char *head, const char *answer)
{
	ends_say(true, head);
	ends_say(false, answer);
	return conn_look(false).request_digest;
}

static void test_found(void **state)
{
	static const char head[] = "GET /a HTTP/1.1\r\nHost: x\r\nX-Remote-User: alice\r\n\r\n";

	(void)state;
	for (int i = 0; i < SAYINGS; i++)
		assert_int_equal(ask(head, ok), head_digest(head));
	assert_true(request_is_kept(head));
	assert_true(answer_is_kept(ok));
	requests_poison();
	assert_int_not_equal(ask(head, ok), head_digest(head));
	requests_poison();
	assert_int_equal(ask(head, ok), head_digest(head));
	assert_int_equal(counter(WEIR_PASSED), SAYINGS + 2);
}

/* One below, at, and above the bounds of what is kept, and of what is copied at once. */
static void test_lengths(void **state)
{
	static const size_t lengths[] = { WEIR_CACHE_MIN - 1, WEIR_CACHE_MIN, WEIR_CACHE_MIN + 1, 255, 256, 257,
					  WEIR_CACHE_MAX - 1, WEIR_CACHE_MAX, WEIR_CACHE_MAX + 1, 1400 };
	char head[2048], answer[2048];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		head_fill(head, lengths[i], "GET / HTTP/1.1\r\n");
		head_fill(answer, lengths[i], "HTTP/1.1 204 \r\n");
		for (int k = 0; k < SAYINGS; k++)
			assert_int_equal(ask(head, answer), head_digest(head));
		assert_int_equal(request_is_kept(head), lengths[i] >= WEIR_CACHE_MIN && lengths[i] <= WEIR_CACHE_MAX);
		assert_int_equal(answer_is_kept(answer), lengths[i] >= WEIR_CACHE_MIN && lengths[i] <= WEIR_CACHE_MAX);
	}
}

/* What was read may be a token: it is in the programs' memory no more when the packet has passed. */
static void test_nothing_is_left(void **state)
{
	const struct bpf_map *works = dp->skeleton->maps.works;
	const size_t size = (bpf_map__value_size(works) + 7) / 8 * 8 * libbpf_num_possible_cpus();
	static const char secret[] = "a-token-that-is-nobodys-business";
	char head[2048], *memory = malloc(size);

	(void)state;
	assert_non_null(memory);
	for (size_t n = 100; n < 800; n += 50) {
		head_fill(head, n, "GET /a HTTP/1.1\r\nHost: x\r\n");
		memcpy(head + n - 4 - strlen(secret), secret, strlen(secret));
		for (int i = 0; i < 3; i++)
			ask(head, ok);
		for (__u32 hook = 0; !bpf_map_lookup_elem(bpf_map__fd(works), &hook, memory); hook++)
			assert_null(memmem(memory, size, secret, 8));
	}
	free(memory);
}

#define APART(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

/* A program of its own: it has the programs on devices. */
int main(void)
{
	const struct CMUnitTest tests[] = { APART(found), APART(lengths), APART(nothing_is_left) };

	return cmocka_run_group_tests_name("head_apart", tests, attached_open, attached_close);
}
