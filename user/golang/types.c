/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/types.h"

#define HEADER 48 /* of every type; what follows is its kind's own */
#define KIND_MASK 31
#define HAS_NAME 1   /* flags: data about a named type follows */
#define EXTRA_STAR 2 /* the text has a * in front that does not belong to it */

#define MAX_MEMBERS 4096
#define MAX_TEXT (1U << 16)

/* A name: flags, the length in groups of seven bits, the bytes. */
static bool name_read(struct golang *go, __u64 address, struct type_text *out)
{
	size_t size = 0;

	address++;
	for (unsigned int shift = 0;; shift += 7) {
		const __u8 *byte = image_at(&go->image, address++, 1);

		if (!byte || shift > 14)
			return false;
		size |= (size_t)(*byte & 0x7f) << shift;
		if (!(*byte & 0x80))
			break;
	}
	out->at = size ? image_at(&go->image, address, size) : "";
	out->size = size;
	return out->at && size < MAX_TEXT;
}

/* A place that is given as an offset from the beginning of the types. */
static bool offset_at(struct golang *go, __u64 address, __u64 *out)
{
	const void *at = image_at(&go->image, address, 4);
	__u32 offset;

	if (!at)
		return false;
	memcpy(&offset, at, sizeof(offset));
	*out = go->module.types + offset;
	return offset && offset < go->module.end_types - go->module.types;
}

static bool word(struct golang *go, __u64 address, __u64 *out)
{
	return image_u64(&go->image, address, out);
}

bool type_read(struct golang *go, __u64 address, struct type *out)
{
	const __u8 *at = image_at(&go->image, address, HEADER);
	struct type type = { .address = address };
	__u64 name;

	if (!at || address % 8)
		return false;
	memcpy(&type.size, at, sizeof(type.size));
	memcpy(&type.hash, at + 16, sizeof(type.hash));
	type.flags = at[20];
	type.align = at[21];
	type.kind = at[23] & KIND_MASK;
	if (!type.align || type.align > 16 || (type.align & (type.align - 1)) || !type.kind ||
	    type.kind > TYPE_UNSAFE_POINTER || !offset_at(go, address + 40, &name) || !name_read(go, name, &type.text))
		return false;
	if ((type.flags & EXTRA_STAR) && type.text.size) {
		type.text.at++;
		type.text.size--;
	}
	*out = type;
	return true;
}

static bool text_is(const struct type_text *text, const char *expected)
{
	return text->size == strlen(expected) && !memcmp(text->at, expected, text->size);
}

bool type_is(const struct type *type, const char *text)
{
	return text_is(&type->text, text);
}

static bool type_at(struct golang *go, __u64 address, struct type *out)
{
	__u64 type;

	return word(go, address, &type) && type_read(go, type, out);
}

bool type_element(struct golang *go, const struct type *type, struct type *out)
{
	return type->kind == TYPE_POINTER && type_at(go, type->address + HEADER, out);
}

bool type_array(struct golang *go, const struct type *type, __u64 *n, struct type *out)
{
	return type->kind == TYPE_ARRAY && word(go, type->address + HEADER + 16, n) &&
	       type_at(go, type->address + HEADER, out);
}

bool type_field(struct golang *go, const struct type *type, __u64 i, struct type_field *out)
{
	struct type_field field;
	__u64 fields, n, name;

	if (type->kind != TYPE_STRUCT || !word(go, type->address + HEADER + 8, &fields) ||
	    !word(go, type->address + HEADER + 16, &n) || n > MAX_MEMBERS || i >= n ||
	    !word(go, fields + 24 * i, &name) || !name_read(go, name, &field.name) ||
	    !type_at(go, fields + 24 * i + 8, &field.type) || !word(go, fields + 24 * i + 16, &field.offset))
		return false;
	/* Until 1.18 its lowest bit told embedded fields. */
	if (go->info.minor < 19)
		field.offset >>= 1;
	if (field.offset > type->size || field.type.size > type->size - field.offset)
		return false;
	*out = field;
	return true;
}

bool type_field_named(struct golang *go, const struct type *type, const char *name, struct type_field *out)
{
	struct type_field field;

	for (__u64 i = 0; type_field(go, type, i, &field); i++)
		if (text_is(&field.name, name)) {
			*out = field;
			return true;
		}
	return false;
}

unsigned int type_parameters(struct golang *go, const struct type *type)
{
	const void *at = type->kind == TYPE_FUNC ? image_at(&go->image, type->address + HEADER, 2) : NULL;
	__u16 n = 0;

	if (at)
		memcpy(&n, at, sizeof(n));
	return n;
}

bool type_parameter(struct golang *go, const struct type *type, unsigned int i, struct type *out)
{
	__u64 first = type->address + HEADER + 8 + (type->flags & HAS_NAME ? 16 : 0);

	return i < type_parameters(go, type) && type_at(go, first + 8ULL * i, out);
}

bool type_method(struct golang *go, const struct type *interface, const char *name, unsigned int *place,
		 struct type *out)
{
	__u64 methods, n, at, type;
	struct type_text text;

	if (interface->kind != TYPE_INTERFACE || !word(go, interface->address + HEADER + 8, &methods) ||
	    !word(go, interface->address + HEADER + 16, &n) || n > MAX_MEMBERS)
		return false;
	for (unsigned int i = 0; i < n; i++) {
		if (!offset_at(go, methods + 8ULL * i, &at) || !name_read(go, at, &text))
			return false;
		if (!text_is(&text, name))
			continue;
		*place = i;
		return offset_at(go, methods + 8ULL * i + 4, &type) && type_read(go, type, out);
	}
	return false;
}

/* Where a type's own data ends, and that of a named type begins. */
static __u64 named_at(const struct type *type)
{
	switch (type->kind) {
	case TYPE_STRUCT:
	case TYPE_INTERFACE:
		return type->address + HEADER + 32;
	case TYPE_ARRAY:
		return type->address + HEADER + 24;
	case TYPE_CHAN:
		return type->address + HEADER + 16;
	case TYPE_POINTER:
	case TYPE_FUNC:
	case TYPE_SLICE:
		return type->address + HEADER + 8;
	case TYPE_MAP: /* differs between versions, and nobody asks for it */
		return 0;
	default:
		return type->address + HEADER;
	}
}

/* The path of the package that a named type is of. */
static bool type_package(struct golang *go, const struct type *type, struct type_text *out)
{
	__u64 at = named_at(type), name;

	return (type->flags & HAS_NAME) && at && offset_at(go, at, &name) && name_read(go, name, out);
}

bool type_is_of(struct golang *go, const struct type *type, const char *package)
{
	struct type_text path;
	struct type element;
	size_t size = strlen(package);

	if (type->kind == TYPE_POINTER)
		return type_element(go, type, &element) && element.kind != TYPE_POINTER &&
		       type_is_of(go, &element, package);
	if (!type_package(go, type, &path) || path.size < size ||
	    memcmp(path.at + path.size - size, package, size) != 0)
		return false;
	return path.size == size || path.at[path.size - size - 1] == '/';
}
