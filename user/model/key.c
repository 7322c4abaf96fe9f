/* SPDX-License-Identifier: GPL-2.0 */
#include "model/key.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "datapath/names.h"

#define PARTS "namespace, user, group, source, object"

static const char *const words[WEIR_KEY_PARTS] = { "namespace", "user", "group", "source", "object" };

static int find_part(const char *word, size_t length)
{
	for (int n = 0; n < WEIR_KEY_PARTS; n++)
		if (strlen(words[n]) == length && strncmp(words[n], word, length) == 0)
			return n;
	return -ENOENT;
}

int key_parse(const char *text, __u8 *key, struct error *err)
{
	__u8 parsed = 0;

	if (strcmp(text, "total") == 0) {
		*key = 0;
		return 0;
	}
	for (const char *word = text;; word++) {
		size_t length = strcspn(word, ",");
		int n = find_part(word, length);

		if (n < 0)
			return error_set(err, -EINVAL,
					 "\"%s\" is not a key: it is total, or one or more of " PARTS
					 " with commas between",
					 text);
		if (parsed >> n & 1)
			return error_set(err, -EINVAL, "\"%s\": %s is there twice", text, words[n]);
		parsed |= 1 << n;
		word += length;
		if (!*word)
			break;
	}
	*key = parsed;
	return 0;
}

/* "namespace,user" or "namespace/user" */
static void join_words(__u8 key, char separator, char text[static KEY_TEXT])
{
	size_t used = 0;

	for (int n = 0; n < WEIR_KEY_PARTS; n++) {
		if (!(key >> n & 1))
			continue;
		if (used)
			text[used++] = separator;
		strcpy(text + used, words[n]);
		used += strlen(words[n]);
	}
}

void key_format(__u8 key, char text[static KEY_TEXT])
{
	strcpy(text, "total");
	join_words(key, ',', text);
}

/* A text's part of the key: the part, and where its text is. */
struct stretch {
	enum weir_key_part part;
	const char *at;
	size_t length;
};

static bool is_ipv6(const char *text, size_t length)
{
	char address[PARSE_SUBJECT_MAX + 1];
	struct datapath_cidr cidr;

	if (length >= sizeof(address) || !memchr(text, ':', length))
		return false;
	memcpy(address, text, length);
	address[length] = '\0';
	return parse_cidr(address, &cidr, NULL) == 0;
}

/* Where the stretch ends that begins here: at the next slash, or, of an IPv6 network, at the one behind its prefix. */
static size_t first_part(const char *text)
{
	size_t length = strcspn(text, "/");

	if (strncmp(text + length, "/64/", 4) == 0 && is_ipv6(text, length))
		return length + 3;
	return length;
}

/* Likewise, where the last one begins. */
static const char *last_part(const char *text)
{
	const char *slash = strrchr(text, '/');
	const char *at = slash;

	if (!slash || strcmp(slash, "/64") != 0)
		return slash ? slash + 1 : text;
	while (at > text && at[-1] != '/')
		at--;
	return is_ipv6(at, slash - at) ? at : slash + 1;
}

/*
 * Namespaces have no slash, and a source is an address, so what is between them is the user's or the group's, which may have
 * some. With both of them, there can be only the one between the two.
 */
static int split(__u8 key, const char *text, struct stretch *parts, int *n, struct error *err)
{
	char form[KEY_TEXT] = "";
	const char *end = text + strlen(text), *source = NULL;
	__u8 names = key & (WEIR_KEY_USER | WEIR_KEY_GROUP);
	int count = 0;

	if (key & WEIR_KEY_NAMESPACE) {
		size_t length = key == WEIR_KEY_NAMESPACE ? strlen(text) : strcspn(text, "/");

		parts[count++] = (struct stretch){ WEIR_KEY_NAMESPACE, text, length };
		text += length + (text[length] == '/');
	}
	if (key & WEIR_KEY_SOURCE) {
		source = last_part(text);
		end = names && source > text ? source - 1 : source;
	}
	if (names == (WEIR_KEY_USER | WEIR_KEY_GROUP)) {
		size_t length = first_part(text);

		if (text + length >= end || memchr(text + length + 1, '/', end - (text + length + 1))) {
			join_words(key, '/', form);
			return error_set(err, -EINVAL, "\"%s\" is not %s, with one slash between", text, form);
		}
		parts[count++] = (struct stretch){ WEIR_KEY_USER, text, length };
		text += length + 1;
		names = WEIR_KEY_GROUP;
	}
	if (names)
		parts[count++] = (struct stretch){ names, text, end > text ? end - text : 0 };
	if (source)
		parts[count++] = (struct stretch){ WEIR_KEY_SOURCE, source, strlen(source) };
	*n = count;
	return 0;
}

static int check_stretch(const struct stretch *stretch, struct subject *subject, struct error *err)
{
	char text[PARSE_SUBJECT_MAX + 2];
	size_t length = stretch->length < sizeof(text) - 1 ? stretch->length : sizeof(text) - 1;

	memcpy(text, stretch->at, length);
	text[length] = '\0';
	return parse_subject(stretch->part, text, subject, err);
}

static int check_key(__u8 key, const char *text, struct error *err)
{
	if (key & WEIR_KEY_OBJECT)
		return error_set(err, -EINVAL, "\"%s\": a limit for each object is the same for all, without a subject",
				 text);
	if (!key)
		return error_set(err, -EINVAL, "\"%s\": a total limit has no subject", text);
	return 0;
}

/* A subject of several parts is said as a whole. */
static int not_form(__u8 key, const char *text, int parts, int code, const struct error *why, struct error *err)
{
	char form[KEY_TEXT] = "";

	if (parts == 1)
		return error_set(err, code, "%s", why->text);
	join_words(key, '/', form);
	return error_set(err, code, "\"%.300s\" is not %s: %s", text, form, why->text);
}

int key_subject_parse(__u8 key, const char *text, char canonical[static KEY_SUBJECT_TEXT], struct error *err)
{
	struct stretch parts[WEIR_KEY_PARTS];
	char whole[KEY_SUBJECT_TEXT];
	struct error why = { 0 };
	size_t used = 0;
	int n = 0, ret;

	*whole = '\0';
	ret = check_key(key, text, err) ?: split(key, text, parts, &n, err);
	if (ret)
		return ret;
	for (int i = 0; i < n; i++) {
		struct subject subject;

		ret = check_stretch(&parts[i], &subject, &why);
		if (ret)
			return not_form(key, text, n, ret, &why, err);
		if (i)
			whole[used++] = '/';
		strcpy(whole + used, subject.text);
		used += strlen(whole + used);
	}
	memcpy(canonical, whole, used + 1);
	return 0;
}

/* As bpf/subjects.h makes it of a request. */
__u64 key_subject(const struct datapath *dp, __u8 key, const char *canonical)
{
	struct stretch parts[WEIR_KEY_PARTS];
	__u64 whole = 0;
	int n = 0;

	split(key, canonical, parts, &n, NULL);
	for (int i = 0; i < n; i++) {
		struct subject subject;
		const void *bytes;
		size_t length;
		__u64 part;

		check_stretch(&parts[i], &subject, NULL);
		bytes = subject_bytes(&subject, &length);
		part = datapath_subject(dp, subject.kind, bytes, length);
		whole = whole ? weir_pair(whole, part) : part;
	}
	return whole;
}

struct datapath_cidr source_counted(const __u8 address[static 16])
{
	struct datapath_cidr source = { .bits = 128 };

	memcpy(source.address, address, sizeof(source.address));
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)source.address))
		return source;
	memset(source.address + 8, 0, 8);
	source.bits = 64;
	return source;
}

void format_source(const struct datapath_cidr *source, char text[static PARSE_LISTEN_TEXT])
{
	if (source->bits == 128)
		format_address(source->address, text);
	else
		format_cidr(source, text);
}
