/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/kubernetes.h"

#include <errno.h>
#include <stddef.h>

#include "golang/fields.h"

int kubernetes_user(struct golang *go, struct golang_user *out, struct error *err)
{
	static const struct wanted_field wanted[] = {
		{ "Name", "string", offsetof(struct golang_user, name) },
		{ "UID", "string", offsetof(struct golang_user, uid) },
		{ "Groups", "[]string", offsetof(struct golang_user, groups) },
		{ "Extra", "map[string][]string", offsetof(struct golang_user, extra) },
		{ 0 },
	};
	struct golang_user user = { 0 };
	struct itab itab;
	struct type type;
	int ret;

	ret = itab_find(go, "k8s.io/apiserver/pkg/authentication/user", "user.Info", "*user.DefaultInfo", &itab, err);
	if (ret)
		return ret;
	user.itab = itab.address;
	user.type = itab.type.address;
	if (!type_element(go, &itab.type, &type))
		return error_set(err, -ENOTSUP, "the type *user.DefaultInfo is damaged");
	ret = fields_find(go, &type, wanted, &user, err);
	if (!ret)
		*out = user;
	return ret;
}

/* is_resource: what the field is called that says so. */
static int asked_find(struct golang *go, const struct type *type, const char *is_resource, struct golang_asked *out,
		      struct error *err)
{
	static const struct wanted_field wanted[] = {
		{ "Verb", "string", offsetof(struct golang_asked, verb) },
		{ "Namespace", "string", offsetof(struct golang_asked, namespace) },
		{ "APIGroup", "string", offsetof(struct golang_asked, api_group) },
		{ "APIVersion", "string", offsetof(struct golang_asked, api_version) },
		{ "Resource", "string", offsetof(struct golang_asked, resource) },
		{ "Subresource", "string", offsetof(struct golang_asked, subresource) },
		{ "Name", "string", offsetof(struct golang_asked, name) },
		{ "Path", "string", offsetof(struct golang_asked, path) },
		{ 0 },
	};
	const struct wanted_field flag[] = {
		{ is_resource, "bool", offsetof(struct golang_asked, is_resource) },
		{ 0 },
	};

	return fields_find(go, type, wanted, out, err) ?: fields_find(go, type, flag, out, err);
}

int kubernetes_request_info(struct golang *go, const struct type *pointer, struct golang_request_info *out,
			    struct error *err)
{
	struct golang_request_info info = { .type = pointer->address };
	struct type type;
	int ret;

	if (!type_is(pointer, "*request.RequestInfo") || !type_element(go, pointer, &type))
		return error_set(err, -ENOTSUP, "a %.*s stands where a *request.RequestInfo should",
				 (int)pointer->text.size, pointer->text.at);
	ret = asked_find(go, &type, "IsResourceRequest", &info.asked, err);
	if (!ret)
		*out = info;
	return ret;
}

int kubernetes_attributes(struct golang *go, struct golang_attributes *out, struct error *err)
{
	static const struct wanted_field wanted[] = {
		{ "User", "user.Info", offsetof(struct golang_attributes, user) },
		{ 0 },
	};
	struct golang_attributes attributes = { 0 };
	struct itab itab;
	struct type type;
	int ret;

	ret = itab_find(go, "k8s.io/apiserver/pkg/authorization/authorizer", "authorizer.Attributes",
			"*authorizer.AttributesRecord", &itab, err);
	if (ret)
		return ret;
	attributes.itab = itab.address;
	if (!type_element(go, &itab.type, &type))
		return error_set(err, -ENOTSUP, "the type *authorizer.AttributesRecord is damaged");
	ret = fields_find(go, &type, wanted, &attributes, err) ?:
		      asked_find(go, &type, "ResourceRequest", &attributes.asked, err);
	if (!ret)
		*out = attributes;
	return ret;
}
