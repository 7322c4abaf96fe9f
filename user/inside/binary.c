/* SPDX-License-Identifier: GPL-2.0 */
#include "inside/binary.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "golang/find.h"

static int probe_add(struct datapath_binary *binary, enum weir_inside_point point, __u64 offset, __u32 again,
		     struct error *err)
{
	if (binary->n_probes == DATAPATH_BINARY_PROBES)
		return error_set(err, -E2BIG, "more than %d places would have to be probed", DATAPATH_BINARY_PROBES);
	binary->probes[binary->n_probes++] = (struct datapath_probe){
		.point = point,
		.again = again,
		.offset = offset,
	};
	return 0;
}

static int begin_add(struct datapath_binary *binary, enum weir_inside_point point,
		     const struct golang_function *function, struct error *err)
{
	return probe_add(binary, point, function->begin.offset, function->again, err);
}

/* The same, where who cannot read a request may send it to where the stack grows. */
static int patient_add(struct datapath_binary *binary, enum weir_inside_point point,
		       const struct golang_function *function, struct error *err)
{
	int ret = begin_add(binary, point, function, err);

	if (ret || !function->grows.address)
		return ret;
	binary->probes[binary->n_probes - 1].grows = true;
	return probe_add(binary, WEIR_INSIDE_GROWS, function->grows.offset, 0, err);
}

static int returns_add(struct datapath_binary *binary, enum weir_inside_point point,
		       const struct golang_returns *returns, struct error *err)
{
	int ret = 0;

	for (unsigned int i = 0; i < returns->n && !ret; i++)
		ret = probe_add(binary, point, returns->places[i].offset, 0, err);
	return ret;
}

/* Where requests end: in these returns, or, after a panic, with their goroutine. */
static int ends_add(struct golang *go, struct datapath_binary *binary, const struct golang_returns *returns,
		    struct error *err)
{
	struct golang_function goexit;

	return golang_find_goexit(go, &goexit, err)			  ?:
		       returns_add(binary, WEIR_INSIDE_END, returns, err) ?:
		       begin_add(binary, WEIR_INSIDE_GOEXIT, &goexit, err);
}

static int register_of(const struct golang_word *word, const char *what, __u8 *out, struct error *err)
{
	if (word->on_stack || word->reg >= WEIR_INSIDE_REGISTERS)
		return error_set(err, -ENOTSUP, "%s is not in a register", what);
	*out = word->reg;
	return 0;
}

/* A struct that is read at once has to reach so far that this field is in it. Words are read whole. */
static int reach(__u16 *size, __u16 at, __u16 bytes, struct error *err)
{
	if (at % 8 || at + bytes > WEIR_INSIDE_STRUCT_MAX)
		return error_set(err, -ENOTSUP,
				 "a field is %u bytes behind its struct's beginning: weir reads words, and %d bytes",
				 at, WEIR_INSIDE_STRUCT_MAX);
	if (*size < at + bytes)
		*size = at + bytes;
	return 0;
}

#define STRING_BYTES 16 /* an interface has as many */
#define SLICE_BYTES 24

/* context: its offset, where it is read. */
static int request_fields(const struct golang_http_request *fields, struct weir_inside_layout *layout,
			  struct error *err)
{
	__u16 *size = &layout->request_size;

	layout->method = fields->method;
	layout->uri = fields->request_uri;
	layout->peer = fields->remote_addr;
	layout->tls = fields->tls;
	layout->proto_major = fields->proto_major;
	layout->context.request = fields->context;
	return reach(size, fields->method, STRING_BYTES, err)		   ?:
		       reach(size, fields->request_uri, STRING_BYTES, err) ?:
		       reach(size, fields->remote_addr, STRING_BYTES, err) ?:
		       reach(size, fields->context, STRING_BYTES, err)	   ?:
		       reach(size, fields->tls, 8, err)			   ?:
									     reach(size, fields->proto_major, 8, err);
}

static int asked_fields(const struct golang_asked *of, struct weir_inside_fields *out, struct error *err)
{
	const __u16 strings[] = { of->verb,	   of->namespace, of->api_group, of->resource,
				  of->subresource, of->name,	  of->path };
	int ret = 0;

	*out = (struct weir_inside_fields){
		.verb = of->verb,
		.namespace = of->namespace,
		.group = of->api_group,
		.resource = of->resource,
		.subresource = of->subresource,
		.name = of->name,
		.path = of->path,
		.is_resource = of->is_resource,
	};
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings) && !ret; i++)
		ret = reach(&out->size, strings[i], STRING_BYTES, err);
	return ret ?: reach(&out->size, of->is_resource & ~7, 8, err);
}

static int user_fields(const struct golang_user *user, struct weir_inside_layout *layout, struct error *err)
{
	layout->user_itab = user->itab;
	layout->user_name = user->name;
	layout->user_groups = user->groups;
	return reach(&layout->user_size, user->name, STRING_BYTES, err) ?:
		       reach(&layout->user_size, user->groups, SLICE_BYTES, err);
}

/* A request's attributes are asked for behind the handler's beginning; where `has_context`, they are found without that. */
static int see_kubernetes(struct golang *go, const struct golang_authorization *found, bool has_context,
			  struct inside_binary *out, struct error *err)
{
	int ret = register_of(&found->request, "the request", &out->layout.request_in, err)	     ?:
			  register_of(&found->record, "the attributes", &out->layout.record_in, err) ?:
			  request_fields(&found->fields, &out->layout, err)			     ?:
			  user_fields(&found->user, &out->layout, err)				     ?:
			  asked_fields(&found->attributes.asked, &out->layout.record, err)	     ?:
			  reach(&out->layout.record.size, found->attributes.user, STRING_BYTES, err);

	out->layout.user = found->attributes.user;
	if (!ret && has_context)
		ret = begin_add(&out->see, WEIR_INSIDE_CONTEXT, &found->filter, err);
	else if (!ret)
		ret = begin_add(&out->see, WEIR_INSIDE_REQUEST, &found->filter, err) ?:
			      returns_add(&out->see, WEIR_INSIDE_ATTRIBUTES, &found->returns, err);
	return ret ?: ends_add(go, &out->see, &found->filter_returns, err);
}

/* In a register, or a few words above the stack pointer. */
static int word_of(const struct golang_word *word, const char *what, __u8 *out, struct error *err)
{
	if (!word->on_stack)
		return register_of(word, what, out, err);
	if (word->stack % 8 || word->stack / 8 >= WEIR_INSIDE_ON_STACK)
		return error_set(err, -ENOTSUP, "%s is not in a register, or in reach on the stack", what);
	*out = WEIR_INSIDE_ON_STACK | (__u8)(word->stack / 8);
	return 0;
}

/* The two words of an interface. */
static int pair_of(const struct golang_word *first, const struct golang_word *second, const char *what, __u8 *out,
		   struct error *err)
{
	__u8 next = 0;
	int ret = register_of(first, what, out, err) ?: register_of(second, what, &next, err);

	return ret ?: next == *out + 1 ? 0 : error_set(err, -ENOTSUP, "%s is not in two registers", what);
}

void inside_layout_move(struct weir_inside_layout *layout, __u64 bias)
{
	struct weir_inside_context *context = &layout->context;

	layout->user_itab += bias;
	layout->nothing += bias;
	layout->constants_from += bias;
	layout->constants_to += bias;
	context->value_itab += bias;
	context->user_type += bias;
	context->key_type += bias;
	context->info_type += bias;
	for (__u16 i = 0; i < context->n_others; i++)
		context->others[i].itab += bias;
}

/* Whose a request is and what it asks for, in its context: RequestInfo is the type that Priority and Fairness is handed. */
static int context_of(struct golang *go, const struct golang_apf *apf, struct weir_inside_layout *layout,
		      struct error *err)
{
	struct golang_context found;
	struct golang_user_key key = { 0 };
	int ret = golang_find_context(go, &found, err)	      ?:
			  golang_find_user_key(go, &key, err) ?:
								asked_fields(&apf->fields.asked, &layout->info, err);

	if (ret)
		return ret;
	if (found.value_parent != offsetof(struct weir_inside_value_context, parent) ||
	    found.value != offsetof(struct weir_inside_value_context, value))
		return error_set(err, -ENOTSUP, "a context.valueCtx has other fields than weir knows");
	if (found.n_others > WEIR_INSIDE_CONTEXTS)
		return error_set(err, -E2BIG, "there are more than %d kinds of contexts", WEIR_INSIDE_CONTEXTS);
	layout->context = (struct weir_inside_context){
		.value_itab = found.value_itab,
		.user_type = apf->user.type,
		.key_type = key.type,
		.user_key = key.value,
		.info_type = apf->fields.type,
		.request = apf->request.context,
		.n_others = (__u16)found.n_others,
	};
	for (unsigned int i = 0; i < found.n_others; i++)
		layout->context.others[i] = (struct weir_inside_parent){ found.others[i].itab, found.others[i].parent };
	return 0;
}

/* Requests that API Priority and Fairness does not get are refused at the authorization, as those of other servers are. */
static int answer_authorization(struct golang *go, const struct golang_authorization *found, struct inside_binary *out,
				struct error *err)
{
	struct golang_word second = found->writer;

	second.reg++;
	out->layout.write_header = found->write_header;
	return pair_of(&found->writer, &second, "the writer", &out->layout.writer_in, err)   ?:
		       patient_add(&out->answer, WEIR_INSIDE_AUTHORIZE, &found->filter, err) ?:
		       ends_add(go, &out->answer, &found->filter_returns, err);
}

static int answer_kubernetes(struct golang *go, const struct golang_authorization *authorization,
			     const struct golang_apf *apf, struct inside_binary *out, struct error *err)
{
	struct weir_inside_layout *layout = &out->layout;
	int ret = register_of(&apf->filter_request, "the filter's request", &layout->filtered_in, err) ?:
			  register_of(&apf->info, "the request's attributes", &layout->info_in, err)   ?:
			  pair_of(&apf->user_itab, &apf->user_data, "the user", &layout->user_in, err) ?:
			  word_of(&apf->execute_value, "what is executed", &layout->execute_in, err);

	layout->refuses = apf->skippable ? WEIR_INSIDE_REFUSES_AT_HANDLE : WEIR_INSIDE_REFUSES_LATER;
	ret = ret								     ?:
		      answer_authorization(go, authorization, out, err)		     ?:
		      begin_add(&out->answer, WEIR_INSIDE_FILTER, &apf->filter, err) ?:
		      begin_add(&out->answer, WEIR_INSIDE_HANDLE, &apf->handle, err) ?:
		      returns_add(&out->answer, WEIR_INSIDE_HANDLED, &apf->returns, err);
	for (unsigned int i = 0; i < apf->n_execute && !ret; i++)
		ret = begin_add(&out->answer, WEIR_INSIDE_EXECUTE, &apf->execute[i], err);
	return ret;
}

/* The same by memory: what is decided at the authorization cannot be refused. */
static int write_kubernetes(struct golang *go, const struct golang_authorization *authorization,
			    const struct golang_apf *apf, struct inside_binary *out, struct error *err)
{
	struct golang_by_memory found;
	int ret = golang_find_by_memory(go, apf, &found, err);

	if (ret)
		return ret;
	out->layout.nothing = found.value;
	out->layout.handed_at = found.execute.stack;
	ret = begin_add(&out->write, WEIR_INSIDE_AUTHORIZED, &authorization->filter, err) ?:
		      ends_add(go, &out->write, &authorization->filter_returns, err)	  ?:
		      begin_add(&out->write, WEIR_INSIDE_FILTER, &apf->filter, err)	  ?:
		      begin_add(&out->write, WEIR_INSIDE_HANDLE_WRITE, &apf->handle, err) ?:
		      returns_add(&out->write, WEIR_INSIDE_HANDLED, &apf->returns, err);
	if (!ret && !found.execute.at_begin)
		ret = probe_add(&out->write, WEIR_INSIDE_HANDED, found.execute.place.offset, 0, err);
	for (unsigned int i = 0; i < apf->n_execute && !ret; i++)
		ret = begin_add(&out->write, WEIR_INSIDE_EXECUTED, &apf->execute[i], err);
	return ret;
}

static int find_http(struct golang *go, struct inside_binary *out, struct error *err)
{
	struct golang_word second;
	struct golang_http found;
	int ret = golang_find_http(go, &found, err);

	if (ret)
		return ret;
	second = found.writer;
	second.reg++;
	out->layout.write_header = found.write_header;
	return request_fields(&found.fields, &out->layout, err)					  ?:
		       register_of(&found.request, "the request", &out->layout.request_in, err)	  ?:
		       pair_of(&found.writer, &second, "the writer", &out->layout.writer_in, err) ?:
		       begin_add(&out->see, WEIR_INSIDE_HTTP, &found.serve, err)		  ?:
		       patient_add(&out->answer, WEIR_INSIDE_HTTP_ANSWER, &found.serve, err)	  ?:
		       ends_add(go, &out->see, &found.returns, err)				  ?:
		       ends_add(go, &out->answer, &found.returns, err);
}

/* Where it can be seen, but not refused, `no_answer` says why. */
static int find_kubernetes(struct golang *go, const struct golang_authorization *authorization,
			   struct inside_binary *out, struct error *err)
{
	struct golang_apf apf;
	int no_answer = golang_find_apf(go, &apf, &out->no_answer) ?:
								     context_of(go, &apf, &out->layout, &out->no_answer);
	int ret = see_kubernetes(go, authorization, !no_answer, out, err);

	if (ret || no_answer)
		return ret;
	if (answer_kubernetes(go, authorization, &apf, out, &out->no_answer)) {
		out->answer.n_probes = 0;
		return 0;
	}
	if (write_kubernetes(go, authorization, &apf, out, &out->no_write))
		out->write.n_probes = 0;
	return 0;
}

/* A Kubernetes API server, or any other one that has net/http. Where the first is not as it should be, it is not taken for the second. */
static int find(struct golang *go, struct inside_binary *out, struct error *err)
{
	struct golang_authorization kubernetes;
	struct error no_kubernetes = { 0 };
	int ret = golang_find_authorization(go, &kubernetes, &no_kubernetes);

	if (ret == -ENOENT)
		return find_http(go, out, err);
	return ret ? error_set(err, ret, "%s", no_kubernetes.text) : find_kubernetes(go, &kubernetes, out, err);
}

static void describe(struct golang *go, const char *name, struct inside_binary *out)
{
	const struct golang_build *build = golang_build(go);
	CLEANUP_FREE char *version = NULL;

	if (golang_find_kubernetes_version(go, &version, NULL))
		version = NULL;
	snprintf(out->what, sizeof(out->what), "%s%s%s, %s", name, version ? " " : "", version ?: "", build->version);
	out->code = build->code;
	out->pie = build->pie;
	out->layout.constants_from = build->constants_from;
	out->layout.constants_to = build->constants_to;
}

int inside_binary_read(int fd, const char *name, struct inside_binary *out, struct error *err)
{
	CLEANUP_FREE struct inside_binary *binary = calloc(1, sizeof(*binary));
	CLEANUP_GOLANG struct golang *go = NULL;
	int ret = golang_open(fd, &go, err);

	if (ret)
		return ret;
	if (!binary)
		return error_set(err, -ENOMEM, "out of memory");
	if (strcmp(golang_build(go)->machine, "amd64") != 0)
		return error_set(err, -ENOTSUP, "it is for %s: only amd64 is known", golang_build(go)->machine);
	describe(go, name, binary);
	if (golang_find_goroutine(go, &binary->layout.state, NULL))
		binary->layout.state = 0;
	ret = find(go, binary, err);
	if (!ret)
		*out = *binary;
	return ret;
}

#define PAGE 4096

int inside_load_bias(const struct inside_binary *binary, __u64 code, __u64 *bias, struct error *err)
{
	__u64 added = code - binary->code;

	if (added % PAGE || (added && !binary->pie))
		return error_set(err, -ENOTSUP, "its code is at %#llx, and in the file at %#llx", code, binary->code);
	*bias = added;
	return 0;
}
