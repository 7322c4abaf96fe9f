/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What weir can do on this kernel, in this network namespace: facts, each with an answer, and what follows from them for what
 * weir does. A pure part: reading the facts is the job of read.h.
 */
#ifndef WEIR_USER_PROBE_PROBE_H
#define WEIR_USER_PROBE_PROBE_H

#include <jansson.h>

/* Name; and the reason word of what misses it. Every "yes" is good. */
#define PROBE_FACTS(X)                                         \
	X(KERNEL, "kernel", "old_kernel")                      \
	X(BTF, "btf", "no_btf")                                \
	X(PROGRAMS, "programs", "programs_refused")            \
	X(TCX, "tcx", "no_tcx")                                \
	X(CLSACT, "clsact", "no_clsact")                       \
	X(HOLD_PROGRAM, "hold_program", "hold_refused")        \
	X(CGROUP2, "cgroup2", "no_cgroup2")                    \
	X(IFB, "ifb", "no_ifb")                                \
	X(FQ, "fq", "no_fq")                                   \
	X(UNTRACKED, "loopback_untracked", "loopback_tracked") \
	X(SOCK_DIAG, "sock_diag", "no_sock_diag")              \
	X(COOKIES, "xdp_syn_cookies", "no_xdp_syn_cookies")    \
	X(PINS, "shared_bpffs", "no_shared_bpffs")             \
	X(MAPS, "maps", "other_version")

enum probe_fact {
#define X(id, name, without) PROBE_##id,
	PROBE_FACTS(X)
#undef X
	PROBE_FACT_COUNT,
};

enum probe_answer {
	PROBE_UNKNOWN, /* it takes root to find out */
	PROBE_NO,
	PROBE_YES,
};

struct probe {
	struct {
		enum probe_answer answer;
		char why[256]; /* what was found, for people; "": nothing to add */
	} facts[PROBE_FACT_COUNT];
};

/* What weir does. */
#define PROBE_LANES(X)            \
	X(ANSWER, "answer")       \
	X(TRANSLATE, "translate") \
	X(HOLD, "hold")           \
	X(RESET, "reset")         \
	X(SURVIVE, "survive")

enum probe_lane {
#define X(id, name) PROBE_LANE_##id,
	PROBE_LANES(X)
#undef X
	PROBE_LANE_COUNT,
};

enum probe_mode {
	PROBE_FULL,
	PROBE_LESSER,
	PROBE_NOTHING,
	PROBE_NOT_KNOWN,
};

struct probe_result {
	enum probe_mode mode;
	const char *how;    /* "tcx", "pace", "drop", ...; "-": there is but one way, or none */
	const char *reason; /* a reason word of PROBE_FACTS; NULL with PROBE_FULL */
	const char *why;    /* it is not known: what the probe says of that; else NULL */
};

const char *probe_fact_name(enum probe_fact fact);
const char *probe_answer_name(enum probe_answer answer);
const char *probe_lane_name(enum probe_lane lane);
const char *probe_mode_name(enum probe_mode mode);

void probe_set(struct probe *probe, enum probe_fact fact, enum probe_answer answer, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

struct probe_result probe_lane(const struct probe *probe, enum probe_lane lane);

/* {facts: [{probe, result, why}], lanes: [{lane, mode, how, reason}]} */
json_t *probe_to_json(const struct probe *probe);

#endif
