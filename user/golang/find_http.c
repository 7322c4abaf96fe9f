/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "golang/code.h"
#include "golang/fields.h"
#include "golang/find.h"
#include "golang/functions.h"

/* Where the compiler has put the function into its callers, no probe sees it. */
static int check_called(struct golang *go, const char *caller, const struct pclntab_function *callee, struct error *err)
{
	struct pclntab_function function;
	struct error why = { 0 };
	struct golang_call call;
	int ret = function_find(go, caller, &function, &why) ?:
			  code_call(go, &function, callee->address, callee->name, &call, &why);

	return !ret || ret == -ENOTUNIQ ? 0 : error_set(err, ret, "%s", why.text);
}

/* HTTP/2 calls the handler by its interface, which has the function itself or a wrapper that calls it. */
static int check_interface(struct golang *go, const struct pclntab_function *serve, struct error *err)
{
	struct pclntab_function wrapper;
	struct error why = { 0 };
	struct golang_call call;
	struct itab itab;
	__u64 method;
	int ret;

	ret = itab_find(go, "net/http", "http.Handler", "http.serverHandler", &itab, &why);
	if (ret)
		return ret == -ENOENT ? 0 : error_set(err, ret, "%s", why.text);
	if (!itab_method(go, &itab, 0, &method) || !function_at(go, method, &wrapper))
		return error_set(err, -ENOTSUP, "http.serverHandler as a http.Handler has no method");
	return method == serve->address ? 0 : code_call(go, &wrapper, serve->address, serve->name, &call, err);
}

static int find_serve(struct golang *go, struct golang_http *found, struct error *err)
{
	struct pclntab_function function;
	int ret;

	ret = function_find(go, "net/http.serverHandler.ServeHTTP", &function, err);
	if (!ret)
		ret = check_called(go, "net/http.(*conn).serve", &function, err);
	if (!ret)
		ret = check_interface(go, &function, err);
	if (!ret)
		ret = function_describe(go, &function, &found->serve, err);
	return ret ? ret : code_returns(go, &function, &found->returns, err);
}

int golang_find_http(struct golang *go, struct golang_http *out, struct error *err)
{
	struct golang_http found = { 0 };
	struct type handler;
	int ret;

	ret = http_handler_type(go, &handler, err)						     ?:
		      find_serve(go, &found, err)						     ?:
		      http_handler_arguments(go, &handler, true, &found.writer, &found.request, err) ?:
		      http_write_header(go, &handler, &found.write_header, err)			     ?:
		      http_request_fields(go, &handler, &found.fields, err);
	if (!ret)
		*out = found;
	return ret;
}

int golang_find_goexit(struct golang *go, struct golang_function *out, struct error *err)
{
	/* Assembly has a wrapper of its own under the same name: the larger one is Go's. */
	struct pclntab_function function, largest = { 0 };

	for (__u32 i = 0; i < go->table.n; i++)
		if (pclntab_function(&go->image, &go->table, i, &function) &&
		    !strcmp(function.name, "runtime.goexit1") &&
		    (!largest.name || function.end - function.address > largest.end - largest.address))
			largest = function;
	if (!largest.name)
		return error_set(err, -ENOENT, "no function runtime.goexit1 among its %u", go->table.n);
	return function_describe(go, &largest, out, err);
}

int golang_find_goroutine(struct golang *go, __u16 *out, struct error *err)
{
	struct pclntab_function function;

	return function_find(go, "runtime.casgstatus", &function, err) ?: code_swapped(go, &function, out, err);
}
