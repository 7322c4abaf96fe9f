/* SPDX-License-Identifier: GPL-2.0 */
#include "weir/abi/abi.h"
#include "weir/base/subject.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../array_size.h"

/* Key 00 01 .. 0f; entry n is the hash of the n bytes 00 01 .. These are the vectors of the authors' reference implementation. */
static const __u64 key[2] = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL };
static const __u64 vectors[64] = {
	0x726fdb47dd0e0e31ULL, 0x74f839c593dc67fdULL, 0x0d6c8009d9a94f5aULL, 0x85676696d7fb7e2dULL,
	0xcf2794e0277187b7ULL, 0x18765564cd99a68dULL, 0xcbc9466e58fee3ceULL, 0xab0200f58b01d137ULL,
	0x93f5f5799a932462ULL, 0x9e0082df0ba9e4b0ULL, 0x7a5dbbc594ddb9f3ULL, 0xf4b32f46226bada7ULL,
	0x751e8fbc860ee5fbULL, 0x14ea5627c0843d90ULL, 0xf723ca908e7af2eeULL, 0xa129ca6149be45e5ULL,
	0x3f2acc7f57c29bdbULL, 0x699ae9f52cbe4794ULL, 0x4bc1b3f0968dd39cULL, 0xbb6dc91da77961bdULL,
	0xbed65cf21aa2ee98ULL, 0xd0f2cbb02e3b67c7ULL, 0x93536795e3a33e88ULL, 0xa80c038ccd5ccec8ULL,
	0xb8ad50c6f649af94ULL, 0xbce192de8a85b8eaULL, 0x17d835b85bbb15f3ULL, 0x2f2e6163076bcfadULL,
	0xde4daaaca71dc9a5ULL, 0xa6a2506687956571ULL, 0xad87a3535c49ef28ULL, 0x32d892fad841c342ULL,
	0x7127512f72f27cceULL, 0xa7f32346f95978e3ULL, 0x12e0b01abb051238ULL, 0x15e034d40fa197aeULL,
	0x314dffbe0815a3b4ULL, 0x027990f029623981ULL, 0xcadcd4e59ef40c4dULL, 0x9abfd8766a33735cULL,
	0x0e3ea96b5304a7d0ULL, 0xad0c42d6fc585992ULL, 0x187306c89bc215a9ULL, 0xd4a60abcf3792b95ULL,
	0xf935451de4f21df2ULL, 0xa9538f0419755787ULL, 0xdb9acddff56ca510ULL, 0xd06c98cd5c0975ebULL,
	0xe612a3cb9ecba951ULL, 0xc766e62cfcadaf96ULL, 0xee64435a9752fe72ULL, 0xa192d576b245165aULL,
	0x0a8787bf8ecb74b2ULL, 0x81b3e73d20b49b6fULL, 0x7fa8220ba3b2eceaULL, 0x245731c13ca42499ULL,
	0xb78dbfaf3a8d83bdULL, 0xea1ad565322a1a0bULL, 0x60e61c23a3795013ULL, 0x6606d7e446282b93ULL,
	0x6ca4ecb15c5f91e1ULL, 0x9f626da15c9625f3ULL, 0xe51b38608ef25f57ULL, 0x958a324ceb064572ULL,
};

static __u64 subject_of(__u8 kind, const void *name, size_t length)
{
	struct weir_subject_hash h;

	weir_subject_start(&h, key, kind);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&h, ((const __u8 *)name)[i]);
	return weir_subject_end(&h);
}

/* The kind is the message's first byte, so the vector of the empty message has no counterpart. */
static void test_vectors(void **state)
{
	__u8 message[64];

	(void)state;
	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = i;
	for (size_t n = 1; n < ARRAY_SIZE(vectors); n++)
		assert_int_equal(subject_of(message[0], message + 1, n - 1), vectors[n]);
}

/* One hash may be ended after each of its bytes, and goes on as if it had not been. */
static void test_end_changes_nothing(void **state)
{
	struct weir_subject_hash h;

	(void)state;
	weir_subject_start(&h, key, 0);
	for (size_t n = 1; n < ARRAY_SIZE(vectors); n++) {
		assert_int_equal(weir_subject_end(&h), vectors[n]);
		assert_int_equal(weir_subject_end(&h), vectors[n]);
		weir_subject_byte(&h, n);
	}
}

/* Any number of bytes at once, anywhere, is as one after the other. */
static void test_bytes_at_once(void **state)
{
	static const char text[] = "\x01twenty-three bytes \xff\x80\xc3";
	const size_t length = sizeof(text) - 1;

	(void)state;
	for (size_t first = 0; first <= 8; first++) {
		for (size_t n = 1; n <= 8; n++) {
			struct weir_subject_hash h;
			size_t at = first;

			weir_subject_start(&h, key, WEIR_NAME_USER);
			for (size_t i = 0; i < first; i++)
				weir_subject_byte(&h, text[i]);
			while (at < length) {
				size_t rest = length - at < n ? length - at : n;
				__u64 bytes = 0;

				memcpy(&bytes, text + at, rest);
				weir_subject_bytes(&h, htole64(bytes), rest);
				at += rest;
			}
			assert_int_equal(weir_subject_end(&h), subject_of(WEIR_NAME_USER, text, length));
		}
	}
}

static void test_characters(void **state)
{
	static const __u32 codes[] = { 0, 'a', 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff };
	static const char text[] = "\0a\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf";
	struct weir_subject_hash h;

	(void)state;
	weir_subject_start(&h, key, WEIR_NAME_USER);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		weir_subject_character(&h, codes[i]);
	assert_int_equal(weir_subject_end(&h), subject_of(WEIR_NAME_USER, text, sizeof(text) - 1));
}

static void test_kinds_differ(void **state)
{
	(void)state;
	assert_int_not_equal(subject_of(WEIR_NAME_USER, "ci", 2), subject_of(WEIR_NAME_NAMESPACE, "ci", 2));
}

/* The bytes behind every multiple of eight, and beyond 255, where only the length's low byte is hashed. */
static void test_long_names_differ(void **state)
{
	char name[600];
	__u64 subjects[sizeof(name)];

	(void)state;
	memset(name, 'x', sizeof(name));
	for (size_t n = 0; n < sizeof(name); n++) {
		subjects[n] = subject_of(WEIR_NAME_USER, name, n);
		for (size_t i = 0; i < n; i++)
			assert_int_not_equal(subjects[i], subjects[n]);
	}
	name[338] = 'y';
	assert_int_not_equal(subject_of(WEIR_NAME_USER, name, 339), subjects[339]);
}

/* Expected value: openssl mac SIPHASH of `a` and 2001:db8:0:1::, with the key above. */
static void test_address(void **state)
{
	static const __u8 address[WEIR_ADDRESS_BYTES] = { 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1 };
	__u64 subject = weir_subject_of_address(key, WEIR_NAME_ADDRESS, address);

	(void)state;
	assert_int_equal(subject, 0x8ce4de098e10e64cULL);
	assert_int_equal(subject, subject_of(WEIR_NAME_ADDRESS, address, sizeof(address)));
}

static void test_seed_matters(void **state)
{
	static const __u64 others[][2] = { { 0x0706050403020101ULL, 0x0f0e0d0c0b0a0908ULL },
					   { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0909ULL } };
	static const __u8 address[WEIR_ADDRESS_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_not_equal(weir_subject_of_address(others[i], WEIR_NAME_ADDRESS, address),
				     weir_subject_of_address(key, WEIR_NAME_ADDRESS, address));
}

/*
 * A hash of 0 becomes 1. The last xor decides, so a state is searched for whose end is 0: the compression is a
 * permutation, so it is run backwards from four words that xor to 0.
 */
static __u64 rotate_right(__u64 x, unsigned int bits)
{
	return x >> bits | x << (64 - bits);
}

static void round_back(__u64 v[4])
{
	v[2] = rotate_right(v[2], 32);
	v[3] = rotate_right(v[3] ^ v[0], 21);
	v[1] = rotate_right(v[1] ^ v[2], 17);
	v[0] -= v[3];
	v[2] -= v[1];
	v[0] = rotate_right(v[0], 32);
	v[3] = rotate_right(v[3] ^ v[2], 16);
	v[1] = rotate_right(v[1] ^ v[0], 13);
	v[2] -= v[3];
	v[0] -= v[1];
}

static void test_never_zero(void **state)
{
	struct weir_subject_hash h = { .state = { 1, 2, 3, 1 ^ 2 ^ 3 }, .length = 8 };
	__u64 last_word = 8ULL << 56;

	(void)state;
	for (int i = 0; i < 4; i++)
		round_back(h.state);
	h.state[2] ^= 0xff;
	h.state[0] ^= last_word;
	round_back(h.state);
	round_back(h.state);
	h.state[3] ^= last_word;
	assert_int_equal(weir_subject_end(&h), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),	      cmocka_unit_test(test_end_changes_nothing),
		cmocka_unit_test(test_bytes_at_once), cmocka_unit_test(test_characters),
		cmocka_unit_test(test_kinds_differ),  cmocka_unit_test(test_long_names_differ),
		cmocka_unit_test(test_address),	      cmocka_unit_test(test_seed_matters),
		cmocka_unit_test(test_never_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
