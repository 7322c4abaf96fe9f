/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests that servers are working on, each under its goroutine. Nobody has to see where they end: whoever reads asks
 * the server's own memory whether the goroutine still lives. Go never frees a runtime.g, and never uses a goroutine's number twice.
 *
 * While nobody looks, those that end soon are not written down: who begins to look finds those that may have been there for long.
 *
 *   map           type   key                      value
 *   inside_open   HASH   struct weir_inside_key   struct weir_inside_open
 */
#ifndef WEIR_INSIDE_OPEN_H
#define WEIR_INSIDE_OPEN_H

#include "weir/base/duration.h"
#include "weir/inside/process.h"
#include "weir/top/asked.h"

#define WEIR_LOOK_NS \
	(300 * WEIR_NS_PER_S) /* for so long, who has looked looks: longer than it is until a script's next look */

/* What a runtime.g has at weir_inside_layout.state. */
struct weir_inside_goroutine {
	__u32 state;
	__u32 lock;
	__u64 number;
};
WEIR_ASSERT_SIZE(struct weir_inside_goroutine, 16);

/* States, as Go's runtime has them. While its stack is looked at, a goroutine has another bit. */
#define WEIR_GOROUTINE_IDLE 0U
#define WEIR_GOROUTINE_RUNNING 2U
#define WEIR_GOROUTINE_DEAD 6U
#define WEIR_GOROUTINE_SCANNED 0x1000U

struct weir_inside_open {
	__u64 number;	/* of its goroutine; 0: it could not be read */
	__u8 goes_on;	/* HTTP/1: its goroutine may be its connection's, and goes on after it */
	__u8 end_known; /* where it ends is probed: it is deleted there */
	__u8 pad[6];
	struct weir_asked asked;
};
WEIR_ASSERT_SIZE(struct weir_inside_open, 136);

/* A goroutine that has come to a probe runs. If it does not seem to, what was read is something else: 0. */
WEIR_INLINE __u64 weir_inside_number(const struct weir_inside_goroutine *running)
{
	return (running->state & ~WEIR_GOROUTINE_SCANNED) == WEIR_GOROUTINE_RUNNING ? running->number : 0;
}

/* now: what its goroutine has become. */
WEIR_INLINE bool weir_inside_has_ended(const struct weir_inside_open *open, const struct weir_inside_goroutine *now)
{
	const __u32 state = now->state & ~WEIR_GOROUTINE_SCANNED;

	return open->number &&
	       (open->number != now->number || state == WEIR_GOROUTINE_DEAD || state == WEIR_GOROUTINE_IDLE);
}

/* Its goroutine lives; is that all that is known? */
WEIR_INLINE bool weir_inside_may_have_ended(const struct weir_inside_open *open)
{
	return !open->number || (open->goes_on && !open->end_known);
}

#endif
