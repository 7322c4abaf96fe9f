/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath/datapath.h"

const char *datapath_part_name(enum datapath_part part)
{
	static const char *const names[] = {
#define X(name) #name,
		DATAPATH_PARTS(X)
#undef X
	};

	return names[part];
}
