/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/fields.h"

#include <errno.h>
#include <stddef.h>

#include "golang/arguments.h"

int fields_find(struct golang *go, const struct type *type, const struct wanted_field *wanted, void *out,
		struct error *err)
{
	for (; wanted->name; wanted++) {
		struct type_field field;
		__u16 offset;

		if (!type_field_named(go, type, wanted->name, &field))
			return error_set(err, -ENOTSUP, "%.*s has no field %s", (int)type->text.size, type->text.at,
					 wanted->name);
		if (!type_is(&field.type, wanted->type) || field.offset > 0xffff)
			return error_set(err, -ENOTSUP, "the field %s of %.*s is a %.*s, not a %s", wanted->name,
					 (int)type->text.size, type->text.at, (int)field.type.text.size,
					 field.type.text.at, wanted->type);
		offset = (__u16)field.offset;
		memcpy((char *)out + wanted->out, &offset, sizeof(offset));
	}
	return 0;
}

int http_handler_type(struct golang *go, struct type *out, struct error *err)
{
	static const char expected[] = "func(http.ResponseWriter, *http.Request)";
	unsigned int place;
	struct itab itab;
	struct type type;

	for (unsigned int i = 0; i < go->build.itabs; i++) {
		if (!itab_at(go, i, &itab) || !type_is(&itab.interface, "http.Handler"))
			continue;
		if (!type_method(go, &itab.interface, "ServeHTTP", &place, &type) || !type_is(&type, expected))
			return error_set(err, -ENOTSUP, "http.Handler has no method ServeHTTP that is a %s", expected);
		*out = type;
		return 0;
	}
	return error_set(err, -ENOENT, "nothing in it is a http.Handler: it is no net/http server");
}

int http_request_fields(struct golang *go, const struct type *handler, struct golang_http_request *out,
			struct error *err)
{
	static const struct wanted_field wanted[] = {
		{ "Method", "string", offsetof(struct golang_http_request, method) },
		{ "Host", "string", offsetof(struct golang_http_request, host) },
		{ "RemoteAddr", "string", offsetof(struct golang_http_request, remote_addr) },
		{ "RequestURI", "string", offsetof(struct golang_http_request, request_uri) },
		{ "URL", "*url.URL", offsetof(struct golang_http_request, url) },
		{ "Header", "http.Header", offsetof(struct golang_http_request, header) },
		{ "TLS", "*tls.ConnectionState", offsetof(struct golang_http_request, tls) },
		{ "ProtoMajor", "int", offsetof(struct golang_http_request, proto_major) },
		{ "ctx", "context.Context", offsetof(struct golang_http_request, context) },
		{ 0 },
	};
	static const struct wanted_field in_url[] = {
		{ "Path", "string", offsetof(struct golang_http_request, url_path) },
		{ "RawQuery", "string", offsetof(struct golang_http_request, url_query) },
		{ 0 },
	};
	struct golang_http_request request = { 0 };
	struct type pointer, type, url;
	struct type_field field;
	int ret;

	if (!type_parameter(go, handler, 1, &pointer) || !type_element(go, &pointer, &type))
		return error_set(err, -ENOTSUP, "the type *http.Request is damaged");
	ret = fields_find(go, &type, wanted, &request, err);
	if (ret)
		return ret;
	if (!type_field_named(go, &type, "URL", &field) || !type_element(go, &field.type, &url))
		return error_set(err, -ENOTSUP, "the type *url.URL is damaged");
	ret = fields_find(go, &url, in_url, &request, err);
	if (!ret)
		*out = request;
	return ret;
}

int http_handler_arguments(struct golang *go, const struct type *handler, bool method, struct golang_word *writer,
			   struct golang_word *request, struct error *err)
{
	struct argument receiver, first, second;
	struct arguments arguments;
	struct type type;

	arguments_begin(&arguments, go);
	if (method)
		arguments_pointer(&arguments, &receiver);
	if (!type_parameter(go, handler, 0, &type) || !arguments_next(&arguments, &type, &first) || first.n != 2 ||
	    !type_parameter(go, handler, 1, &type) || !arguments_next(&arguments, &type, &second) || second.n != 1)
		return error_set(err, -ENOTSUP, "the types of a http.Handler's arguments are damaged");
	*writer = first.words[0];
	*request = second.words[0];
	return 0;
}

int http_write_header(struct golang *go, const struct type *handler, __u16 *offset, struct error *err)
{
	struct type writer, method;
	unsigned int place;

	if (!type_parameter(go, handler, 0, &writer) || !type_is(&writer, "http.ResponseWriter"))
		return error_set(err, -ENOTSUP, "the type http.ResponseWriter is damaged");
	if (!type_method(go, &writer, "WriteHeader", &place, &method) || !type_is(&method, "func(int)"))
		return error_set(err, -ENOTSUP, "http.ResponseWriter has no method WriteHeader that is a func(int)");
	*offset = itab_method_offset(place);
	return 0;
}
