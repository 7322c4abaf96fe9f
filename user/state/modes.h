/* SPDX-License-Identifier: GPL-2.0 */
/* Settings of a server that are one word of a few. */
#ifndef WEIR_USER_STATE_MODES_H
#define WEIR_USER_STATE_MODES_H

#include "base/choice.h"

/* How over-limit requests on loopback are answered: as conntrack allows, kept alive, or closed. */
enum loopback_mode {
	LOOPBACK_AUTO,
	LOOPBACK_TRANSLATE,
	LOOPBACK_CLOSE,
};

extern const struct choice loopback_modes;

/* What becomes of an ambiguous request: a 400, or the server gets it and the connection is followed no further. */
enum framing_mode {
	FRAMING_REJECT,
	FRAMING_PASS,
};

extern const struct choice framing_modes;

/* Does the server read requests' bodies, or does it take for requests what it has left unread (bpf/body_served.h)? AUTO: it is found out. */
enum bodies_mode {
	BODIES_AUTO,
	BODIES_UNREAD,
	BODIES_READ,
};

extern const struct choice bodies_modes;

/* What cannot be read and is over a limit: waits on a device where the kernel can do that, must do so, or is dropped. */
enum hold_mode {
	HOLD_AUTO,
	HOLD_PACE,
	HOLD_DROP,
};

extern const struct choice hold_modes;

/*
 * What finds no room in the kernel's tables. KNOWN and CLOSED: connections wait, requests are refused; but for KNOWN
 * connections of sources that are known pass. OPEN: all pass.
 */
enum full_mode {
	FULL_KNOWN,
	FULL_OPEN,
	FULL_CLOSED,
};

extern const struct choice full_modes;

/* Is the server itself looked into (docs/howto/see-inside.md)? */
enum inside_mode {
	INSIDE_OFF,
	INSIDE_SEE,    /* requests are counted, traced and decided, but none is refused */
	INSIDE_ANSWER, /* the server is made to refuse those over a limit */
	INSIDE_AUTO, /* ANSWER where that can be; else SEE, unless a limit is enforced that TLS is held for: then OFF */
	INSIDE_HOLD, /* connections of those over a limit are held back */
};

extern const struct choice inside_modes;

extern const struct choice xdp_modes;

/* Who answers SYNs with cookies in a flood of them (weir/admission/cookie.h). */
enum syn_cookies {
	SYN_COOKIES_KERNEL,
	SYN_COOKIES_XDP,
};

extern const struct choice syn_cookies_modes;

/* Do the answers to refused requests name the limit, and weir? */
enum refusals_mode {
	REFUSALS_NAMED,
	REFUSALS_PLAIN,
};

extern const struct choice refusals_modes;

#endif
