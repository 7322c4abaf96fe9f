/* SPDX-License-Identifier: GPL-2.0 */
/* What servers were told, and what of it is another one than before. */
#ifndef WEIR_USER_AUDIT_VIEW_H
#define WEIR_USER_AUDIT_VIEW_H

#include "state/state.h"

#define AUDIT_CHANGES_MAX 200 /* of one command; more are told of as a number */

/* All servers but those that are draining. */
struct audit_view {
	struct audited {
		char name[PARSE_NAME_SIZE];
		json_t *settings;
		const struct limit *limits;
		size_t n_limits;
		struct limit *copies; /* owned: the limits, unless they are the server's own */
	} * servers;
	size_t n;
	const char *subject; /* borrowed: only this one's overrides are kept, as there may be very many; NULL: all */
};

/* As they are now, whatever becomes of the state; the caller clears it. -ENOMEM: *out is empty. */
int audit_view(const struct state *state, const char *subject, struct audit_view *out);
/* The same, which must go before the state changes; the caller clears it, on failure too. */
int audit_view_now(const struct state *state, struct audit_view *out);
void audit_view_clear(struct audit_view *view);
#define CLEANUP_AUDIT_VIEW __attribute__((cleanup(audit_view_clear)))

/* [{server, what, before, after}]: before is null of what is new, after of what is gone. A new reference. */
json_t *audit_changes(const struct audit_view *before, const struct audit_view *after);

#endif
