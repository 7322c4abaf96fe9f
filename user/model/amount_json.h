/* SPDX-License-Identifier: GPL-2.0 */
/* How much a limit lets pass, as JSON: a rate, seats, or nothing. */
#ifndef WEIR_USER_MODEL_AMOUNT_JSON_H
#define WEIR_USER_MODEL_AMOUNT_JSON_H

#include <jansson.h>

#include "base/error.h"
#include "datapath/limits.h"

/* Its members are put into the object; nothing for none. */
void amount_to_json(const struct datapath_amount *amount, enum weir_limit_kind kind, json_t *object);
/* Leaves both as they are when the object has none. *kind says before whether it is of connections. */
int amount_from_json(json_t *object, struct datapath_amount *amount, enum weir_limit_kind *kind, struct error *err);

#endif
