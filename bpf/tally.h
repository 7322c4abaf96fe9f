/* SPDX-License-Identifier: GPL-2.0 */
/* What each limit said to a request, counted once it is certain what becomes of it: nothing that is counted is taken back. */
#ifndef WEIR_BPF_TALLY_H
#define WEIR_BPF_TALLY_H

#include "undo.h"

/* Of one limit, what it said by its bits in the decision. dry_run: its server's. */
struct said {
	__u32 index;
	__u32 charged, refused, overlooked, dry_run;
};

static __always_inline void limit_tally(const struct said *said, __u64 asked, __u64 asked_anew)
{
	struct weir_limit_counts *counts;
	__u32 index = said->index;

	counts = bpf_map_lookup_elem(&limit_counts, &index);
	if (!counts)
		return;
	if (said->charged & 1)
		add(&counts->admitted, asked);
	else if (said->overlooked & 1 || (said->refused & 1 && said->dry_run))
		add(&counts->dry_run_refused, asked_anew);
	else if (said->refused & 1)
		add(&counts->refused, asked_anew);
}

static __always_inline void tally_limit(const struct decision *d, __u32 n)
{
	const struct said said = {
		.index = weir_limit_index(d->server, d->limits[n & (WEIR_MATCHES_MAX - 1)]),
		.charged = d->charged >> n,
		.refused = d->refused >> n,
		.overlooked = d->overlooked >> n,
		.dry_run = d->server_flags & WEIR_SERVER_DRY_RUN,
	};

	limit_tally(&said, d->asked, d->asked_anew);
}

/* The latest decision stands. */
static __always_inline void tally_latest(const struct decision *d)
{
	if (!(d->charged | d->refused | d->overlooked))
		return;
#pragma clang loop unroll(disable)
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		if (n >= d->n_limits)
			break;
		tally_limit(d, n);
	}
}

__noinline int tally_decision(struct decision *d)
{
	if (d)
		tally_latest(d);
	return 0;
}

/* The same for an earlier decision, of which this was kept. */
__noinline int tally_decided(const struct decided *kept, __u32 server, __u32 server_flags)
{
	if (!kept)
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 n = 0; n < WEIR_MATCHES_MAX; n++) {
		const struct said said = {
			.index = weir_limit_index(server, kept->limits[n]),
			.charged = kept->charged >> n,
			.refused = kept->refused >> n,
			.overlooked = kept->overlooked >> n,
			.dry_run = server_flags & WEIR_SERVER_DRY_RUN,
		};

		if (n >= kept->n_limits)
			break;
		limit_tally(&said, 1, 1);
	}
	return 0;
}

#endif
