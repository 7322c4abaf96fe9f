/* SPDX-License-Identifier: GPL-2.0 */
#include "base/utc.h"

#include <errno.h>
#include <string.h>
#include <time.h>

int utc_parse(const char *text, __u64 *ns)
{
	struct tm parts = { 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
	__u64 behind_point = 0, unit = WEIR_NS_PER_S;

	if (!rest)
		return -EINVAL;
	if (*rest == '.')
		for (rest++; *rest >= '0' && *rest <= '9' && unit > 1; rest++)
			behind_point += (*rest - '0') * (unit /= 10);
	if (strcmp(rest, "Z") != 0)
		return -EINVAL;
	*ns = timegm(&parts) * WEIR_NS_PER_S + behind_point;
	return 0;
}
