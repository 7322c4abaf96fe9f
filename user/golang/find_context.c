/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stddef.h>

#include "golang/fields.h"
#include "golang/find.h"
#include "golang/types.h"

/* A kind of context that has a parent and no value: the fields that lead to it. */
struct kind {
	const char *type;
	const char *fields[3];
};

static const struct kind kinds[] = {
	{ "*context.cancelCtx", { "Context" } },
	{ "*context.timerCtx", { "cancelCtx", "Context" } },
	{ "*context.afterFuncCtx", { "cancelCtx", "Context" } },
	{ "context.withoutCancelCtx", { "c" } },
	{ "context.stopCtx", { "Context" } },
};

static int find_value(struct golang *go, struct golang_context *found, struct error *err)
{
	static const struct wanted_field wanted[] = {
		{ "Context", "context.Context", offsetof(struct golang_context, value_parent) },
		{ "val", "interface {}", offsetof(struct golang_context, value) },
		{ 0 },
	};
	struct itab itab;
	struct type type;
	int ret = itab_find(go, "context", "context.Context", "*context.valueCtx", &itab, err);

	if (ret)
		return ret;
	found->value_itab = itab.address;
	if (!type_element(go, &itab.type, &type))
		return error_set(err, -ENOTSUP, "the type *context.valueCtx is damaged");
	return fields_find(go, &type, wanted, found, err);
}

static bool parent_of(struct golang *go, const struct type *type, const struct kind *kind, __u16 *out)
{
	struct type_field field;
	struct type at = *type;
	__u64 offset = 0;

	if (type->kind == TYPE_POINTER && !type_element(go, type, &at))
		return false;
	for (const char *const *name = kind->fields; *name; name++) {
		if (!type_field_named(go, &at, *name, &field))
			return false;
		offset += field.offset;
		at = field.type;
	}
	*out = (__u16)offset;
	return type_is(&at, "context.Context") && offset <= 0xffff;
}

int golang_find_context(struct golang *go, struct golang_context *out, struct error *err)
{
	struct golang_context found = { 0 };
	int ret = find_value(go, &found, err);

	for (size_t i = 0; !ret && i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct error why = { 0 };
		struct itab itab;

		ret = itab_find(go, "context", "context.Context", kinds[i].type, &itab, &why);
		if (ret == -ENOENT) {
			ret = 0;
			continue;
		}
		if (ret)
			error_set(err, ret, "%s", why.text);
		else if (!parent_of(go, &itab.type, &kinds[i], &found.others[found.n_others].parent))
			ret = error_set(err, -ENOTSUP, "%s has no parent that weir knows", kinds[i].type);
		found.others[found.n_others++].itab = itab.address;
	}
	if (!ret)
		*out = found;
	return ret;
}
