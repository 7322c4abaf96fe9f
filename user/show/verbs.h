/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SHOW_VERBS_H
#define WEIR_USER_SHOW_VERBS_H

#include "weir/http/attributes.h"

/* "" where there is none. verb: enum weir_verb */
static inline const char *verb_name(unsigned int verb)
{
	static const char *const verbs[] = {
#define X(name, text) [WEIR_VERB_##name] = text,
		WEIR_VERBS(X)
#undef X
	};

	return verb < WEIR_VERB_COUNT ? verbs[verb] : "";
}

#endif
