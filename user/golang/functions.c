/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/functions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "golang/code.h"

#define VENDOR "vendor/"

/* What stands behind the prefix of a vendored package. */
static const char *unvendored(const char *name)
{
	const char *found = strstr(name, VENDOR);

	return found && (found == name || found[-1] == '/') ? found + strlen(VENDOR) : name;
}

int function_find(struct golang *go, const char *name, struct pclntab_function *out, struct error *err)
{
	struct pclntab_function function, found = { 0 };

	for (__u32 i = 0; i < go->table.n; i++) {
		if (!pclntab_function(&go->image, &go->table, i, &function) ||
		    strcmp(unvendored(function.name), name) != 0)
			continue;
		if (found.name)
			return error_set(err, -ENOTUNIQ,
					 "two functions could be %.120s: %.160s (%#llx) and %.160s (%#llx)", name,
					 found.name, found.address, function.name, function.address);
		found = function;
	}
	if (!found.name)
		return error_set(err, -ENOENT, "no function %.200s among its %u", name, go->table.n);
	*out = found;
	return 0;
}

int function_find_any(struct golang *go, const char *const *names, struct pclntab_function *out, struct error *err)
{
	struct error why = { 0 };
	int ret = -ENOENT;

	for (; *names && ret == -ENOENT; names++)
		ret = function_find(go, *names, out, &why);
	return ret ? error_set(err, ret, "%s", why.text) : 0;
}

bool function_exists(struct golang *go, const char *name)
{
	struct pclntab_function function;

	return function_find(go, name, &function, NULL) != -ENOENT;
}

bool function_at(struct golang *go, __u64 address, struct pclntab_function *out)
{
	struct pclntab_function function;

	for (__u32 i = 0; i < go->table.n; i++)
		if (pclntab_function(&go->image, &go->table, i, &function) && function.address == address) {
			*out = function;
			return true;
		}
	return false;
}

int function_describe(struct golang *go, const struct pclntab_function *function, struct golang_function *out,
		      struct error *err)
{
	struct golang_function found = { .address = function->address };
	int ret = code_begin(go, function, &found, err);

	if (ret)
		return ret;
	snprintf(found.name, sizeof(found.name), "%s", function->name);
	*out = found;
	return 0;
}

/* "NAME.func12", and nothing behind it. */
static bool is_closure(const char *function, const char *name)
{
	size_t size = strlen(name);
	const char *digits;

	if (strncmp(function, name, size) != 0 || function[size] != '.')
		return false;
	digits = function + size + 1;
	if (!strncmp(digits, "func", 4))
		digits += 4;
	return *digits && !digits[strspn(digits, "0123456789")];
}

int function_closures(struct golang *go, const char *name, struct golang_function *out, unsigned int max,
		      struct error *err)
{
	struct pclntab_function function;
	unsigned int n = 0;

	for (__u32 i = 0; i < go->table.n; i++) {
		int ret;

		if (!pclntab_function(&go->image, &go->table, i, &function) ||
		    !is_closure(unvendored(function.name), name))
			continue;
		if (n == max)
			return error_set(err, -ENOTSUP, "%.200s has more closures than weir can probe (%u)", name, max);
		ret = function_describe(go, &function, &out[n], err);
		if (ret)
			return ret;
		n++;
	}
	return (int)n;
}
