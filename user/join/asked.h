/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request, as weir has seen it in a server or as that server's audit log has it: what tells both that it is the same one.
 * The audit log is of Kubernetes: JSON lines of audit.k8s.io/v1 Event, at least of the policy's level Metadata.
 */
#ifndef WEIR_USER_JOIN_ASKED_H
#define WEIR_USER_JOIN_ASKED_H

#include <jansson.h>
#include <stdbool.h>

#include "weir/base/types.h"

#include "base/error.h"

enum asked_field {
	ASKED_USER,
	ASKED_VERB,
	ASKED_TARGET,
	ASKED_NAMESPACE,
	ASKED_GROUP,
	ASKED_RESOURCE,
	ASKED_SUBRESOURCE,
	ASKED_FIELDS,
};

struct asked {
	char *text[ASKED_FIELDS]; /* as `weir trace` prints it; NULL: none, or not known */
	__u8 address[16];	  /* of the peer; network order */
	__u64 from_ns, to_ns; /* since 1970. weir: when it was decided, both. Audit: from its receipt to its answer */
	int status;	      /* what it was answered; 0: not known */
	bool open;	      /* of an audit log: it may not have been answered yet */
};
void asked_clear(struct asked *asked);

/* An object of `weir trace --json`. 0; 1: it was not seen inside a server; -EINVAL with err filled in, -ENOMEM. */
int asked_of_request(json_t *request, struct asked *out, struct error *err);

/* id: borrowed from the event. 0; -EINVAL: it is no event of an audit log. */
int asked_of_audit(json_t *event, struct asked *out, const char **id, struct error *err);

/* Can both be the same request, whenever they were? */
bool asked_alike(const struct asked *request, const struct asked *audited);

#endif
