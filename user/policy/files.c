/* SPDX-License-Identifier: GPL-2.0 */
/* Files and directories of policies, and whether they still say what they said. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "weir/base/subject.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/output.h"
#include "policy/policy.h"

#define STDIN "-"

/* --- one file */

/* Nobody gains from two texts that look the same here, so the hash needs no secret. */
static __u64 digest_of(const char *text, size_t length)
{
	static const __u64 seed[2];
	struct weir_subject_hash hash;

	weir_subject_start(&hash, seed, 0);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&hash, text[i]);
	return weir_subject_end(&hash);
}

#define ROOM_AT_FIRST 65536

/* The caller frees *text, which has a NUL behind it. */
static int read_stream(FILE *in, const char *path, char **text, size_t *length, struct error *err)
{
	CLEANUP_FREE char *room = NULL;
	size_t size = 0, n = 0;

	errno = 0;
	do {
		char *grown;

		size = size ? 2 * size : ROOM_AT_FIRST;
		grown = realloc(room, size + 1);
		if (!grown)
			return error_set(err, -ENOMEM, "%s: out of memory", path);
		room = grown;
		n += fread(room + n, 1, size - n, in);
	} while (n == size && n <= POLICY_FILE_MAX);
	if (ferror(in)) {
		int ret = error_errno();

		return error_set(err, ret, "%s: %s", path,
				 ret == -EBADF	? "it is closed" :
				 ret == -EAGAIN ? "it would have to be waited for" :
						  strerror(-ret));
	}
	if (n > POLICY_FILE_MAX)
		return error_set(err, -EFBIG, "%s: larger than %u MiB", path, POLICY_FILE_MAX >> 20);
	room[n] = '\0';
	*text = room;
	*length = n;
	room = NULL;
	return 0;
}

/*
 * A FIFO that nobody writes to is empty: it is not waited for. One that somebody has open is, for as long as he likes: whoever
 * cannot wait reads regular files only. Those are never waited for, though some of /proc would keep their readers.
 */
static int open_file(const char *path, bool regular, FILE **out, struct error *err)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat info;

	if (fd < 0 || fstat(fd, &info) || (!S_ISREG(info.st_mode) && fcntl(fd, F_SETFL, O_RDONLY)))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (regular && !S_ISREG(info.st_mode))
		return error_set(err, -EINVAL, "%s: not a regular file", path);
	*out = fdopen(fd, "r");
	if (!*out)
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	cleanup_take(&fd);
	return 0;
}

static int read_whole(const char *path, bool regular, char **text, size_t *length, struct error *err)
{
	CLEANUP_FCLOSE FILE *in = NULL;

	if (strcmp(path, STDIN) == 0)
		return read_stream(stdin, "stdin", text, length, err);
	return open_file(path, regular, &in, err) ?: read_stream(in, path, text, length, err);
}

/*
 * Absolute, with the file's own name as it is: where that is a link, as in a mounted ConfigMap, it is the name that people know.
 * The caller frees it; NULL without memory.
 */
static char *whole_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	CLEANUP_FREE char *directory = NULL, *copy = NULL;
	char *name;

	if (strcmp(path, STDIN) == 0)
		return strdup("stdin");
	if (*path == '/')
		return strdup(path);
	copy = strdup(path);
	directory = copy ? realpath(dirname(copy), NULL) : NULL;
	return directory && asprintf(&name, "%s/%s", directory, slash ? slash + 1 : path) >= 0 ? name : NULL;
}

/* Objects are JSON, and a file's name need not be UTF-8. */
static char *file_name(const char *path)
{
	CLEANUP_FREE char *whole = whole_name(path);
	CLEANUP_JSON json_t *name = whole ? output_text_json(whole) : NULL;

	return name ? strdup(json_string_value(name)) : NULL;
}

int policy_file_text(const char *path, char **text, size_t *length, char **name, struct error *err)
{
	CLEANUP_FREE char *named = file_name(path);
	int ret = named ? read_whole(path, true, text, length, err) :
			  error_set(err, -ENOMEM, "%s: out of memory", path);

	if (ret)
		return ret;
	*name = named;
	named = NULL;
	return 0;
}

/* NULL without memory. */
static const struct policy_file *add_file(struct policy *policy, const char *path, __u64 digest)
{
	struct policy_file file = {
		.path = strdup(strcmp(path, STDIN) ? path : "stdin"),
		.name = file_name(path),
		.digest = digest,
	};
	struct policy_file *grown = file.path && file.name ?
					    array_grow(policy->files, policy->n_files, sizeof(*grown)) :
					    NULL;

	if (!grown) {
		free(file.path);
		free(file.name);
		return NULL;
	}
	policy->files = grown;
	grown[policy->n_files] = file;
	return &grown[policy->n_files++];
}

static int read_file(struct policy *policy, const char *path, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	const struct policy_file *file;
	size_t length = 0;
	int ret = read_whole(path, policy->regular, &text, &length, err);

	if (ret)
		return ret;
	file = add_file(policy, path, policy->regular ? digest_of(text, length) : 0);
	if (!file)
		return error_set(err, -ENOMEM, "%s: out of memory", path);
	return policy_read_text(policy, &(struct policy_file){ file->path, file->name, 0 }, text, length, err);
}

/* --- directories */

/* Names with a dot in front are those of editors, and of what stands behind a mounted ConfigMap. */
static int is_policy(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return *entry->d_name != '.' && dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml") || !strcmp(dot, ".json"));
}

/* Calls each(arg, path of a file) in the order of their names, until one returns other than 0. Returns that, or -errno. */
static int each_file(const char *directory, int (*each)(void *arg, const char *path, struct error *err), void *arg,
		     struct error *err)
{
	struct dirent **entries = NULL;
	int n = scandir(directory, &entries, is_policy, alphasort), ret = 0;

	if (n < 0)
		return error_set(err, -errno, "%s: %s", directory, strerror(errno));
	for (int i = 0; i < n; i++) {
		CLEANUP_FREE char *file = NULL;

		if (!ret && asprintf(&file, "%s/%s", directory, entries[i]->d_name) < 0)
			ret = error_set(err, -ENOMEM, "out of memory");
		ret = ret ?: each(arg, file, err);
		free(entries[i]);
	}
	free(entries);
	return ret;
}

static int read_each(void *arg, const char *path, struct error *err)
{
	return read_file(arg, path, err);
}

/* A path of a file alone is itself the only one. */
static int each_path(const char *path, int (*each)(void *arg, const char *path, struct error *err), void *arg,
		     struct error *err)
{
	struct stat info;

	if (strcmp(path, STDIN) == 0)
		return each(arg, path, err);
	if (stat(path, &info))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	return S_ISDIR(info.st_mode) ? each_file(path, each, arg, err) : each(arg, path, err);
}

int policy_read(struct policy *policy, const char *path, struct error *err)
{
	return each_path(path, read_each, policy, err);
}

/* --- have they changed? */

struct looking {
	const struct policy *policy;
	size_t next; /* most likely: they were read in the order in which they are looked at */
};

static int is_known(void *arg, const char *path, struct error *err)
{
	struct looking *looking = arg;
	const struct policy *policy = looking->policy;

	(void)err;
	for (size_t i = 0; i < policy->n_files; i++) {
		size_t at = (looking->next + i) % policy->n_files;

		if (strcmp(policy->files[at].path, path) == 0) {
			looking->next = at + 1;
			return 0;
		}
	}
	return -ENOENT;
}

static bool is_same(const struct policy_file *file, bool regular)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;

	return !read_whole(file->path, regular, &text, &length, NULL) && digest_of(text, length) == file->digest;
}

bool policy_is_current(const struct policy *policy, const char *path)
{
	struct looking looking = { .policy = policy };

	if (each_path(path, is_known, &looking, NULL))
		return false;
	for (size_t i = 0; i < policy->n_files; i++)
		if (!is_same(&policy->files[i], policy->regular))
			return false;
	return true;
}
