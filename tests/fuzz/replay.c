/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stands in for libFuzzer: gives each file of the directories named on the command line to the fuzz target, once, or the
 * stream that is written in it (../corpus/stream.h). A failure is a crash, as under libFuzzer. No input at all is a
 * failure too: it would prove nothing.
 */
#include "../corpus/stream.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static bool is_stream(const char *path)
{
	const char *suffix = strrchr(path, '.');

	return suffix && !strcmp(suffix, STREAM_SUFFIX);
}

static void replay_stream(const char *path)
{
	struct stream s;

	printf("%s\n", path);
	fflush(stdout);
	stream_load(&s, path);
	LLVMFuzzerTestOneInput(s.bytes, s.length);
	stream_free(&s);
}

/* The input lies in memory of exactly its size, so that the sanitizer sees one byte too far. */
static void replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET))
		fail(path);
	data = malloc((size_t)size);
	if ((!data && size) || fread(data, 1, (size_t)size, file) != (size_t)size)
		fail(path);
	fclose(file);
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
}

static unsigned int replay_directory(const char *path)
{
	struct dirent **entries;
	unsigned int inputs = 0;
	int count = scandir(path, &entries, NULL, alphasort);

	if (count < 0)
		fail(path);
	for (int i = 0; i < count; i++) {
		char input[4096];

		if (entries[i]->d_name[0] != '.') {
			snprintf(input, sizeof(input), "%s/%s", path, entries[i]->d_name);
			if (is_stream(input))
				replay_stream(input);
			else
				replay(input);
			inputs++;
		}
		free(entries[i]);
	}
	free(entries);
	return inputs;
}

int main(int argc, char **argv)
{
	unsigned int inputs = 0;

	for (int i = 1; i < argc; i++)
		inputs += replay_directory(argv[i]);
	printf("%u inputs\n", inputs);
	return inputs ? EXIT_SUCCESS : EXIT_FAILURE;
}
