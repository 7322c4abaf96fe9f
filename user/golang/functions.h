/* SPDX-License-Identifier: GPL-2.0 */
/* Functions by name. A package that was vendored has a prefix before its path: "k8s.io/kubernetes/vendor/k8s.io/apiserver/...". */
#ifndef WEIR_USER_GOLANG_FUNCTIONS_H
#define WEIR_USER_GOLANG_FUNCTIONS_H

#include "golang/find.h"
#include "golang/private.h"

/* -ENOENT, -ENOTUNIQ with the candidates. name: with the package's path, as it is without vendoring. */
int function_find(struct golang *go, const char *name, struct pclntab_function *out, struct error *err);
/* The first of several names (the last is NULL) that there is. */
int function_find_any(struct golang *go, const char *const *names, struct pclntab_function *out, struct error *err);
bool function_exists(struct golang *go, const char *name);
/* The function that begins at an address. */
bool function_at(struct golang *go, __u64 address, struct pclntab_function *out);

/* With where it begins. */
int function_describe(struct golang *go, const struct pclntab_function *function, struct golang_function *out,
		      struct error *err);

/* The closures NAME.funcN, or with a deeper `name` their own; at most `max`. Returns how many, or a negative errno. */
int function_closures(struct golang *go, const char *name, struct golang_function *out, unsigned int max,
		      struct error *err);

#endif
