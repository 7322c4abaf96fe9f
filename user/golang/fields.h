/* SPDX-License-Identifier: GPL-2.0 */
/* Offsets of a struct's fields, by tables of the names and types that are expected. */
#ifndef WEIR_USER_GOLANG_FIELDS_H
#define WEIR_USER_GOLANG_FIELDS_H

#include "golang/find.h"
#include "golang/types.h"

struct wanted_field {
	const char *name, *type;
	size_t out; /* where the __u16 of its offset stands in the result */
};

/* wanted: until one without a name. -ENOTSUP: one is missing, or of another type. */
int fields_find(struct golang *go, const struct type *type, const struct wanted_field *wanted, void *out,
		struct error *err);

/* What a http.Handler's method ServeHTTP takes: "func(http.ResponseWriter, *http.Request)". */
int http_handler_type(struct golang *go, struct type *out, struct error *err);
int http_request_fields(struct golang *go, const struct type *handler, struct golang_http_request *out,
			struct error *err);
/* Where a handler has its writer and its request; method: behind its receiver, one pointer. */
int http_handler_arguments(struct golang *go, const struct type *handler, bool method, struct golang_word *writer,
			   struct golang_word *request, struct error *err);
/* Where the itab of a handler's writer has the address of WriteHeader. */
int http_write_header(struct golang *go, const struct type *handler, __u16 *offset, struct error *err);

#endif
