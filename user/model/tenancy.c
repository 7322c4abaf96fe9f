/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "weir/http/path.h"

#include "model/parse.h"
#include "model/tenancy.h"

static const char *const paths_names[WEIR_PATHS_COUNT] = {
#define X(name, text) text,
	WEIR_PATHS(X)
#undef X
};

const struct choice paths_modes = { "a path mode", paths_names, WEIR_PATHS_COUNT };

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The next segment and its length; 0: there is none. */
static size_t next_segment(const char **text)
{
	*text += strspn(*text, "/");
	return strcspn(*text, "/");
}

static int segment_parse(const char *number, struct tenancy *out, struct error *err)
{
	__u64 n;
	int ret = parse_number(number, WEIR_PATH_SEGMENTS, &n, err);

	if (ret)
		return ret;
	if (n == 0)
		return error_set(err, -EINVAL, "segment=0: the first segment is 1");
	out->tenant = WEIR_TENANT_SEGMENT;
	out->segments = n;
	return 0;
}

static int prefix_parse(const char *prefix, struct tenancy *out, struct error *err)
{
	const char *segment = prefix;
	size_t length, used = 0;

	out->tenant = WEIR_TENANT_PREFIX;
	if (strlen(prefix) > sizeof(out->prefix))
		return error_set(err, -EINVAL, "the prefix is too long: at most %zu bytes", sizeof(out->prefix));
	if (*prefix != '/' || !prefix[1] || prefix[strlen(prefix) - 1] != '/' || strstr(prefix, "//"))
		return error_set(err, -EINVAL, "prefix=%s: must be like /a/b/, with one slash around each segment",
				 prefix);
	for (; (length = next_segment(&segment)); segment += length) {
		if (out->segments++ == WEIR_PREFIX_SEGMENTS)
			return error_set(err, -EINVAL, "prefix=%s: at most %d segments", prefix, WEIR_PREFIX_SEGMENTS);
		used += snprintf(out->prefix + used, sizeof(out->prefix) - used, "/%.*s", (int)length, segment);
	}
	return 0;
}

static int header_parse(const char *name, struct tenancy *out, struct error *err)
{
	out->tenant = WEIR_TENANT_HEADER;
	return parse_header(name, out->header, err);
}

int namespace_from_parse(const char *text, struct tenancy *out, struct error *err)
{
	struct tenancy tenancy = { .paths = out->paths };
	int ret = 0;

	if (starts_with(text, "segment="))
		ret = segment_parse(text + strlen("segment="), &tenancy, err);
	else if (starts_with(text, "prefix="))
		ret = prefix_parse(text + strlen("prefix="), &tenancy, err);
	else if (starts_with(text, "header="))
		ret = header_parse(text + strlen("header="), &tenancy, err);
	else if (strcmp(text, "path") != 0)
		ret = error_set(err, -EINVAL,
				"\"%s\" does not name a namespace (path, segment=N, prefix=/A/B/ or header=NAME)",
				text);
	if (!ret)
		*out = tenancy;
	return ret;
}

void namespace_from_format(const struct tenancy *tenancy, char text[static TENANCY_TEXT])
{
	if (tenancy->tenant == WEIR_TENANT_SEGMENT)
		snprintf(text, TENANCY_TEXT, "segment=%u", tenancy->segments);
	else if (tenancy->tenant == WEIR_TENANT_PREFIX)
		snprintf(text, TENANCY_TEXT, "prefix=%s/", tenancy->prefix);
	else if (tenancy->tenant == WEIR_TENANT_HEADER)
		snprintf(text, TENANCY_TEXT, "header=%s", tenancy->header);
	else
		snprintf(text, TENANCY_TEXT, "path");
}

void tenancy_apply(const struct tenancy *tenancy, const struct datapath *dp, struct weir_reading *reading)
{
	const char *segment = tenancy->prefix;
	size_t length;

	reading->paths = tenancy->paths;
	reading->tenant = tenancy->tenant;
	reading->tenant_segments = tenancy->segments;
	weir_reading_name(reading, WEIR_HEADER_NAMESPACE, tenancy->header, strlen(tenancy->header));
	for (__u32 i = 0; (length = next_segment(&segment)); i++, segment += length)
		reading->prefix[i] = datapath_subject(dp, WEIR_NAME_NAMESPACE, segment, length);
}
