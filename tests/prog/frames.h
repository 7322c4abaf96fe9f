/* SPDX-License-Identifier: GPL-2.0 */
/* Frames through the programs at XDP. */
#ifndef WEIR_TESTS_FRAMES_H
#define WEIR_TESTS_FRAMES_H

#include "limited.h"

/* Around all tests of a file, instead of attached_open() and _close(): with XDP, and a listener. */
int frames_open(void **state);
int frames_close(void **state);

/* Another listener in the place of the one that there is; or two of them, which share the port. */
void frames_listen_anew(void);
void frames_listen_shared(void);
/* Frames with these tags, to the address of which only the last byte is not 0, are for the attached server's namespace. */
void device_add(__u32 tags, __u8 last);
/* The server's address is the namespace's, on this device (0: on several); or it is not. */
void address_add(bool ipv6, __u32 ifindex);
void address_drop(bool ipv6);
void device_put(const struct weir_device_key *key, const struct weir_device *device);
/* enum xdp_action: by both programs, which must agree. */
int frame_verdict(const struct packet *p);
/* By the program for native mode alone: it takes frames in several pieces. */
int native_verdict(const struct packet *p);
/* As frame_verdict(). The frame becomes what the programs have made of it, which must be the same. */
int frame_run(struct packet *p);
/* How often the programs have run for the latest frame. */
extern int frame_runs;
/* As a frame of a device that has native mode, by the program for it: what that sends back leaves by the device. */
void frame_live(const char *device, const struct packet *p);
/* Puts tags in front of what the frame has: kind, control, kind, control, ... */
void frame_tag(struct packet *p, const __u16 *tags, size_t n);

#endif
