/* SPDX-License-Identifier: GPL-2.0 */
/* Frames through the programs at XDP. */
#ifndef WEIR_TESTS_FRAMES_H
#define WEIR_TESTS_FRAMES_H

#include "limited.h"

/* Around all tests of a program, instead of attached_open() and _close(): with XDP, and a listener. */
int frames_open(void **state);
int frames_close(void **state);

/* Frames with these tags, to the address of which only the last byte is not 0, are for the attached server's namespace. */
void device_add(__u32 tags, __u8 last);
/* enum xdp_action: by both programs, which must agree. */
int frame_verdict(const struct packet *p);
/* By the program for native mode alone: it takes frames in several pieces. */
int native_verdict(const struct packet *p);

#endif
