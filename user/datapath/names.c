/* SPDX-License-Identifier: GPL-2.0 */
/* The names of those whom the programs have counted. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "weir/base/subject.h"

#include "datapath/private.h"

__u64 datapath_subject(const struct datapath *dp, enum weir_name_kind kind, const void *bytes, size_t length)
{
	struct weir_subject_hash hash;
	const __u8 *byte = bytes;

	weir_subject_start(&hash, dp->seed, kind);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&hash, byte[i]);
	return weir_subject_end(&hash);
}

static void address_text(const __u8 *address, char *text, size_t size)
{
	char buffer[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address))
		snprintf(text, size, "%s", inet_ntop(AF_INET, address + 12, buffer, sizeof(buffer)));
	else
		snprintf(text, size, "%s/64", inet_ntop(AF_INET6, address, buffer, sizeof(buffer)));
}

/* Names are what a client sent: nothing but plain characters may reach a terminal. Returns where the text ends now. */
static size_t plain_text(const char *bytes, size_t length, bool cut, char *text, size_t used, size_t size)
{
	for (size_t i = 0; i < length && used < size; i++) {
		unsigned char c = bytes[i];
		bool plain = c > ' ' && c < 0x7f && c != '\\';

		used += snprintf(text + used, size - used, plain ? "%c" : "\\x%02x", c);
	}
	if (cut && used < size)
		used += snprintf(text + used, size - used, "...");
	return used;
}

void datapath_name_text(const struct weir_name *name, char *text, size_t size)
{
	size_t length = name->length < WEIR_NAME_TEXT ? name->length : WEIR_NAME_TEXT;

	text[0] = 0;
	plain_text(name->text, length, name->whole > name->length, text, 0, size);
}

/* KIND/NAMESPACE/NAME, without what is empty. A text that fills its place may have been cut. */
static void object_text(const struct weir_object_name *name, char *text, size_t size)
{
	const struct {
		const char *text;
		size_t room;
	} parts[] = { { name->kind, sizeof(name->kind) },
		      { name->namespace, sizeof(name->namespace) },
		      { name->name, sizeof(name->name) } };
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t length = strnlen(parts[i].text, parts[i].room);

		if (length && used && used < size)
			used += snprintf(text + used, size - used, "/");
		used = plain_text(parts[i].text, length, length == parts[i].room, text, used, size);
	}
}

/* PART/PART; of a part that is not known any more, "?". */
static void parts_text(struct datapath *dp, const struct weir_name *name, char *text, size_t size)
{
	const __u64 *parts = (const __u64 *)name->text;
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < name->length / sizeof(*parts) && i < WEIR_KEY_PARTS && used + 1 < size; i++) {
		if (i)
			used += snprintf(text + used, size - used, "/");
		if (used < size && datapath_name(dp, parts[i], text + used, size - used))
			snprintf(text + used, size - used, "?");
		used += strlen(text + used);
	}
}

int datapath_name(struct datapath *dp, __u64 subject, char *text, size_t size)
{
	struct weir_name name;

	if (subject == WEIR_SUBJECT_OVERFLOW) {
		snprintf(text, size, "(overflow)");
		return 0;
	}
	if (bpf_map_lookup_elem(dp->maps.names, &subject, &name))
		return -errno;
	if (!size)
		return -ENOSPC;
	if (name.kind == WEIR_NAME_ADDRESS)
		address_text((const __u8 *)name.text, text, size);
	else if (name.kind == WEIR_NAME_OBJECT)
		object_text((const struct weir_object_name *)name.text, text, size);
	else if (name.kind == WEIR_NAME_PARTS)
		parts_text(dp, &name, text, size);
	else
		datapath_name_text(&name, text, size);
	return 0;
}
