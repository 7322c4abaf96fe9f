/* SPDX-License-Identifier: GPL-2.0 */
/* All that weir finds in a Go program, as JSON. */
#ifndef WEIR_USER_GOLANG_SHOW_H
#define WEIR_USER_GOLANG_SHOW_H

#include <jansson.h>

#include "golang/golang.h"

/*
 * {go, path, module, module_version, machine, pie, functions, itabs, kubernetes: a version or null, found: [{finding,
 * found: bool, why: what missed or null, places: [{what, name, address, offset}], layout: {STRUCT: {FIELD: OFFSET}}}]}; a
 * new reference, NULL without memory. Addresses and offsets of places are texts in hexadecimal.
 */
json_t *golang_to_json(struct golang *go);

#endif
