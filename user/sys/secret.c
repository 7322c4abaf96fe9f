/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/privilege.h"

#define SECRET_MAX (64U << 20)

static int read_all(int fd, struct secret *secret, size_t room)
{
	ssize_t n;

	while ((n = read(fd, secret->text + secret->length, room - secret->length)) > 0)
		secret->length += n;
	return n < 0 ? -errno : 0;
}

static int open_any(const char *path)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_READ);

	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/*
 * A byte more than its size would be one of a file that grows meanwhile, the last line of which may be half of one; or of a file of /proc,
 * which says that it has none.
 */
static int read_whole(int fd, struct secret *secret, off_t size, const char *path, struct error *err)
{
	int ret = read_all(fd, secret, size + 1);

	if (ret)
		return error_set(err, ret, "%s: %s", path, strerror(-ret));
	if (secret->length <= (size_t)size)
		return 0;
	return error_set(err, -EAGAIN,
			 "%s: has more than the %lld bytes of its size: it is being written, or is no file of text",
			 path, (long long)size);
}

int secret_read(const char *path, struct secret *out, struct error *err)
{
	CLEANUP_CLOSE int fd = open_any(path);
	CLEANUP_SECRET struct secret secret = { 0 };
	struct stat st;
	int ret;

	if (fd < 0 || fstat(fd, &st))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "%s: is not a file", path);
	if (st.st_size > SECRET_MAX)
		return error_set(err, -EFBIG, "%s: is larger than %u MiB", path, SECRET_MAX >> 20);
	secret.text = mmap(NULL, st.st_size + 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (secret.text == MAP_FAILED) {
		secret.text = NULL;
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	}
	secret.size = st.st_size + 2;
	madvise(secret.text, secret.size, MADV_DONTDUMP);
	ret = read_whole(fd, &secret, st.st_size, path, err);
	if (ret)
		return ret;
	*out = secret;
	secret = (struct secret){ 0 };
	return 0;
}

bool secret_is_open(const char *path)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_READ);
	struct stat st;

	return !stat(path, &st) && (st.st_mode & (S_IRGRP | S_IROTH));
}

void secret_wipe(struct secret *secret)
{
	if (!secret->text)
		return;
	explicit_bzero(secret->text, secret->size);
	munmap(secret->text, secret->size);
	*secret = (struct secret){ 0 };
}

/* This frame is large on purpose: it overwrites the stack below. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wframe-larger-than="
__attribute__((noinline)) void secret_wipe_stack(void)
{
	char room[65536];

	explicit_bzero(room, sizeof(room));
}
#pragma GCC diagnostic pop
