/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What weir makes of texts in a server's memory, whatever stands there. The first byte says as what the rest is read: a peer
 * (libc's idea of addresses decides), UTF-8 (jansson's), or a verb (the table of verbs).
 */
#include <arpa/inet.h>
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "weir/inside/peer.h"
#include "weir/inside/text.h"

#define X(name, text) [WEIR_VERB_##name] = (text),
static const char *const verbs[] = { WEIR_VERBS(X) };
#undef X
#define N_VERBS (sizeof(verbs) / sizeof(*verbs))

/* What is a peer at once is the same one a byte at a time. */
static bool read_peer(const uint8_t *data, size_t size, __u8 address[16], __u16 *port)
{
	char text[WEIR_PEER_IPV4_MAX] = { 0 };
	struct weir_peer_reader reader;
	__u8 address_at_once[16];
	__u16 port_at_once;
	bool at_once;

	memcpy(text, data, size < sizeof(text) ? size : sizeof(text));
	at_once = weir_peer_ipv4_at_once(text, size, address_at_once, &port_at_once);
	weir_peer_start(&reader);
	for (size_t i = 0; i < size; i++)
		weir_peer_byte(&reader, data[i]);
	if (!weir_peer_end(&reader, address, port)) {
		assert(!at_once);
		return false;
	}
	assert(!at_once || (memcmp(address, address_at_once, 16) == 0 && *port == port_at_once));
	return true;
}

/* text: "192.0.2.1:443", with or without zeros in front of a number. */
static void check_ipv4(const char *text, const __u8 address[16], unsigned int port)
{
	unsigned int byte[4], said;
	char more;

	assert(sscanf(text, "%u.%u.%u.%u:%u%c", &byte[0], &byte[1], &byte[2], &byte[3], &said, &more) == 5);
	for (int i = 0; i < 4; i++)
		assert(byte[i] == address[12 + i]);
	assert(said == port);
}

/* text: "[fe80::1%eth0]:443". Cuts it up. */
static bool read_ipv6(char *text, __u8 address[16], unsigned int *port)
{
	char *end = strchr(text, ']'), *zone, more;

	if (!end || sscanf(end, "]:%5u%c", port, &more) != 1 || end[2] < '0' || end[2] > '9' || *port > 65535)
		return false;
	*end = 0;
	zone = strchr(text, '%');
	if (zone)
		*zone = 0;
	return inet_pton(AF_INET6, text + 1, address) == 1;
}

static void peer(const uint8_t *data, size_t size)
{
	char text[WEIR_INSIDE_PEER_MAX + 1] = "";
	__u8 address[16], wanted[16];
	unsigned int port = 0;
	__u16 found = 0;
	bool known;

	size = size < WEIR_INSIDE_PEER_MAX ? size : WEIR_INSIDE_PEER_MAX;
	memcpy(text, data, size);
	known = read_peer(data, size, address, &found);
	if (size && *text != '[') {
		if (known)
			check_ipv4(text, address, found);
		return;
	}
	/* Go writes neither capitals nor an IPv4 address in an IPv6 one. */
	if (memchr(data, 0, size) || (strcspn(text, ".ABCDEF") < strcspn(text, "%]") && !known))
		return;
	assert(known == read_ipv6(text, wanted, &port));
	assert(!known || (!memcmp(address, wanted, sizeof(wanted)) && found == port));
}

static void text(const uint8_t *data, size_t size)
{
	json_t *other = json_stringn((const char *)data, size);
	struct weir_utf8 u = { 0 };

	for (size_t i = 0; i < size; i++)
		weir_utf8_byte(&u, data[i]);
	assert(weir_utf8_ends(&u) == !!other);
	json_decref(other);
}

static void verb(const uint8_t *data, size_t size)
{
	char wanted[WEIR_INSIDE_WORD_MAX + 1] = "";
	__u64 words[2] = { 0 };
	enum weir_verb found;

	size = size < WEIR_INSIDE_WORD_MAX ? size : WEIR_INSIDE_WORD_MAX;
	memcpy(words, data, size);
	memcpy(wanted, data, size);
	found = weir_verb_of_text(words[0], words[1]);
	assert(found < N_VERBS);
	if (memchr(data, 0, size))
		return;
	if (found != WEIR_VERB_OTHER) {
		assert(size ? !strcmp(verbs[found], wanted) : found == WEIR_VERB_NONE);
		return;
	}
	for (size_t i = 0; size && i < N_VERBS; i++)
		assert(i == WEIR_VERB_NONE || i == WEIR_VERB_OTHER || strcmp(verbs[i], wanted) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] % 3 == 0)
		peer(data + 1, size - 1);
	else if (data[0] % 3 == 1)
		text(data + 1, size - 1);
	else
		verb(data + 1, size - 1);
	return 0;
}
