/* SPDX-License-Identifier: GPL-2.0 */
#include "golang_fixture_private.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define APISERVER "k8s.io/kubernetes/vendor/k8s.io/apiserver/pkg/"
#define FILTERS APISERVER "server/filters."
#define FLOW APISERVER "util/flowcontrol."

/* --- Types */

struct wanted_type {
	int kind;
	const char *text, *package; /* package: NULL: it has no name */
	__u64 size;
	__u64 element; /* of a pointer */
};

static __u64 add_name(struct builder *b, const char *text)
{
	size_t size = strlen(text);
	__u8 bytes[3] = { 0, (__u8)(size & 0x7f) | (size > 127 ? 0x80 : 0), (__u8)(size >> 7) };
	__u64 address = fixture_add(b, &b->types, bytes, size > 127 ? 3 : 2);

	fixture_add(b, &b->types, text, size);
	return address;
}

/* The header, and what follows it up to the name's package: words that the caller fills in. */
static __u64 add_type(struct builder *b, struct wanted_type want, unsigned int words, const __u64 *more)
{
	__u64 name = add_name(b, want.text), package = want.package ? add_name(b, want.package) : 0, address;
	__u8 header[48] = { 0 };
	__u32 hash = (__u32)(name * 2654435761U), offset = (__u32)(name - b->types.address);

	memcpy(header, &want.size, 8);
	memcpy(header + 16, &hash, 4);
	header[20] = want.package ? 1 : 0;
	header[21] = header[22] = 8;
	header[23] = (__u8)want.kind;
	memcpy(header + 40, &offset, 4);
	fixture_align(&b->types, 8);
	address = fixture_add(b, &b->types, header, sizeof(header));
	for (unsigned int i = 0; i < words; i++)
		fixture_word(b, &b->types, more[i]);
	if (want.package) {
		fixture_word(b, &b->types, package - b->types.address);
		fixture_word(b, &b->types, 0);
	}
	return address;
}

static __u64 add_plain(struct builder *b, int kind, const char *text, __u64 size)
{
	return add_type(b, (struct wanted_type){ .kind = kind, .text = text, .size = size }, 0, NULL);
}

static __u64 add_pointer(struct builder *b, const char *text, __u64 element)
{
	return add_type(b, (struct wanted_type){ .kind = 22, .text = text, .size = 8 }, 1, &element);
}

struct wanted_member {
	const char *name;
	__u64 type;
	__u64 offset;
};

static __u64 add_struct(struct builder *b, const char *text, const char *package, __u64 size,
			const struct wanted_member *fields, unsigned int n)
{
	__u64 names[16], more[4] = { 0, 0, n, n };

	for (unsigned int i = 0; i < n; i++)
		names[i] = add_name(b, fields[i].name);
	fixture_align(&b->types, 8);
	more[1] = b->types.address + b->types.used;
	for (unsigned int i = 0; i < n; i++) {
		fixture_word(b, &b->types, names[i]);
		fixture_word(b, &b->types, fields[i].type);
		fixture_word(b, &b->types, b->want->minor < 19 ? fields[i].offset << 1 : fields[i].offset);
	}
	return add_type(b, (struct wanted_type){ .kind = 25, .text = text, .package = package, .size = size }, 4, more);
}
#define STRUCT(b, text, package, size, ...)                                         \
	add_struct(b, text, package, size, (struct wanted_member[]){ __VA_ARGS__ }, \
		   sizeof((struct wanted_member[]){ __VA_ARGS__ }) / sizeof(struct wanted_member))

static __u64 add_func(struct builder *b, const char *text, const __u64 *parameters, unsigned int n)
{
	__u64 more[9] = { n };

	if (n)
		memcpy(more + 1, parameters, n * sizeof(*parameters));
	return add_type(b, (struct wanted_type){ .kind = 19, .text = text, .size = 8 }, n + 1, more);
}

/* An interface with one method; its type may be 0. */
static __u64 add_interface(struct builder *b, const char *text, const char *package, const char *method, __u64 type)
{
	__u64 name = add_name(b, method), more[4] = { 0, 0, 1, 1 };

	fixture_align(&b->types, 8);
	more[1] = b->types.address + b->types.used;
	fixture_half(b, &b->types, name - b->types.address);
	fixture_half(b, &b->types, type ? type - b->types.address : 0);
	return add_type(b, (struct wanted_type){ .kind = 20, .text = text, .package = package, .size = 16 }, 4, more);
}

static __u64 add_itab(struct builder *b, __u64 interface, __u64 type, __u64 method)
{
	__u64 address, hash = 0;

	memcpy(&hash, (char *)fixture_at(b, &b->types, type) + 16, 4);
	fixture_align(&b->data, 8);
	address = b->data.address + b->data.used;
	b->itabs[b->n_itabs++] = address;
	fixture_word(b, &b->data, interface);
	fixture_word(b, &b->data, type);
	fixture_word(b, &b->data, hash);
	fixture_word(b, &b->data, method);
	return address;
}

/* Types that several others have. */
struct common {
	__u64 string, strings, boolean, any, context, user_info;
};

static __u64 add_http(struct builder *b, const struct common *c)
{
	__u64 url = STRUCT(b, "url.URL", "net/url", 120, { "Path", c->string, 56 }, { "RawQuery", c->string, 88 });
	__u64 header = add_plain(b, 21, "http.Header", 8), state = add_pointer(b, "*tls.ConnectionState", c->string);
	__u64 number = add_plain(b, 2, "int", 8), write = add_func(b, "func(int)", &number, 1);
	__u64 request = STRUCT(b, "http.Request", "net/http", 248, { "Method", c->string, 0 },
			       { "URL", add_pointer(b, "*url.URL", url), 16 }, { "ProtoMajor", number, 40 },
			       { "Header", header, 56 }, { "Host", c->string, 128 }, { "RemoteAddr", c->string, 176 },
			       { "RequestURI", c->string, 192 }, { "TLS", state, 208 }, { "ctx", c->context, 232 });
	__u64 parameters[] = { add_interface(b, "http.ResponseWriter", "net/http", "WriteHeader", write),
			       add_pointer(b, "*http.Request", request) };
	__u64 serve = add_func(b, "func(http.ResponseWriter, *http.Request)", parameters, 2);
	__u64 mux = STRUCT(b, "http.ServeMux", "net/http", 8, { "n", c->string, 0 });

	return add_itab(b, add_interface(b, "http.Handler", "net/http", "ServeHTTP", serve),
			add_pointer(b, "*http.ServeMux", mux), b->code.address);
}

static void add_user(struct builder *b, struct common *c)
{
	static const char package[] = APISERVER "authentication/user";
	__u64 extra = add_plain(b, 21, "map[string][]string", 8);
	__u64 user = STRUCT(b, "user.DefaultInfo", package, 64,
			    { b->want->other_field ? "Login" : "Name", c->string, 0 }, { "UID", c->string, 16 },
			    { "Groups", c->strings, 32 }, { "Extra", extra, 56 });

	c->user_info = add_interface(b, "user.Info", package, "GetName", 0);
	b->out->user_itab = add_itab(b, c->user_info, add_pointer(b, "*user.DefaultInfo", user), b->code.address);
}

static __u64 add_attributes(struct builder *b, const struct common *c)
{
	static const char package[] = APISERVER "authorization/authorizer";
	__u64 record = STRUCT(b, "authorizer.AttributesRecord", package, 152, { "User", c->user_info, 0 },
			      { "Verb", c->string, 16 }, { "Namespace", c->string, 32 }, { "APIGroup", c->string, 48 },
			      { "APIVersion", c->string, 64 }, { "Resource", c->string, 80 },
			      { "Subresource", c->string, 96 }, { "Name", c->string, 112 },
			      { "ResourceRequest", c->boolean, 128 }, { "Path", c->string, 136 });

	return add_itab(b, add_interface(b, "authorizer.Attributes", package, "GetUser", 0),
			add_pointer(b, "*authorizer.AttributesRecord", record), b->code.address);
}

/* The method's address comes later. */
static void add_flowcontrol(struct builder *b, const struct common *c)
{
	static const char package[] = APISERVER "util/flowcontrol";
	__u64 info = STRUCT(b, "request.RequestInfo", APISERVER "endpoints/request", 192,
			    { "IsResourceRequest", c->boolean, 0 }, { "Path", c->string, 8 }, { "Verb", c->string, 24 },
			    { "APIPrefix", c->string, 40 }, { "APIGroup", c->string, 56 },
			    { "APIVersion", c->string, 72 }, { "Namespace", c->string, 88 },
			    { "Resource", c->string, 104 }, { "Subresource", c->string, 120 },
			    { "Name", c->string, 136 }, { "Parts", c->strings, 152 });
	__u64 digest = STRUCT(b, "flowcontrol.RequestDigest", package, 24,
			      { "RequestInfo", add_pointer(b, "*request.RequestInfo", info), 0 },
			      { "User", c->user_info, 8 });
	__u64 function = add_func(b, "func()", NULL, 0), note = add_plain(b, 19, "func(bool)", 8);
	__u64 parameters[] = { c->context, digest, note, note, b->want->handle ? function : note, function };
	__u64 method = add_func(b, "func(context.Context, flowcontrol.RequestDigest, ...)", parameters,
				b->want->handle ? 5 : 6);
	__u64 controller = STRUCT(b, "flowcontrol.configController", package, 8, { "n", c->string, 0 });

	add_itab(b, add_interface(b, "flowcontrol.Interface", package, "Handle", method),
		 add_pointer(b, "*flowcontrol.configController", controller), 0);
}

static void add_contexts(struct builder *b, const struct common *c)
{
	__u64 value = STRUCT(b, "context.valueCtx", "context", 48, { "Context", c->context, 0 }, { "key", c->any, 16 },
			     { "val", c->any, 32 });
	__u64 cancel = STRUCT(b, "context.cancelCtx", "context", 80, { "Context", c->context, 0 });
	__u64 timer = STRUCT(b, "context.timerCtx", "context", 112, { "cancelCtx", cancel, 8 });

	add_itab(b, c->context, add_pointer(b, "*context.valueCtx", value), b->code.address);
	add_itab(b, c->context, add_pointer(b, "*context.cancelCtx", cancel), b->code.address);
	add_itab(b, c->context, add_pointer(b, "*context.timerCtx", timer), b->code.address);
}

/* --- The whole */

/* runtime.moduledata: where its words are differs between versions. */
static void add_module(struct builder *b, __u64 table)
{
	unsigned int minor = b->want->minor, types = minor >= 20 ? 37 : 35, itabs;
	__u64 words[64] = { table }, *out = words, links, text = b->code.address;
	__u64 form_16 = minor < 18, functions;

	memcpy(&functions, (char *)fixture_at(b, &b->tables, table) + (form_16 ? 56 : 64), 8);
	out[1] = b->names;
	out[16] = table + functions;
	out[17] = b->n_functions + 1;
	out[22] = text;
	out[23] = text + b->code.used;
	out[types] = b->types.address;
	if (minor >= 27) {
		/* The itabs themselves, which begin the data here. */
		out[39] = b->types.address + b->types.used;
		out[40] = b->itabs[0] - b->types.address;
		out[41] = 32ULL * b->n_itabs;
	} else {
		fixture_align(&b->data, 8);
		links = b->data.address + b->data.used;
		for (unsigned int i = 0; i < b->n_itabs; i++)
			fixture_word(b, &b->data, b->itabs[i]);
		out[types + 1] = b->types.address + b->types.used;
		itabs = minor >= 26 ? 48 : minor >= 20 ? 47 : minor >= 18 ? 45 : 43;
		out[itabs] = links;
		out[itabs + 1] = b->n_itabs;
	}
	fixture_align(&b->data, 8);
	fixture_add(b, &b->data, words, sizeof(words));
}

static void add_build_info(struct builder *b)
{
	char version[64], modules[128];
	__u8 header[32] = "\xff Go buildinf:", size;

	snprintf(version, sizeof(version), "go1.%u.1", b->want->minor);
	if (b->want->version)
		snprintf(version, sizeof(version), "%s", b->want->version);
	snprintf(modules, sizeof(modules), "%-16.16spath\texample.org/server\nmod\texample.org\tv1.2.3\tsum\n%-16.16s",
		 "", "");
	header[14] = 8;
	fixture_align(&b->data, 16);
	if (b->want->minor >= 18) {
		header[15] = 2;
		fixture_add(b, &b->data, header, sizeof(header));
		size = (__u8)strlen(version);
		fixture_add(b, &b->data, &size, 1);
		fixture_add(b, &b->data, version, size);
		size = (__u8)strlen(modules);
		fixture_add(b, &b->data, &size, 1);
		fixture_add(b, &b->data, modules, size);
	} else {
		__u64 texts[4] = { 0, strlen(version), 0, strlen(modules) }, place;

		place = b->data.address + b->data.used + sizeof(header);
		memcpy(header + 16, &place, 8);
		place += 16;
		memcpy(header + 24, &place, 8);
		fixture_add(b, &b->data, header, sizeof(header));
		texts[0] = place + 16;
		texts[2] = texts[0] + texts[1];
		fixture_add(b, &b->data, texts, sizeof(texts));
		fixture_add(b, &b->data, version, texts[1]);
		fixture_add(b, &b->data, modules, texts[3]);
	}
}

static void add_functions(struct builder *b, __u64 attributes, __u64 *handle)
{
	static const char text[] = "v1.20.2";
	__u64 version, send, get, goexit, key, key_value;

	fixture_align(&b->data, 8);
	version = fixture_word(b, &b->data, b->data.address + b->data.used + 16);
	fixture_word(b, &b->data, strlen(text));
	fixture_add(b, &b->data, text, sizeof(text));
	b->out->serve = fixture_function(b, (struct wanted_function){ .name = "net/http.serverHandler.ServeHTTP" });
	fixture_function(b, (struct wanted_function){ .name = "net/http.(*conn).serve",
						      .calls = b->want->inlined ? 0 : b->out->serve });
	goexit = fixture_function(b, (struct wanted_function){ .name = "runtime.goexit1" });
	fixture_function(b, (struct wanted_function){ .name = "k8s.io/component-base/version.Get", .refers = version });
	fixture_align(&b->data, 8);
	key_value = fixture_word(b, &b->data, 1);
	key = add_type(b,
		       (struct wanted_type){ .kind = 2,
					     .text = "request.key",
					     .package = b->want->other_key ? APISERVER "endpoints/filters" :
									     APISERVER "endpoints/request",
					     .size = 8 },
		       0, NULL);
	b->out->user_key = key;
	get = fixture_function(b,
			       (struct wanted_function){ .name = APISERVER "endpoints/filters.GetAuthorizerAttributes",
							 .refers = attributes,
							 .key = key,
							 .key_value = key_value });
	fixture_function(b, (struct wanted_function){ .name = APISERVER "endpoints/filters.WithAuthorization.func1",
						      .calls = get });
	*handle = fixture_function(b, (struct wanted_function){ .name = FLOW "(*configController).Handle",
								.calls = b->want->handle_runtime ? goexit : get,
								.code = b->want->handle,
								.code_size = b->want->handle_size });
	b->out->handed = b->out->send;
	if (b->want->twice)
		fixture_function(
			b,
			(struct wanted_function){
				.name = "example.org/vendor/k8s.io/apiserver/pkg/util/flowcontrol.(*configController).Handle" });
	if (b->want->dropped_tracker)
		fixture_function(b, (struct wanted_function){ .name = FLOW
							      "(*droppedRequestsTracker).RecordDroppedRequest" });
	fixture_function(b, (struct wanted_function){ .name = FILTERS "WithPriorityAndFairness.func1" });
	fixture_function(b, (struct wanted_function){ .name = FILTERS "WithPriorityAndFairness.func1.1" });
	fixture_function(b, (struct wanted_function){ .name = FILTERS "WithPriorityAndFairness.func1.2" });
	fixture_function(b, (struct wanted_function){ .name = FILTERS "WithPriorityAndFairness.func1.2.1" });
	send = fixture_function(b, (struct wanted_function){ .name = "runtime.selectnbsend" });
	fixture_function(b, (struct wanted_function){ .name = FILTERS "WithMaxInFlightLimit.func1", .calls = send });
	b->out->handle = *handle;
}

static void add_headers(struct builder *b)
{
	const struct part *parts[] = { &b->code, &b->types, &b->tables, &b->data };
	const __u32 flags[] = { PF_R | PF_X, PF_R, PF_R, PF_R | PF_W };
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 4,
	};

	memcpy(b->out->file, &header, sizeof(header));
	for (unsigned int i = 0; i < 4; i++) {
		Elf64_Phdr phdr = {
			.p_type = PT_LOAD,
			.p_flags = flags[i],
			.p_offset = parts[i]->offset,
			.p_vaddr = parts[i]->address,
			.p_filesz = parts[i]->size,
			.p_memsz = parts[i]->size,
		};

		memcpy(b->out->file + sizeof(header) + i * sizeof(phdr), &phdr, sizeof(phdr));
	}
}

void golang_fixture_make(const struct golang_fixture_want *want, struct golang_fixture *out)
{
	struct builder b = {
		.want = want,
		.out = out,
		.code = { 0x401000, 0x1000, 0x1000, 0 },
		.types = { 0x502000, 0x2000, 0x3000, 8 },
		.tables = { 0x605000, 0x5000, 0x2000, 0 },
		.data = { 0x707000, 0x7000, 0x2000, 0 },
	};
	struct common common = { 0 };
	__u64 handle = 0, attributes;

	memset(out, 0, sizeof(*out));
	b.names = b.tables.address;
	fixture_add(&b, &b.tables, "", 1);
	common.string = add_plain(&b, 24, "string", 16);
	common.strings = add_plain(&b, 23, "[]string", 24);
	common.boolean = add_plain(&b, 1, "bool", 1);
	common.any = add_plain(&b, 20, "interface {}", 16);
	common.context = add_interface(&b, "context.Context", "context", "Done", 0);
	add_user(&b, &common);
	attributes = add_attributes(&b, &common);
	add_http(&b, &common);
	add_contexts(&b, &common);
	add_flowcontrol(&b, &common);
	add_functions(&b, attributes, &handle);
	fixture_nothing(&b);
	/* Only now is the address of the method known. */
	handle += want->other_method ? 32 : 0;
	memcpy((char *)fixture_at(&b, &b.data, b.itabs[b.n_itabs - 1]) + 24, &handle, 8);
	add_module(&b, fixture_table(&b));
	add_build_info(&b);
	add_headers(&b);
}

int golang_fixture_open(const void *bytes, size_t size)
{
	int fd = memfd_create("golang", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	return fd;
}
