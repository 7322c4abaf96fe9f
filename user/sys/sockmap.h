/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs on maps of sockets (BPF_PROG_TYPE_SK_MSG, BPF_PROG_TYPE_SK_SKB). They can hand data from one local socket to another, and then no
 * packet has it.
 */
#ifndef WEIR_USER_SYS_SOCKMAP_H
#define WEIR_USER_SYS_SOCKMAP_H

/*
 * The names and numbers of those that the kernel has, such as "redirect (id 12), verdict (id 13)". NULL: there are none, or that cannot be
 * found out. The caller frees it.
 */
char *sockmap_programs(void);

#endif
