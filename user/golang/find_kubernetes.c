/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "golang/arguments.h"
#include "golang/code.h"
#include "golang/fields.h"
#include "golang/find.h"
#include "golang/functions.h"
#include "golang/kubernetes.h"
#include "golang/types.h"

#define MAX_ADDRESSES 256
#define MAX_VERSION 64
#define MAX_KEYS 16

/* Does an instruction of the function speak of this address? */
static int check_refers(struct golang *go, const struct pclntab_function *function, __u64 address, const char *what,
			struct error *err)
{
	__u64 addresses[MAX_ADDRESSES];
	int n = code_addresses(go, function, addresses, MAX_ADDRESSES, err);

	for (int i = 0; i < n; i++)
		if (addresses[i] == address)
			return 0;
	return n < 0 ? n : error_set(err, -ENOTSUP, "%.200s does not return a %s", function->name, what);
}

/* GetAuthorizerAttributes returns (authorizer.Attributes, error): the first two registers are a *AttributesRecord. */
static int find_get(struct golang *go, struct golang_authorization *found, struct pclntab_function *get,
		    struct error *err)
{
	found->record_itab = (struct golang_word){ .reg = 0 };
	found->record = (struct golang_word){ .reg = 1 };
	return function_find(go, "k8s.io/apiserver/pkg/endpoints/filters.GetAuthorizerAttributes", get, err) ?:
		       kubernetes_attributes(go, &found->attributes, err)				     ?:
		       check_refers(go, get, found->attributes.itab, "*authorizer.AttributesRecord", err)    ?:
		       function_describe(go, get, &found->get, err)					     ?:
		       code_returns(go, get, &found->returns, err);
}

static int find_filter(struct golang *go, struct golang_authorization *found, const struct pclntab_function *get,
		       struct error *err)
{
	static const char *const names[] = {
		"k8s.io/apiserver/pkg/endpoints/filters.WithAuthorization.func1",
		"k8s.io/apiserver/pkg/endpoints/filters.withAuthorization.func1",
		"k8s.io/apiserver/pkg/endpoints/filters.WithAuthorization.withAuthorization.func1",
		NULL,
	};
	struct pclntab_function filter;
	struct golang_call call;

	return function_find_any(go, names, &filter, err)			   ?:
		       code_call(go, &filter, get->address, get->name, &call, err) ?:
		       function_describe(go, &filter, &found->filter, err)	   ?:
		       code_returns(go, &filter, &found->filter_returns, err);
}

int golang_find_authorization(struct golang *go, struct golang_authorization *out, struct error *err)
{
	struct golang_authorization found = { 0 };
	struct pclntab_function get;
	struct type handler;
	int ret;

	ret = find_get(go, &found, &get, err)							      ?:
		      find_filter(go, &found, &get, err)					      ?:
		      kubernetes_user(go, &found.user, err)					      ?:
		      http_handler_type(go, &handler, err)					      ?:
		      http_handler_arguments(go, &handler, false, &found.writer, &found.request, err) ?:
		      http_write_header(go, &handler, &found.write_header, err)			      ?:
		      http_request_fields(go, &handler, &found.fields, err);
	if (!ret)
		*out = found;
	return ret;
}

int golang_find_max_in_flight(struct golang *go, struct golang_max_in_flight *out, struct error *err)
{
	struct golang_max_in_flight found = { 0 };
	struct pclntab_function filter, send;
	struct golang_word writer;
	struct type handler;
	int ret;

	ret = function_find(go, "k8s.io/apiserver/pkg/server/filters.WithMaxInFlightLimit.func1", &filter, err) ?:
		      function_find(go, "runtime.selectnbsend", &send, err)					?:
		      code_call(go, &filter, send.address, send.name, &found.send, err)				?:
		      function_describe(go, &filter, &found.filter, err)					?:
		      code_returns(go, &filter, &found.returns, err)						?:
		      http_handler_type(go, &handler, err)							?:
		      http_handler_arguments(go, &handler, false, &writer, &found.request, err)			?:
		      http_request_fields(go, &handler, &found.fields, err);
	if (!ret)
		*out = found;
	return ret;
}

/* The key that a function asks a context for, of this type of the package `request`; -ENOENT, -ENOTUNIQ. */
static int key_of(struct golang *go, const struct pclntab_function *function, struct golang_user_key *out,
		  struct error *err)
{
	struct golang_user_key found = { 0 };
	struct code_pair pairs[MAX_KEYS];
	int n = code_pairs(go, function, pairs, MAX_KEYS, err);

	for (int i = 0; i < n; i++) {
		struct golang_user_key key = { .type = pairs[i].second };
		struct type type;

		if (!type_read(go, key.type, &type) || !type_is(&type, "request.key") || type.size != sizeof(__u64) ||
		    !type_is_of(go, &type, "k8s.io/apiserver/pkg/endpoints/request") ||
		    !image_u64(&go->image, pairs[i].third, &key.value))
			continue;
		if (found.type && (found.type != key.type || found.value != key.value))
			return error_set(err, -ENOTUNIQ, "%.200s asks for more than one request.key", function->name);
		found = key;
	}
	if (n < 0)
		return n;
	if (!found.type)
		return error_set(err, -ENOENT, "%.200s asks for no request.key", function->name);
	*out = found;
	return 0;
}

/* By UserFrom, or where that is inlined. */
int golang_find_user_key(struct golang *go, struct golang_user_key *out, struct error *err)
{
	static const char *const names[] = {
		"k8s.io/apiserver/pkg/endpoints/request.UserFrom",
		"k8s.io/apiserver/pkg/endpoints/filters.GetAuthorizerAttributes",
		NULL,
	};
	struct pclntab_function function;

	return function_find_any(go, names, &function, err) ?: key_of(go, &function, out, err);
}

/* "v1.20.2": a string variable that is loaded from this place. What nobody has set has a $Format$ in it. */
static char *version_at(struct golang *go, __u64 address)
{
	const char *text;
	__u64 at, size;

	if (address % 8 || !image_u64(&go->image, address, &at) || !image_u64(&go->image, address + 8, &size) ||
	    size < 4 || size > MAX_VERSION)
		return NULL;
	text = image_at(&go->image, at, size);
	if (!text || text[0] != 'v' || text[1] < '0' || text[1] > '9' || !memchr(text, '.', size) ||
	    memchr(text, '$', size))
		return NULL;
	return strndup(text, size);
}

/* The first version that a function loads; NULL: none. */
static char *version_of(struct golang *go, const struct pclntab_function *function)
{
	__u64 addresses[MAX_ADDRESSES];
	int n = code_addresses(go, function, addresses, MAX_ADDRESSES, NULL);
	char *version = NULL;

	for (int i = 0; i < n && !version; i++)
		version = version_at(go, addresses[i]);
	return version;
}

int golang_find_kubernetes_version(struct golang *go, char **out, struct error *err)
{
	/* In newer ones Get() loads what the package's init() has stored. */
	static const char *const names[] = {
		"k8s.io/component-base/version.Get",
		"k8s.io/component-base/version.init.0",
	};
	char *version = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !version; i++) {
		struct pclntab_function function;
		struct error why = { 0 };
		int ret = function_find(go, names[i], &function, &why);

		if (ret == -ENOENT)
			continue;
		if (ret)
			return error_set(err, ret, "%s", why.text);
		version = version_of(go, &function);
	}
	if (!version)
		return error_set(err, -ENOENT, "no function of k8s.io/component-base/version loads a version");
	*out = version;
	return 0;
}
