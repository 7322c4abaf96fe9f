/* SPDX-License-Identifier: GPL-2.0 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "weir/http/byte.h"

#include "model/parse.h"

#define MAPPED_BITS 96 /* of ::ffff:0:0/96, where IPv4 addresses live */

static const __u8 mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

int parse_number(const char *text, __u64 max, __u64 *out, struct error *err)
{
	__u64 value = 0;
	const char *p;

	for (p = text; isdigit((unsigned char)*p); p++) {
		unsigned int digit = *p - '0';

		if (value > max / 10 || value * 10 > max - digit)
			return error_set(err, -EINVAL, "\"%s\" is too large (at most %llu)", text, max);
		value = value * 10 + digit;
	}
	if (p == text || *p)
		return error_set(err, -EINVAL, "\"%s\" is not a whole number", text);
	*out = value;
	return 0;
}

int parse_count(const char *text, __u64 max, __u64 *out, struct error *err)
{
	__u64 value;
	int ret = parse_number(text, max, &value, err);

	if (!ret && !value)
		ret = error_set(err, -EINVAL, "must be at least 1");
	if (!ret)
		*out = value;
	return ret;
}

int parse_port(const char *text, __u16 *port, struct error *err)
{
	__u64 value;

	if (parse_number(text, 65535, &value, NULL) || value == 0)
		return error_set(err, -EINVAL, "\"%s\" is not a port (1 to 65535)", text);
	*port = value;
	return 0;
}

/* Sets the address and how many bits of it there are to name: 32 or 128. */
static bool parse_address(const char *text, __u8 address[static 16], unsigned int *width)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		memcpy(address, mapped_prefix, sizeof(mapped_prefix));
		memcpy(address + sizeof(mapped_prefix), &v4, sizeof(v4));
		*width = 32;
		return true;
	}
	if (inet_pton(AF_INET6, text, &v6) == 1) {
		memcpy(address, &v6, sizeof(v6));
		*width = 128;
		return true;
	}
	return false;
}

static bool is_mapped(const __u8 address[static 16])
{
	return memcmp(address, mapped_prefix, sizeof(mapped_prefix)) == 0;
}

/* 0.0.0.0 or :: */
static bool is_unspecified(const __u8 address[static 16])
{
	static const __u8 zero[16];

	return memcmp(address, zero, 16) == 0 || (is_mapped(address) && memcmp(address + 12, zero, 4) == 0);
}

void format_address(const __u8 address[static 16], char text[static PARSE_ADDRESS_TEXT])
{
	if (is_mapped(address))
		inet_ntop(AF_INET, address + sizeof(mapped_prefix), text, PARSE_ADDRESS_TEXT);
	else
		inet_ntop(AF_INET6, address, text, PARSE_ADDRESS_TEXT);
}

/* Splits at the last colon; the address loses its brackets, which an IPv6 address must have. */
static bool split_listen(const char *text, char address[static PARSE_ADDRESS_TEXT], const char **port)
{
	const char *colon = strrchr(text, ':');
	const char *start = text, *end = colon;

	if (!colon)
		return false;
	if (*text == '[') {
		if (colon - text < 2 || colon[-1] != ']')
			return false;
		start++;
		end--;
	} else if (memchr(text, ':', colon - text)) {
		return false;
	}
	if (end == start || end - start >= PARSE_ADDRESS_TEXT)
		return false;
	memcpy(address, start, end - start);
	address[end - start] = '\0';
	if ((*text == '[') != (strchr(address, ':') != NULL))
		return false;
	*port = colon + 1;
	return true;
}

int parse_listen(const char *text, struct datapath_listen *listen, struct error *err)
{
	struct datapath_listen parsed = { 0 };
	char address[PARSE_ADDRESS_TEXT];
	unsigned int width;
	const char *port;

	if (!split_listen(text, address, &port))
		return error_set(err, -EINVAL, "\"%s\" is not ADDR:PORT (10.0.0.1:80, [2001:db8::1]:80 or *:80)", text);
	if (parse_port(port, &parsed.port, err))
		return -EINVAL;
	if (strcmp(address, "*") != 0 && !parse_address(address, parsed.address, &width))
		return error_set(err, -EINVAL, "\"%s\" is not an IP address", address);
	if (strcmp(address, "*") == 0 || is_unspecified(parsed.address)) {
		memset(parsed.address, 0, sizeof(parsed.address));
		parsed.any = true;
	}
	*listen = parsed;
	return 0;
}

static void cut_address(__u8 address[static 16], unsigned int bits)
{
	for (unsigned int i = 0; i < 16; i++, bits -= bits < 8 ? bits : 8)
		if (bits < 8)
			address[i] &= 0xff00 >> bits;
}

int parse_cidr(const char *text, struct datapath_cidr *cidr, struct error *err)
{
	struct datapath_cidr parsed;
	char address[PARSE_ADDRESS_TEXT];
	const char *slash = strchrnul(text, '/');
	unsigned int width;
	__u64 bits;

	if (slash - text >= PARSE_ADDRESS_TEXT)
		return error_set(err, -EINVAL, "\"%s\" is not an IP address or CIDR", text);
	memcpy(address, text, slash - text);
	address[slash - text] = '\0';
	if (!parse_address(address, parsed.address, &width))
		return error_set(err, -EINVAL, "\"%s\" is not an IP address or CIDR", text);
	bits = width;
	if (*slash && parse_number(slash + 1, width, &bits, NULL))
		return error_set(err, -ERANGE, "\"%s\" is not a CIDR: its prefix must be 0 to %u", text, width);
	parsed.bits = width == 32 ? MAPPED_BITS + bits : bits;
	cut_address(parsed.address, parsed.bits);
	*cidr = parsed;
	return 0;
}

static int parse_name(const char *text, const char *whose, struct error *err)
{
	size_t length = strlen(text);
	bool ends_well = length > 0 && isalnum((unsigned char)text[0]) && isalnum((unsigned char)text[length - 1]);

	if (!ends_well || length >= PARSE_NAME_SIZE || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != length)
		return error_set(err, -EINVAL,
				 "\"%s\" is not a %s's name (a-z, 0-9, - and . inside, at most %d characters)", text,
				 whose, PARSE_NAME_SIZE - 1);
	return 0;
}

int parse_server_name(const char *text, struct error *err)
{
	return parse_name(text, "server", err);
}

int parse_limit_name(const char *text, struct error *err)
{
	return parse_name(text, "limit", err);
}

int parse_interface(const char *text, struct error *err)
{
	size_t length = strlen(text);
	bool bad = length == 0 || length >= PARSE_INTERFACE_SIZE || strcmp(text, ".") == 0 || strcmp(text, "..") == 0;

	for (size_t i = 0; i < length; i++)
		bad |= text[i] == '/' || text[i] == ':' || !isgraph((unsigned char)text[i]);
	if (bad)
		return error_set(err, -EINVAL, "\"%s\" is not an interface's name", text);
	return 0;
}

/* Those that tell where a message ends are read for that alone. */
static bool is_framing_header(const char *name)
{
	static const char *const names[] = { "connection",	  "content-length", "expect",	    "host",
					     "transfer-encoding", "upgrade",	    "authorization" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

int parse_header(const char *text, char name[static PARSE_HEADER_SIZE], struct error *err)
{
	size_t length = strlen(text);
	char lower[PARSE_HEADER_SIZE] = "";

	for (size_t i = 0; i < length; i++)
		if (!weir_is_tchar(text[i]))
			return error_set(err, -EINVAL, "\"%s\" is not a header's name", text);
	if (length == 0 || length > WEIR_TOKEN_MAX)
		return error_set(err, -EINVAL, "\"%s\" is %zu bytes long: a header's name may have 1 to %d here", text,
				 length, WEIR_TOKEN_MAX);
	for (size_t i = 0; i < length; i++)
		lower[i] = weir_lower(text[i]);
	if (is_framing_header(lower))
		return error_set(err, -EINVAL, "\"%s\" is a header with another meaning", text);
	memcpy(name, lower, sizeof(lower));
	return 0;
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

int parse_subject_name(const char *text, struct error *err)
{
	size_t length = strlen(text);

	if (length == 0 || length > PARSE_SUBJECT_MAX || has_control(text))
		return error_set(err, -EINVAL, "a name is 1 to %d bytes without control characters", PARSE_SUBJECT_MAX);
	return 0;
}

static enum weir_name_kind subject_kind(enum weir_key_part part)
{
	switch (part) {
	case WEIR_KEY_USER:
		return WEIR_NAME_USER;
	case WEIR_KEY_GROUP:
		return WEIR_NAME_GROUP;
	default:
		return WEIR_NAME_NAMESPACE;
	}
}

/* 1: the text is an address subject; 0: it is no address at all. */
static int parse_address_subject(const char *text, struct subject *subject, struct error *err)
{
	struct datapath_cidr cidr = { 0 };
	char address[PARSE_ADDRESS_TEXT];
	bool v6;
	int ret;

	/* Most subjects are none, and there may be very many: only what is told is put into words. */
	ret = parse_cidr(text, &cidr, NULL);
	if (ret)
		return ret == -ERANGE ? parse_cidr(text, &cidr, err) : 0;
	v6 = strchr(text, ':') && !(cidr.bits == 128 && is_mapped(cidr.address));
	if (!v6 && cidr.bits != 128)
		return error_set(err, -EINVAL, "\"%s\": IPv4 users and sources are single addresses", text);
	if (v6 && cidr.bits != 128 && cidr.bits != 64)
		return error_set(err, -EINVAL, "\"%s\": IPv6 users and sources are addresses or /64 networks", text);
	if (v6)
		cut_address(cidr.address, 64);
	subject->kind = WEIR_NAME_ADDRESS;
	memcpy(subject->address, cidr.address, sizeof(subject->address));
	format_address(cidr.address, address);
	snprintf(subject->text, sizeof(subject->text), "%s%s", address, v6 ? "/64" : "");
	return 1;
}

int parse_subject(enum weir_key_part part, const char *text, struct subject *subject, struct error *err)
{
	size_t length = strlen(text);
	int ret;

	if (length == 0 || length > PARSE_SUBJECT_MAX || has_control(text))
		return error_set(err, -EINVAL, "a subject is 1 to %d bytes without control characters",
				 PARSE_SUBJECT_MAX);
	if (part == WEIR_KEY_USER || part == WEIR_KEY_SOURCE) {
		ret = parse_address_subject(text, subject, err);
		if (ret)
			return ret < 0 ? ret : 0;
	}
	if (part == WEIR_KEY_SOURCE)
		return error_set(err, -EINVAL, "\"%s\" is not an IP address", text);
	if (part == WEIR_KEY_NAMESPACE && strpbrk(text, "/ ?#%"))
		return error_set(err, -EINVAL, "\"%s\" is not a namespace", text);
	subject->kind = subject_kind(part);
	memcpy(subject->text, text, length + 1);
	return 0;
}

const void *subject_bytes(const struct subject *subject, size_t *length)
{
	bool address = subject->kind == WEIR_NAME_ADDRESS;

	*length = address ? sizeof(subject->address) : strlen(subject->text);
	return address ? (const void *)subject->address : subject->text;
}

void format_listen(const struct datapath_listen *listen, char text[static PARSE_LISTEN_TEXT])
{
	char address[PARSE_ADDRESS_TEXT] = "*";

	if (!listen->any)
		format_address(listen->address, address);
	snprintf(text, PARSE_LISTEN_TEXT, strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, listen->port);
}

void format_cidr(const struct datapath_cidr *cidr, char text[static PARSE_LISTEN_TEXT])
{
	bool v4 = is_mapped(cidr->address) && cidr->bits >= MAPPED_BITS;
	char address[PARSE_ADDRESS_TEXT];

	if (v4)
		format_address(cidr->address, address);
	else
		inet_ntop(AF_INET6, cidr->address, address, sizeof(address));
	snprintf(text, PARSE_LISTEN_TEXT, "%s/%u", address, v4 ? cidr->bits - MAPPED_BITS : cidr->bits);
}

bool cidr_covers(const struct datapath_cidr *network, const __u8 address[static 16])
{
	unsigned int bytes = network->bits / 8, rest = network->bits % 8;

	if (memcmp(network->address, address, bytes) != 0)
		return false;
	return !rest || (network->address[bytes] ^ address[bytes]) >> (8 - rest) == 0;
}

/* --- lists of them */

int user_text(const char *text, char **out, struct error *err)
{
	struct subject subject;

	return parse_subject(WEIR_KEY_USER, text, &subject, err) ?: copy_text(subject.text, out, err);
}

int group_text(const char *text, char **out, struct error *err)
{
	return parse_subject_name(text, err) ?: copy_text(text, out, err);
}
