/* SPDX-License-Identifier: GPL-2.0 */
/* A state.json of any content: it is refused, or what is written of it says the same when it is read again. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "saved/saved.h"

static char directory[] = P_tmpdir "/weir-fuzz-XXXXXX", path[64];

static void remove_directory(void)
{
	unlink(path);
	rmdir(directory);
}

static void write_state(const uint8_t *data, size_t size)
{
	CLEANUP_FCLOSE FILE *file = NULL;

	if (!*path) {
		if (!mkdtemp(directory))
			abort();
		snprintf(path, sizeof(path), "%s/state.json", directory);
		atexit(remove_directory);
	}
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size)
		abort();
}

static void check_again(const struct server *server)
{
	CLEANUP_JSON json_t *before = server_to_json(server), *after = NULL;
	CLEANUP_SERVER struct server *again = NULL;
	struct error err;

	assert(before);
	assert(!server_from_json(before, &again, &err));
	after = server_to_json(again);
	assert(json_equal(before, after));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct state state = { 0 };
	struct error err = { 0 };
	int ret;

	write_state(data, size);
	ret = state_load(&state, directory, &err);
	assert(!ret == !err.text[0]);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		assert(!ret || !state.servers[slot]);
		if (state.servers[slot])
			check_again(state.servers[slot]);
	}
	state_clear(&state);
	return 0;
}
