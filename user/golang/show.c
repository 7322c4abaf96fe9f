/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/show.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "golang/find.h"

#define FIELD(json, object, name) json_object_set_new(json, #name, json_integer((object)->name))

/* What a program says of itself may be no text at all. NULL: null. */
static json_t *text_to_json(const char *text)
{
	CLEANUP_FREE char *visible = text ? output_visible(text) : NULL;

	return visible ? json_string(visible) : json_null();
}

static json_t *hex(__u64 number)
{
	return json_sprintf("%#llx", number);
}

/* "AX", "8(SP)" */
static json_t *word_to_json(const struct golang *go, const struct golang_word *word)
{
	static const char *const amd64[] = { "AX", "BX", "CX", "DI", "SI", "R8", "R9", "R10", "R11" };

	if (word->on_stack)
		return json_sprintf("%u(SP)", word->stack);
	if (golang_build(go)->machine[1] == 'm' && word->reg < sizeof(amd64) / sizeof(*amd64))
		return json_string(amd64[word->reg]);
	return json_sprintf("R%u", word->reg);
}

static void add_place(json_t *places, const char *what, const char *name, const struct golang_place *place)
{
	json_array_append_new(places, json_pack("{ss so so so}", "what", what, "name", text_to_json(name), "address",
						hex(place->address), "offset", hex(place->offset)));
}

static void add_function(json_t *places, const char *what, const struct golang_function *function)
{
	add_place(places, what, function->name, &function->begin);
}

static void add_returns(json_t *places, const struct golang_function *function, const struct golang_returns *returns)
{
	for (unsigned int i = 0; i < returns->n; i++)
		add_place(places, "return", function->name, &returns->places[i]);
}

static json_t *request_to_json(const struct golang_http_request *request)
{
	json_t *json = json_object();

	FIELD(json, request, method);
	FIELD(json, request, host);
	FIELD(json, request, remote_addr);
	FIELD(json, request, request_uri);
	FIELD(json, request, proto_major);
	FIELD(json, request, url);
	FIELD(json, request, url_path);
	FIELD(json, request, header);
	FIELD(json, request, context);
	return json;
}

static json_t *user_to_json(const struct golang_user *user)
{
	json_t *json = json_pack("{so so}", "itab", hex(user->itab), "type", hex(user->type));

	FIELD(json, user, name);
	FIELD(json, user, uid);
	FIELD(json, user, groups);
	FIELD(json, user, extra);
	return json;
}

static void add_asked(json_t *json, const struct golang_asked *asked)
{
	FIELD(json, asked, is_resource);
	FIELD(json, asked, verb);
	FIELD(json, asked, namespace);
	FIELD(json, asked, api_group);
	FIELD(json, asked, api_version);
	FIELD(json, asked, resource);
	FIELD(json, asked, subresource);
	FIELD(json, asked, name);
	FIELD(json, asked, path);
}

static json_t *info_to_json(const struct golang_request_info *info)
{
	json_t *json = json_pack("{so}", "type", hex(info->type));

	add_asked(json, &info->asked);
	return json;
}

static json_t *attributes_to_json(const struct golang_attributes *attributes)
{
	json_t *json = json_pack("{so}", "itab", hex(attributes->itab));

	FIELD(json, attributes, user);
	add_asked(json, &attributes->asked);
	return json;
}

/* Each fills in places and layout, or err. */
typedef int show_finding(struct golang *go, json_t *places, json_t *layout, struct error *err);

static int show_http(struct golang *go, json_t *places, json_t *layout, struct error *err)
{
	struct golang_http found;
	int ret = golang_find_http(go, &found, err);

	if (ret)
		return ret;
	add_function(places, "begin", &found.serve);
	add_returns(places, &found.serve, &found.returns);
	json_object_set_new(layout, "arguments",
			    json_pack("{so so}", "writer", word_to_json(go, &found.writer), "request",
				      word_to_json(go, &found.request)));
	json_object_set_new(layout, "http.ResponseWriter", json_pack("{si}", "write_header", (int)found.write_header));
	json_object_set_new(layout, "http.Request", request_to_json(&found.fields));
	return 0;
}

static int show_authorization(struct golang *go, json_t *places, json_t *layout, struct error *err)
{
	struct golang_authorization found;
	int ret = golang_find_authorization(go, &found, err);

	if (ret)
		return ret;
	add_function(places, "begin", &found.filter);
	add_returns(places, &found.filter, &found.filter_returns);
	add_function(places, "begin", &found.get);
	add_returns(places, &found.get, &found.returns);
	json_object_set_new(layout, "arguments",
			    json_pack("{so so so}", "writer", word_to_json(go, &found.writer), "request",
				      word_to_json(go, &found.request), "record", word_to_json(go, &found.record)));
	json_object_set_new(layout, "authorizer.AttributesRecord", attributes_to_json(&found.attributes));
	json_object_set_new(layout, "user.DefaultInfo", user_to_json(&found.user));
	return 0;
}

static int show_apf(struct golang *go, json_t *places, json_t *layout, struct error *err)
{
	struct golang_apf found;
	int ret = golang_find_apf(go, &found, err);

	if (ret)
		return ret;
	add_function(places, "begin", &found.handle);
	add_returns(places, &found.handle, &found.returns);
	add_function(places, "begin", &found.filter);
	for (unsigned int i = 0; i < found.n_execute; i++)
		add_function(places, "execute", &found.execute[i]);
	json_object_set_new(layout, "arguments",
			    json_pack("{so so so so}", "info", word_to_json(go, &found.info), "user_itab",
				      word_to_json(go, &found.user_itab), "user_data",
				      word_to_json(go, &found.user_data), "execute",
				      word_to_json(go, &found.execute_value)));
	json_object_set_new(layout, "skippable", json_boolean(found.skippable));
	json_object_set_new(layout, "request.RequestInfo", info_to_json(&found.fields));
	json_object_set_new(layout, "user.DefaultInfo", user_to_json(&found.user));
	return 0;
}

static int show_by_memory(struct golang *go, json_t *places, json_t *layout, struct error *err)
{
	struct golang_apf apf;
	struct golang_by_memory found;
	int ret = golang_find_apf(go, &apf, err) ?: golang_find_by_memory(go, &apf, &found, err);

	if (ret)
		return ret;
	add_place(places, "write", apf.handle.name, &found.execute.place);
	json_object_set_new(layout, "execute", json_sprintf("%u(SP)", found.execute.stack));
	json_object_set_new(layout, "nothing",
			    json_pack("{so so}", "value", hex(found.value), "name", text_to_json(found.name)));
	return 0;
}

static int show_max_in_flight(struct golang *go, json_t *places, json_t *layout, struct error *err)
{
	struct golang_max_in_flight found;
	int ret = golang_find_max_in_flight(go, &found, err);

	if (ret)
		return ret;
	add_function(places, "begin", &found.filter);
	add_returns(places, &found.filter, &found.returns);
	add_place(places, "send", found.filter.name, &found.send.place);
	json_object_set_new(layout, "arguments", json_pack("{so}", "request", word_to_json(go, &found.request)));
	return 0;
}

static int show_context(struct golang *go, json_t *places, json_t *layout, struct error *err)
{
	struct golang_context found;
	json_t *others = json_array();
	int ret = golang_find_context(go, &found, err);

	(void)places;
	for (unsigned int i = 0; !ret && i < found.n_others; i++)
		json_array_append_new(others, json_pack("{so si}", "itab", hex(found.others[i].itab), "parent",
							(int)found.others[i].parent));
	if (!ret)
		json_object_set_new(layout, "context.valueCtx",
				    json_pack("{so si si}", "itab", hex(found.value_itab), "parent",
					      (int)found.value_parent, "value", (int)found.value));
	json_object_set_new(layout, "parents", others);
	return ret;
}

static int show_user_key(struct golang *go, json_t *places, json_t *layout, struct error *err)
{
	struct golang_user_key found;
	int ret = golang_find_user_key(go, &found, err);

	(void)places;
	if (!ret)
		json_object_set_new(layout, "request.key",
				    json_pack("{so sI}", "type", hex(found.type), "value", (json_int_t)found.value));
	return ret;
}

static int show_goexit(struct golang *go, json_t *places, json_t *layout, struct error *err)
{
	struct golang_function found;
	int ret = golang_find_goexit(go, &found, err);

	(void)layout;
	if (!ret)
		add_function(places, "begin", &found);
	return ret;
}

static const struct {
	const char *name;
	show_finding *show;
} findings[] = {
	{ "http", show_http },
	{ "authorization", show_authorization },
	{ "priority_and_fairness", show_apf },
	{ "answer_by_memory", show_by_memory },
	{ "max_in_flight", show_max_in_flight },
	{ "context", show_context },
	{ "user_key", show_user_key },
	{ "goexit", show_goexit },
};

static json_t *finding_to_json(struct golang *go, size_t i)
{
	json_t *places = json_array(), *layout = json_object();
	struct error err = { 0 };
	bool found = !findings[i].show(go, places, layout, &err);

	return json_pack("{ss sb so so so}", "finding", findings[i].name, "found", found, "why",
			 text_to_json(found ? NULL : err.text), "places", places, "layout", layout);
}

json_t *golang_to_json(struct golang *go)
{
	const struct golang_build *build = golang_build(go);
	CLEANUP_FREE char *kubernetes = NULL;
	json_t *found = json_array();

	golang_find_kubernetes_version(go, &kubernetes, NULL);
	for (size_t i = 0; i < sizeof(findings) / sizeof(*findings); i++)
		json_array_append_new(found, finding_to_json(go, i));
	return json_pack("{so so so so ss sb si si so so}", "go", text_to_json(build->version), "path",
			 text_to_json(build->path), "module", text_to_json(build->module), "module_version",
			 text_to_json(build->module_version), "machine", build->machine, "pie", build->pie, "functions",
			 (int)build->functions, "itabs", (int)build->itabs, "kubernetes", text_to_json(kubernetes),
			 "found", found);
}
