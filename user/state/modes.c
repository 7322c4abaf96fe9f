/* SPDX-License-Identifier: GPL-2.0 */
#include "state/modes.h"

#include "sys/xdp.h"

#define CHOICE(of, kind)                                                                           \
	{                                                                                          \
		.what = (kind), .words = of##_words, .n = sizeof(of##_words) / sizeof(*of##_words) \
	}

static const char *const loopback_words[] = {
	[LOOPBACK_AUTO] = "auto",
	[LOOPBACK_TRANSLATE] = "translate",
	[LOOPBACK_CLOSE] = "close",
};
const struct choice loopback_modes = CHOICE(loopback, "a loopback mode");

static const char *const framing_words[] = { [FRAMING_REJECT] = "reject", [FRAMING_PASS] = "pass" };
const struct choice framing_modes = CHOICE(framing, "a framing mode");

static const char *const bodies_words[] = {
	[BODIES_AUTO] = "auto", [BODIES_UNREAD] = "unread", [BODIES_READ] = "read"
};
const struct choice bodies_modes = CHOICE(bodies, "what a server does with bodies");

static const char *const hold_words[] = { [HOLD_AUTO] = "auto", [HOLD_PACE] = "pace", [HOLD_DROP] = "drop" };
const struct choice hold_modes = CHOICE(hold, "a hold mode");

static const char *const full_words[] = { [FULL_KNOWN] = "known", [FULL_OPEN] = "open", [FULL_CLOSED] = "closed" };
const struct choice full_modes = CHOICE(full, "a mode for full tables");

static const char *const inside_words[] = {
	[INSIDE_OFF] = "off",	[INSIDE_SEE] = "see",	[INSIDE_ANSWER] = "answer",
	[INSIDE_AUTO] = "auto", [INSIDE_HOLD] = "hold",
};
const struct choice inside_modes = CHOICE(inside, "a way to look inside");

static const char *const xdp_words[] = {
	[XDP_OFF] = "off",
	[XDP_AUTO] = "auto",
	[XDP_GENERIC] = "generic",
	[XDP_NATIVE] = "native",
};
const struct choice xdp_modes = CHOICE(xdp, "an XDP mode");

static const char *const syn_cookies_words[] = { [SYN_COOKIES_KERNEL] = "kernel", [SYN_COOKIES_XDP] = "xdp" };
const struct choice syn_cookies_modes = CHOICE(syn_cookies, "a place where SYN cookies are sent");

static const char *const refusals_words[] = { [REFUSALS_NAMED] = "named", [REFUSALS_PLAIN] = "plain" };
const struct choice refusals_modes = CHOICE(refusals, "a mode for refusals");
