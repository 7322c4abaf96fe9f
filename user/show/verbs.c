/* SPDX-License-Identifier: GPL-2.0 */
#include "show/verbs.h"

#include "weir/http/attributes.h"

const char *verb_name(unsigned int verb)
{
	static const char *const verbs[] = {
#define X(name, text) [WEIR_VERB_##name] = (text),
		WEIR_VERBS(X)
#undef X
	};

	return verb < WEIR_VERB_COUNT ? verbs[verb] : "";
}
