/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/build_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\xff Go buildinf:"
#define MAGIC_SIZE 14
#define HEADER 32
#define MAX_TEXT (1U << 20)
#define MAX_SEARCH (64U << 10)
#define FRAME 16      /* what stands before and behind the lines of the modules */
#define INLINE_FLAG 2 /* since Go 1.18 the texts follow, each behind its length */

/* The header, in the section of its name or at the beginning of the data. */
static bool find_header(struct image *image, __u64 *address)
{
	__u64 size;

	if (image_section(image, ".go.buildinfo", address, &size) && image_at(image, *address, HEADER))
		return true;
	for (unsigned int i = 0; i < image->n_segments; i++) {
		const struct image_segment *segment = &image->segments[i];
		__u64 left = segment->size < MAX_SEARCH ? segment->size : MAX_SEARCH;
		const char *data = segment->writable ? image_at(image, segment->address, left) : NULL;

		for (__u64 at = 0; data && at + HEADER <= left; at += 16)
			if (!memcmp(data + at, MAGIC, MAGIC_SIZE)) {
				*address = segment->address + at;
				return true;
			}
	}
	return false;
}

/* A text behind its length in groups of seven bits; *address: behind it. */
static char *counted_text(struct image *image, __u64 *address)
{
	const char *text;
	__u64 size = 0;
	char *copy;

	for (unsigned int shift = 0;; shift += 7) {
		const __u8 *byte = image_at(image, (*address)++, 1);

		if (!byte || shift > 28)
			return NULL;
		size |= (__u64)(*byte & 0x7f) << shift;
		if (!(*byte & 0x80))
			break;
	}
	text = size <= MAX_TEXT ? image_at(image, *address, size) : NULL;
	copy = text ? strndup(text, size) : size ? NULL : strdup("");
	*address += size;
	return copy;
}

/* The text that a string header at the place of a pointer to it describes. */
static char *pointed_text(struct image *image, __u64 pointer)
{
	__u64 header, address, size;
	const char *text;

	if (!image_u64(image, pointer, &header) || !image_u64(image, header, &address) ||
	    !image_u64(image, header + 8, &size) || size > MAX_TEXT)
		return NULL;
	text = image_at(image, address, size);
	return text ? strndup(text, size) : size ? NULL : strdup("");
}

/* "go1.19.8", "devel go1.22-3f2b", "go1.20.1 X:nounified": 0 if it is none of them. */
static unsigned int minor_of(const char *version)
{
	const char *at = strstr(version, "go1.");
	unsigned long minor = at ? strtoul(at + 4, NULL, 10) : 0;

	return minor < 1000 ? (unsigned int)minor : 0;
}

/* Takes the frame of random bytes away. Without one there are no modules. */
static void unframe(char *modules)
{
	size_t size = strlen(modules);

	if (size < 2 * FRAME + 1 || modules[size - FRAME - 1] != '\n') {
		*modules = '\0';
		return;
	}
	memmove(modules, modules + FRAME, size - 2 * FRAME);
	modules[size - 2 * FRAME] = '\0';
}

int build_info_read(struct image *image, struct build_info *out, struct error *err)
{
	struct build_info info = { 0 };
	const __u8 *header;
	__u64 address;

	if (!find_header(image, &address) || !(header = image_at(image, address, HEADER)) ||
	    memcmp(header, MAGIC, MAGIC_SIZE) != 0)
		return error_set(err, -ENOEXEC, "not a program that Go has made: it has no build information");
	if (header[15] & INLINE_FLAG) {
		address += HEADER;
		info.version = counted_text(image, &address);
		info.modules = counted_text(image, &address);
	} else {
		info.version = pointed_text(image, address + 16);
		info.modules = pointed_text(image, address + 24);
	}
	if (!info.version || !info.modules || !*info.version) {
		build_info_clear(&info);
		return error_set(err, -ENOEXEC, "a program that Go has made, but its build information is damaged");
	}
	unframe(info.modules);
	info.minor = minor_of(info.version);
	*out = info;
	return 0;
}

void build_info_clear(struct build_info *info)
{
	free(info->version);
	free(info->modules);
}

char *build_info_word(const struct build_info *info, const char *words, unsigned int n)
{
	size_t size = strlen(words);

	for (const char *line = info->modules; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0) {
		if (strncmp(line, words, size) != 0 || !strchr("\t\n", line[size]))
			continue;
		for (; n && *line && *line != '\n'; n--) {
			line += strcspn(line, "\t\n");
			line += *line == '\t';
		}
		return n ? NULL : strndup(line, strcspn(line, "\t\n"));
	}
	return NULL;
}
