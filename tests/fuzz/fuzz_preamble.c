/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection's first bytes as a preamble: byte by byte, and again with what may be skipped in steps. A line's address
 * is what libc reads, and a receiver that looks for the line's end finds it where the machine does.
 */
#include "weir/http/preamble.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* step 0: never skips. Returns the bytes used. */
static size_t run(struct weir_preamble *p, enum weir_frame_event *event, const uint8_t *data, size_t size, size_t step)
{
	size_t used = 0;

	*event = WEIR_FRAME_MORE;
	weir_preamble_start(p);
	while (used < size && *event == WEIR_FRAME_MORE) {
		size_t n = weir_preamble_skippable(p), left = size - used;

		assert(weir_preamble_awaited(p));
		n = n < left ? n : left;
		n = n < step ? n : step;
		*event = n ? weir_preamble_skip(p, n) : weir_preamble_byte(p, data[used]);
		used += n ? n : 1;
	}
	return used;
}

static void check_line(const struct weir_preamble *p, const char *line, size_t length)
{
	char text[WEIR_PREAMBLE_LINE_MAX + 1] = "", family, source[64], dest[64];
	unsigned int ports[2];
	uint8_t address[16] = { [10] = 0xff, 0xff };

	assert(length <= WEIR_PREAMBLE_LINE_MAX && !memcmp(line + length - 2, "\r\n", 2));
	assert(!memchr(line, '\n', length - 1) && !memchr(line, '\r', length - 2));
	memcpy(text, line, length);
	if (!p->given) {
		assert(!strncmp(text, "PROXY UNKNOWN", 13));
		return;
	}
	assert(sscanf(text, "PROXY TCP%c %63s %63s %u %u", &family, source, dest, &ports[0], &ports[1]) == 5);
	assert(ports[0] <= 65535 && ports[1] <= 65535);
	if (family == '4')
		assert(inet_pton(AF_INET, source, address + 12) == 1);
	else
		assert(inet_pton(AF_INET6, source, address) == 1);
	assert(!memcmp(address, p->address, 16));
}

static void check_binary(const struct weir_preamble *p, const uint8_t *data, size_t length)
{
	assert(length == 16 + ((size_t)data[14] << 8 | data[15]));
	if (p->given && data[13] == 0x11)
		assert(!memcmp(p->address + 12, data + 16, 4));
	else if (p->given)
		assert(!memcmp(p->address, data + 16, 16));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = { 1, 3, SIZE_MAX };
	enum weir_frame_event event, other_event;
	struct weir_preamble p, other;
	size_t used = run(&p, &event, data, size, 0);

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert(run(&other, &other_event, data, size, steps[i]) == used && event == other_event);
		assert(!memcmp(&p, &other, sizeof(p)));
	}
	if (event == WEIR_FRAME_LOST)
		assert(!p.given && !weir_preamble_awaited(&p));
	if (event == WEIR_FRAME_MESSAGE && data[0] == 'P')
		check_line(&p, (const char *)data, used);
	else if (event == WEIR_FRAME_MESSAGE)
		check_binary(&p, data, used);
	return 0;
}
