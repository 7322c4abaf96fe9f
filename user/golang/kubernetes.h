/* SPDX-License-Identifier: GPL-2.0 */
/* Types of k8s.io/apiserver that several findings have in common. */
#ifndef WEIR_USER_GOLANG_KUBERNETES_H
#define WEIR_USER_GOLANG_KUBERNETES_H

#include "golang/find.h"
#include "golang/types.h"

int kubernetes_user(struct golang *go, struct golang_user *out, struct error *err);
/* pointer: the type *request.RequestInfo. */
int kubernetes_request_info(struct golang *go, const struct type *pointer, struct golang_request_info *out,
			    struct error *err);
int kubernetes_attributes(struct golang *go, struct golang_attributes *out, struct error *err);

#endif
