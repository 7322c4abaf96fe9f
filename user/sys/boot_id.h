/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SYS_BOOT_ID_H
#define WEIR_USER_SYS_BOOT_ID_H

#define BOOT_ID_SIZE 64

/* Another one with each start of the machine; "" where the kernel does not tell. */
void boot_id_read(char id[static BOOT_ID_SIZE]);

#endif
