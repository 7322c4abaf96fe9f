/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/capstone.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#define TEXT_OF(number) QUOTED(number)
#define QUOTED(number) #number
#define LIBRARY "libcapstone.so." TEXT_OF(CS_API_MAJOR)

static struct capstone capstone;
static bool loaded;

static void load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	capstone = (struct capstone){
		.open = dlsym(library, "cs_open"),
		.option = dlsym(library, "cs_option"),
		.malloc = dlsym(library, "cs_malloc"),
		.free = dlsym(library, "cs_free"),
		.close = dlsym(library, "cs_close"),
		.disasm_iter = dlsym(library, "cs_disasm_iter"),
	};
	loaded = capstone.open && capstone.option && capstone.malloc && capstone.free && capstone.close &&
		 capstone.disasm_iter;
}

int capstone_load(const struct capstone **out, struct error *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	if (!loaded)
		return error_set(err, -ENOENT, "%s cannot be loaded: install the capstone library", LIBRARY);
	*out = &capstone;
	return 0;
}
