/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/boot_id.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

void boot_id_read(char id[static BOOT_ID_SIZE])
{
	CLEANUP_FCLOSE FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file || !fgets(id, BOOT_ID_SIZE, file))
		*id = '\0';
	id[strcspn(id, "\n")] = '\0';
}
