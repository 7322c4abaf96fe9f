/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>

#include "golang/arguments.h"
#include "golang/code.h"
#include "golang/fields.h"
#include "golang/find.h"
#include "golang/functions.h"
#include "golang/kubernetes.h"

#define FLOWCONTROL "k8s.io/apiserver/pkg/util/flowcontrol"
#define FILTERS "k8s.io/apiserver/pkg/server/filters"
#define HANDLER FILTERS ".(*priorityAndFairnessHandler).Handle"
#define CLOSURE FILTERS ".WithPriorityAndFairness.func1"

/* What Handle takes, held against the interface that it is called by: type: its type; -ENOTSUP. */
static int handle_type(struct golang *go, const struct pclntab_function *handle, struct type *out, struct error *err)
{
	struct itab itab;
	unsigned int place;
	__u64 method;
	int ret;

	ret = itab_find(go, FLOWCONTROL, "flowcontrol.Interface", "*flowcontrol.configController", &itab, err);
	if (ret)
		return ret;
	if (!type_method(go, &itab.interface, "Handle", &place, out) || !itab_method(go, &itab, place, &method))
		return error_set(err, -ENOTSUP, "flowcontrol.Interface has no method Handle");
	if (method != handle->address)
		return error_set(err, -ENOTSUP, "flowcontrol.Interface calls %#llx for Handle, not %.200s (%#llx)",
				 method, handle->name, handle->address);
	return 0;
}

/* flowcontrol.RequestDigest{RequestInfo *request.RequestInfo, User user.Info} */
static int read_digest(struct golang *go, const struct type *digest, struct golang_apf *found, struct error *err)
{
	struct type_field info, user;

	if (!type_field(go, digest, 0, &info) || !type_field(go, digest, 1, &user) || digest->size != 24 ||
	    !type_is(&info.type, "*request.RequestInfo") || !type_is(&user.type, "user.Info"))
		return error_set(err, -ENOTSUP,
				 "flowcontrol.RequestDigest is not a *request.RequestInfo and a user.Info");
	return kubernetes_request_info(go, &info.type, &found->fields, err);
}

/* Among the parameters, one is the digest, and the last is the func() that is to be executed. */
static int read_parameters(struct golang *go, const struct type *handle, struct golang_apf *found, struct error *err)
{
	unsigned int n = type_parameters(go, handle), digests = 0;
	struct arguments arguments;
	struct argument argument = { 0 };
	struct type type = { 0 };

	arguments_begin(&arguments, go);
	arguments_pointer(&arguments, &argument);
	for (unsigned int i = 0; i < n; i++) {
		int ret;

		if (!type_parameter(go, handle, i, &type) || !arguments_next(&arguments, &type, &argument))
			return error_set(err, -ENOTSUP, "the types of Handle's arguments are damaged");
		if (!type_is(&type, "flowcontrol.RequestDigest"))
			continue;
		ret = read_digest(go, &type, found, err);
		if (ret || argument.n != 3)
			return ret ?: error_set(err, -ENOTSUP, "flowcontrol.RequestDigest has not three words");
		found->info = argument.words[0];
		found->user_itab = argument.words[1];
		found->user_data = argument.words[2];
		digests++;
	}
	if (digests != 1 || !type_is(&type, "func()") || argument.n != 1)
		return error_set(err, -ENOTSUP, "Handle is a %.*s: not a digest, ..., and a func() as weir knows it",
				 (int)handle->text.size, handle->text.at);
	found->execute_value = argument.words[0];
	return 0;
}

static int find_handle(struct golang *go, struct golang_apf *found, struct error *err)
{
	struct pclntab_function handle;
	struct type type;

	return function_find(go, FLOWCONTROL ".(*configController).Handle", &handle, err) ?:
		       handle_type(go, &handle, &type, err)				  ?:
		       read_parameters(go, &type, found, err)				  ?:
		       function_describe(go, &handle, &found->handle, err)		  ?:
		       code_returns(go, &handle, &found->returns, err);
}

/* The filter, and its closures: one of them is handed to Handle. */
static int find_filter(struct golang *go, struct golang_apf *found, struct error *err)
{
	struct golang_word writer;
	struct pclntab_function filter;
	struct error why = { 0 };
	struct type handler;
	bool method = true;
	int ret;

	ret = function_find(go, HANDLER, &filter, &why);
	if (ret == -ENOENT) {
		method = false;
		ret = function_find(go, CLOSURE, &filter, &why);
	}
	if (ret)
		return error_set(err, ret, "%s", why.text);
	ret = function_describe(go, &filter, &found->filter, err)					 ?:
		      http_handler_type(go, &handler, err)						 ?:
		      http_handler_arguments(go, &handler, method, &writer, &found->filter_request, err) ?:
		      http_request_fields(go, &handler, &found->request, err);
	if (ret)
		return ret;
	ret = function_closures(go, method ? HANDLER : CLOSURE, found->execute, GOLANG_MAX_EXECUTE, err);
	if (ret < 0)
		return ret;
	found->n_execute = (unsigned int)ret;
	return ret ? 0 : error_set(err, -ENOENT, "%.200s has no closures", filter.name);
}

/* From 1.28 on the filter notes what it has rejected under the level that Handle had told it: none, if Handle was skipped. */
static bool is_skippable(struct golang *go)
{
	return !function_exists(go, FLOWCONTROL ".(*droppedRequestsTracker).RecordDroppedRequest");
}

int golang_find_apf(struct golang *go, struct golang_apf *out, struct error *err)
{
	struct golang_apf found = { 0 };
	int ret;

	ret = find_handle(go, &found, err) ?: find_filter(go, &found, err) ?: kubernetes_user(go, &found.user, err);
	if (ret)
		return ret;
	found.skippable = is_skippable(go);
	*out = found;
	return 0;
}
