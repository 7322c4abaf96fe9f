/* SPDX-License-Identifier: GPL-2.0 */
#include "inside/binary.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "golang/find.h"
#include "sys/privilege.h"

static int probe_add(struct datapath_binary *binary, enum weir_inside_point point, __u64 offset, struct error *err)
{
	if (binary->n_probes == DATAPATH_BINARY_PROBES)
		return error_set(err, -E2BIG, "more than %d places would have to be probed", DATAPATH_BINARY_PROBES);
	binary->probes[binary->n_probes++] = (struct datapath_probe){ point, offset };
	return 0;
}

static int register_of(const struct golang_word *word, const char *what, __u8 *out, struct error *err)
{
	if (word->on_stack || word->reg >= WEIR_INSIDE_REGISTERS)
		return error_set(err, -ENOTSUP, "%s is not in a register", what);
	*out = word->reg;
	return 0;
}

static void request_fields(const struct golang_http_request *fields, struct weir_inside_layout *layout)
{
	layout->method = fields->method;
	layout->uri = fields->request_uri;
	layout->peer = fields->remote_addr;
}

static void record_fields(const struct golang_authorization *found, struct weir_inside_layout *layout)
{
	layout->user_itab = found->user.itab;
	layout->user = found->attributes.user;
	layout->verb = found->attributes.verb;
	layout->namespace = found->attributes.namespace;
	layout->group = found->attributes.api_group;
	layout->resource = found->attributes.resource;
	layout->subresource = found->attributes.subresource;
	layout->name = found->attributes.name;
	layout->is_resource = found->attributes.is_resource;
	layout->user_name = found->user.name;
	layout->user_groups = found->user.groups;
}

static int see_kubernetes(const struct golang_authorization *found, struct inside_binary *out, struct error *err)
{
	int ret = register_of(&found->request, "the request", &out->layout.request_in, err) ?:
			  register_of(&found->record, "the attributes", &out->layout.record_in, err);

	request_fields(&found->fields, &out->layout);
	record_fields(found, &out->layout);
	ret = ret ?: probe_add(&out->probes, WEIR_INSIDE_REQUEST, found->filter.frame.offset, err);
	for (unsigned int i = 0; i < found->returns.n && !ret; i++)
		ret = probe_add(&out->probes, WEIR_INSIDE_ATTRIBUTES, found->returns.places[i].offset, err);
	return ret;
}

static int see_http(const struct golang_http *found, struct inside_binary *out, struct error *err)
{
	int ret = register_of(&found->request, "the request", &out->layout.request_in, err);

	request_fields(&found->fields, &out->layout);
	return ret ?: probe_add(&out->probes, WEIR_INSIDE_HTTP, found->serve.frame.offset, err);
}

/* A Kubernetes API server, or any other one that has net/http. Where the first is not as it should be, it is not taken for the second. */
static int see(struct golang *go, struct inside_binary *out, struct error *err)
{
	struct golang_authorization kubernetes;
	struct golang_http http;
	struct error no_kubernetes;
	int ret = golang_find_authorization(go, &kubernetes, &no_kubernetes);

	if (!ret)
		return see_kubernetes(&kubernetes, out, err);
	if (ret != -ENOENT)
		return error_set(err, ret, "%s", no_kubernetes.text);
	ret = golang_find_http(go, &http, err);
	return ret ?: see_http(&http, out, err);
}

static void describe(struct golang *go, const char *name, struct inside_binary *out)
{
	const struct golang_build *build = golang_build(go);
	CLEANUP_FREE char *version = NULL;

	if (golang_find_kubernetes_version(go, &version, NULL))
		version = NULL;
	snprintf(out->what, sizeof(out->what), "%s%s%s, %s", name, version ? " " : "", version ?: "", build->version);
	out->pie = build->pie;
}

int inside_binary_read(int fd, const char *name, struct inside_binary *out, struct error *err)
{
	struct inside_binary binary = { 0 };
	CLEANUP_GOLANG struct golang *go = NULL;
	int ret = golang_open(fd, &go, err);

	if (ret)
		return ret;
	if (strcmp(golang_build(go)->machine, "amd64") != 0)
		return error_set(err, -ENOTSUP, "it is for %s: only amd64 is known", golang_build(go)->machine);
	describe(go, name, &binary);
	ret = see(go, &binary, err);
	if (!ret)
		*out = binary;
	return ret;
}

/* The mapping of the file's beginning: the first line, where the binary itself is mapped. */
int inside_load_bias(int process, __u64 *bias, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged find = privilege_begin(PRIVILEGE_FIND);
	unsigned long long start, offset;
	char path[64], line[512];
	CLEANUP_FCLOSE FILE *maps = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", process);
	maps = fopen(path, "re");
	if (!maps || !fgets(line, sizeof(line), maps))
		return error_set(err, maps ? -EIO : -errno, "%s cannot be read", path);
	if (sscanf(line, "%llx-%*x %*s %llx", &start, &offset) != 2 || offset)
		return error_set(err, -ENOTSUP, "%s does not begin with the program", path);
	*bias = start;
	return 0;
}
