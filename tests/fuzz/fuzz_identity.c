/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who is who: the first byte says whether the rest is a head's header lines, a file of tokens or one of addresses. A head is
 * compared with a reading of its lines as whole texts.
 */
#include "weir/http/identity.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/csv.h"
#include "model/identity_file.h"

#define GROUPS_MAX 64
#define LINE_MAX_BYTES 4096

static struct weir_reading reading = { .seed = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL } };

/* What a head says. */
struct saying {
	__u64 user, token, namespace, groups[GROUPS_MAX];
	size_t n_groups;
	uint8_t seen, repeated;
	bool account;
};

static __u64 subject(__u8 kind, const char *text, size_t length)
{
	struct weir_subject_hash h;

	weir_subject_start(&h, reading.seed, kind);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&h, text[i]);
	return weir_subject_end(&h);
}

static void add_group(struct saying *s, __u64 group)
{
	if (s->n_groups < GROUPS_MAX)
		s->groups[s->n_groups] = group;
	s->n_groups++;
}

/* system:serviceaccount:NAMESPACE:NAME: its last colon. */
static const char *account_colon(const char *user)
{
	static const char prefix[] = "system:serviceaccount:";
	const char *namespace = user + strlen(prefix), *colon;

	if (strncmp(user, prefix, strlen(prefix)) != 0)
		return NULL;
	colon = strchr(namespace, ':');
	if (!colon || colon == namespace || !colon[1] || strchr(colon + 1, ':') || strpbrk(user, " \t"))
		return NULL;
	return colon;
}

static void read_user(struct saying *s, const char *value)
{
	const char *colon = account_colon(value);

	s->user = *value ? subject(WEIR_NAME_USER, value, strlen(value)) : 0;
	s->account = colon;
	if (colon)
		add_group(s, subject(WEIR_NAME_USER, value, colon - value));
}

static void read_credentials(struct saying *s, const char *value)
{
	const char *token = strchr(value, ' ');
	size_t length;

	if (!token || token - value != 6 || strncasecmp(value, "bearer", 6) != 0)
		return;
	length = strcspn(++token, " \t");
	s->token = length ? subject(WEIR_NAME_TOKEN, token, length) : 0;
}

/* One line, with white space around its value taken off. false: the head is refused. */
static bool read_line(struct saying *s, const char *name, const char *value)
{
	static const char *const names[] = { "x-remote-user", "x-remote-group", "authorization", "x-tenant",
					     "impersonate-user" };
	size_t header = 0;
	bool again;

	while (header < WEIR_HEADERS && strcasecmp(name, names[header]) != 0)
		header++;
	if (header == WEIR_HEADERS)
		return true;
	again = s->seen >> header & 1 && header != WEIR_HEADER_GROUP;
	s->seen |= 1U << header;
	if (again)
		s->repeated |= 1U << header;
	if (again)
		return header != WEIR_HEADER_NAMESPACE;
	if (header == WEIR_HEADER_USER)
		read_user(s, value);
	else if (header == WEIR_HEADER_TOKEN)
		read_credentials(s, value);
	else if (header == WEIR_HEADER_NAMESPACE && *value)
		s->namespace = subject(WEIR_NAME_NAMESPACE, value, strlen(value));
	else if (header == WEIR_HEADER_GROUP && *value)
		add_group(s, subject(WEIR_NAME_GROUP, value, strlen(value)));
	return true;
}

/* Makes lines that are right, for the most part, of any bytes: a NUL ends a line. Returns the head's length. */
static size_t make_head(const uint8_t *data, size_t size, char *head, struct saying *s, bool *refused)
{
	size_t used = sprintf(head, "GET / HTTP/1.1\r\n");
	char line[LINE_MAX_BYTES], *value, *end;

	memset(s, 0, sizeof(*s));
	*refused = false;
	while (size) {
		const uint8_t *nul = memchr(data, 0, size);
		size_t length = nul ? (size_t)(nul - data) : size;

		memcpy(line, data, length);
		line[length] = 0;
		data += length + (nul != NULL);
		size -= length + (nul != NULL);
		value = strchr(line, ':');
		for (char *c = line; *c; c++) {
			if (value && c > value ? !weir_is_text(*c) : c != value && !weir_is_tchar(*c))
				*c = 'x';
		}
		if (!value || value == line)
			continue;
		used += sprintf(head + used, "%s\r\n", line);
		*value++ = 0;
		value += strspn(value, " \t");
		for (end = value + strlen(value); end > value && weir_is_blank(end[-1]);)
			*--end = 0;
		if (!*refused)
			*refused = !read_line(s, line, value);
	}
	return used + sprintf(head + used, "\r\n");
}

static void check_head(const uint8_t *data, size_t size)
{
	static char head[2 * LINE_MAX_BYTES];
	enum weir_frame_event event = WEIR_FRAME_MORE;
	struct saying expected, said = { 0 };
	struct weir_request r;
	size_t length, at = 0;
	bool refused;

	if (size >= LINE_MAX_BYTES / 2)
		return;
	length = make_head(data, size, head, &expected, &refused);
	weir_request_start(&r);
	while (at < length && event != WEIR_FRAME_LOST && event != WEIR_FRAME_HEAD) {
		event = weir_request_byte(&r, &reading, head[at++]);
		if (event == WEIR_FRAME_GROUP)
			add_group(&said, r.group_subject);
	}
	/* Other headers may be refused, too: of their lengths, say. */
	assert(event == WEIR_FRAME_HEAD || event == WEIR_FRAME_LOST);
	if (event == WEIR_FRAME_LOST) {
		assert(refused == (r.lost == WEIR_REPEATED_NAMESPACE) || r.lost != WEIR_REPEATED_NAMESPACE);
		return;
	}
	assert(!refused);
	assert(r.user_subject == expected.user && r.token_subject == expected.token);
	assert(r.namespace_subject == expected.namespace);
	assert(r.headers_seen == expected.seen && r.headers_repeated == expected.repeated);
	assert((r.account == WEIR_ACCOUNT_NAME) == expected.account);
	assert(said.n_groups == expected.n_groups && !memcmp(said.groups, expected.groups, sizeof(said.groups)));
}

static int check_token(const struct token_row *row, void *n)
{
	assert(*row->token && *row->user && row->groups);
	++*(size_t *)n;
	return 0;
}

static int check_address(const struct address_row *row, void *n)
{
	assert(*row->user && row->groups && row->namespace && row->cidr.bits <= 128);
	++*(size_t *)n;
	return 0;
}

/* A file is wrong, or every row of it was given. */
static void check_file(const uint8_t *data, size_t size, bool tokens)
{
	int fd = memfd_create("identity", 0);
	struct error err = { 0 };
	char path[32];
	size_t n = 0;
	int ret;

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = tokens ? token_file_read(path, check_token, &n, &err) : address_file_read(path, check_address, &n, &err);
	assert(!ret == !err.text[0]);
	close(fd);
}

static void check_csv(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct csv_record record;
	struct error err;
	struct csv csv;
	int ret;

	assert(text);
	memcpy(text, data, size);
	csv_start(&csv, text, size);
	while ((ret = csv_next(&csv, &record, &err)) > 0) {
		assert(record.n && record.place.line <= csv.place.line);
		for (size_t i = 0; i < record.n && i < CSV_FIELDS; i++)
			assert(record.fields[i] >= text && record.fields[i] + strlen(record.fields[i]) <= text + size);
	}
	assert(ret || csv.at == text + size);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	weir_reading_default(&reading);
	weir_reading_name(&reading, WEIR_HEADER_TOKEN, "authorization", 13);
	weir_reading_name(&reading, WEIR_HEADER_NAMESPACE, "x-tenant", 8);
	switch (data[0] % 3) {
	case 0:
		check_head(data + 1, size - 1);
		break;
	case 1:
		check_csv(data + 1, size - 1);
		check_file(data + 1, size - 1, true);
		break;
	case 2:
		check_file(data + 1, size - 1, false);
		break;
	}
	return 0;
}
