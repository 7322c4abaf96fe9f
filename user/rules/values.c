/* SPDX-License-Identifier: GPL-2.0 */
#include "rules/values.h"

#include <string.h>

#include "model/parse.h"

static __u64 name_value(const struct rules_names *names, const char *name, size_t length)
{
	return length ? names->subject(names->context, WEIR_NAME_NAMESPACE, name, length) : 0;
}

__u64 rules_name_value(const struct rules_names *names, const char *name)
{
	return name_value(names, name, strlen(name));
}

__u64 rules_user_value(const struct rules_names *names, const char *user)
{
	struct subject subject;
	const void *bytes;
	size_t length;

	parse_subject(WEIR_KEY_USER, user, &subject, NULL);
	bytes = subject_bytes(&subject, &length);
	return names->subject(names->context, subject.kind, bytes, length);
}

__u64 rules_resource_value(const struct rules_names *names, const char *resource, const char *subresource)
{
	const char *slash = strchrnul(resource, '/');

	return weir_pair(name_value(names, resource, slash - resource),
			 rules_name_value(names, *slash ? slash + 1 : subresource));
}

__u64 rules_path_value(const struct rules_names *names, const char *path, int *prefix)
{
	const char *segment = path + 1;
	__u64 value = 0;
	int n = 0;

	while (*segment && *segment != '*') {
		size_t length = strcspn(segment, "/");

		value = weir_path_further(value, name_value(names, segment, length));
		segment += length;
		segment += *segment == '/';
		n++;
	}
	*prefix = *segment == '*' ? n : -1;
	return *segment == '*' ? weir_path_below(value) : weir_path_exact(value, segment[-1] == '/');
}
