/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A binary of any content: it is refused in words, or all findings come to an end. The first byte says which version's
 * fixture the rest changes, and whether its Handle has its arguments in registers. The next two bytes cut the file off. Changes follow: two
 * bytes say where, one how many bytes to put there, and then these come. If the first byte is 0x80 or more, the rest is the file.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/golang/golang_fixture.h"
#include "golang/show.h"

#define VERSIONS (GOLANG_NEWEST - GOLANG_OLDEST + 1)
#define RAW 0x80

static struct golang_fixture fixture;

static void look(const void *bytes, size_t size)
{
	int fd = golang_fixture_open(bytes, size);
	struct error err = { 0 };
	struct golang *go = NULL;
	json_t *json;
	int ret = golang_open(fd, &go, &err);

	assert(!ret == !err.text[0] && !ret == !!go);
	if (!ret) {
		json = golang_to_json(go);
		assert(json);
		json_decref(json);
		golang_close(go);
	}
	close(fd);
}

static void change(const uint8_t *data, size_t size)
{
	while (size > 3) {
		size_t at = (data[0] | (size_t)data[1] << 8) % sizeof(fixture.file), n = data[2] % 16;

		data += 3;
		size -= 3;
		n = n < size ? n : size;
		n = n < sizeof(fixture.file) - at ? n : sizeof(fixture.file) - at;
		memcpy(fixture.file + at, data, n);
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct golang_fixture_want want = { 0 };
	size_t cut;

	if (size < 3)
		return 0;
	if (data[0] >= RAW) {
		look(data + 1, size - 1);
		return 0;
	}
	want.minor = GOLANG_OLDEST + data[0] % VERSIONS;
	if (data[0] / VERSIONS % 2) {
		want.handle = "\x4c\x89\x5c\x24\x40"; /* MOVQ R11, 64(SP) */
		want.handle_size = 5;
	}
	cut = data[1] | (size_t)data[2] << 8;
	golang_fixture_make(&want, &fixture);
	change(data + 3, size - 3);
	look(fixture.file, cut ? cut % sizeof(fixture.file) : sizeof(fixture.file));
	return 0;
}
