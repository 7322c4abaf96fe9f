/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "golang/private.h"
#include "golang/types.h"

static int check_version(const struct build_info *info, struct error *err)
{
	if (info->minor < GOLANG_OLDEST || info->minor > GOLANG_NEWEST)
		return error_set(err, -ENOEXEC, "made by %.32s: weir knows Go 1.%u to 1.%u", info->version,
				 GOLANG_OLDEST, GOLANG_NEWEST);
	if (strstr(info->version, "noregabi"))
		return error_set(err, -ENOEXEC, "made by %.64s: without arguments in registers", info->version);
	return 0;
}

static int read_tables(struct golang *go, int fd, struct error *err)
{
	int ret;

	ret = image_open(fd, &go->image, err)			  ?:
		      build_info_read(&go->image, &go->info, err) ?:
		      check_version(&go->info, err)		  ?:
		      pclntab_find(&go->image, &go->table, err)	  ?:
		      module_find(&go->image, &go->table, go->info.minor, &go->module, err);
	if (ret)
		return ret;
	/* Since 1.26 the table does not say it any more. */
	go->table.text = go->module.text;
	return itabs_read(go, err);
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static void describe(struct golang *go)
{
	go->path = build_info_word(&go->info, "path", 1);
	go->module_path = build_info_word(&go->info, "mod", 1);
	go->module_version = build_info_word(&go->info, "mod", 2);
	go->build.version = go->info.version;
	go->build.minor = go->info.minor;
	go->build.path = or_empty(go->path);
	go->build.module = or_empty(go->module_path);
	go->build.module_version = or_empty(go->module_version);
	go->build.machine = go->image.machine == IMAGE_AMD64 ? "amd64" : "arm64";
	go->build.pie = go->image.pie;
	go->build.code = image_code(&go->image);
	image_constants(&go->image, &go->build.constants_from, &go->build.constants_to);
	go->build.functions = go->table.n;
}

int golang_open(int fd, struct golang **out, struct error *err)
{
	struct golang *go = calloc(1, sizeof(*go));
	int ret;

	if (!go)
		return error_set(err, -ENOMEM, "no memory");
	go->image.fd = -1;
	ret = read_tables(go, fd, err);
	if (ret) {
		golang_close(go);
		return ret;
	}
	describe(go);
	*out = go;
	return 0;
}

void golang_close(struct golang *go)
{
	if (!go)
		return;
	image_close(&go->image);
	build_info_clear(&go->info);
	free(go->path);
	free(go->module_path);
	free(go->module_version);
	free(go->itabs);
	free(go);
}

const struct golang_build *golang_build(const struct golang *go)
{
	return &go->build;
}
