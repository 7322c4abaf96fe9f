/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The types of a Go program, as its run time and reflection know them (internal/abi/type.go). Types are told apart by the
 * text that reflect.Type.String() gives ("*user.DefaultInfo") and, where they have a name, by the path of their package.
 */
#ifndef WEIR_USER_GOLANG_TYPES_H
#define WEIR_USER_GOLANG_TYPES_H

#include <string.h>

#include "base/error.h"
#include "golang/private.h"

enum type_kind {
	TYPE_BOOL = 1,
	TYPE_INT64 = 6,
	TYPE_UINTPTR = 12,
	TYPE_FLOAT32 = 13,
	TYPE_FLOAT64 = 14,
	TYPE_COMPLEX64 = 15,
	TYPE_COMPLEX128 = 16,
	TYPE_ARRAY = 17,
	TYPE_CHAN = 18,
	TYPE_FUNC = 19,
	TYPE_INTERFACE = 20,
	TYPE_MAP = 21,
	TYPE_POINTER = 22,
	TYPE_SLICE = 23,
	TYPE_STRING = 24,
	TYPE_STRUCT = 25,
	TYPE_UNSAFE_POINTER = 26,
};

/* A piece of the image. */
struct type_text {
	const char *at;
	size_t size;
};

struct type {
	__u64 address;
	__u64 size; /* of a value */
	__u32 hash;
	__u8 flags, align;
	enum type_kind kind;
	struct type_text text;
};

struct type_field {
	struct type_text name;
	struct type type;
	__u64 offset;
};

/* An interface's methods for one type. */
struct itab {
	__u64 address;
	struct type interface, type;
};

/* Each returns false where the program's data is damaged, or has no such thing. */
bool type_read(struct golang *go, __u64 address, struct type *out);
bool type_element(struct golang *go, const struct type *type, struct type *out); /* of a pointer */
bool type_field(struct golang *go, const struct type *type, __u64 i, struct type_field *out);
bool type_field_named(struct golang *go, const struct type *type, const char *name, struct type_field *out);
/* A func's parameter i, and how many it has. */
bool type_parameter(struct golang *go, const struct type *type, unsigned int i, struct type *out);
unsigned int type_parameters(struct golang *go, const struct type *type);
/* A method of an interface: its place among them, and its type without a receiver. */
bool type_method(struct golang *go, const struct type *interface, const char *name, unsigned int *place,
		 struct type *out);
/* The only element of an array, and how many it has. */
bool type_array(struct golang *go, const struct type *type, __u64 *n, struct type *out);

bool type_is(const struct type *type, const char *text);

/* Is a named type, or what a pointer points to, of this package, wherever that was vendored? */
bool type_is_of(struct golang *go, const struct type *type, const char *package);

/* The addresses of all itabs that the linker has made. -ENOEXEC: they are damaged; -ENOMEM. */
int itabs_read(struct golang *go, struct error *err);
bool itab_at(struct golang *go, unsigned int i, struct itab *out);
/* The only one for this interface and type; `package`: the end of the path of the package of both types' own names. */
int itab_find(struct golang *go, const char *package, const char *interface, const char *type, struct itab *out,
	      struct error *err);
/* Where an itab has the address of a method's function, in bytes. */
__u16 itab_method_offset(unsigned int place);
/* The address of a method's function. */
bool itab_method(struct golang *go, const struct itab *itab, unsigned int place, __u64 *out);

#endif
