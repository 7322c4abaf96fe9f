/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose request is it. The first of these that says so:
 *
 *   1. the user header, where the peer is a trusted proxy
 *   2. the bearer token, where it is known
 *   3. the peer's address, where it is in the table of addresses
 *   4. nobody: system:anonymous, told apart by addresses
 *
 * What is ambiguous says nothing: two user headers, two Authorization headers. Impersonate-User is not asked: the one
 * who impersonates is charged.
 */
#ifndef WEIR_HTTP_IDENTITY_H
#define WEIR_HTTP_IDENTITY_H

#include "weir/abi/abi.h"
#include "weir/base/groups.h"
#include "weir/http/request.h"

/* In the order in which they are asked, which is that of their reasons. */
enum weir_identified_by {
	WEIR_IDENTIFIED_BY_REQUEST_HEADER,
	WEIR_IDENTIFIED_BY_TOKEN,
	WEIR_IDENTIFIED_BY_ADDRESS_TABLE,
	WEIR_IDENTIFIED_BY_NOBODY,
	WEIR_IDENTIFIED_WAYS,				  /* that a request's bytes may have */
	WEIR_IDENTIFIED_BY_SERVER = WEIR_IDENTIFIED_WAYS, /* the server itself has said it (weir/inside) */
};

WEIR_INLINE enum weir_reason weir_identified_reason(enum weir_identified_by by)
{
	return (enum weir_reason)(WEIR_BY_REQUEST_HEADER + by);
}

/* What else was noticed; note n is counted as WEIR_UNTRUSTED_IDENTITY + n. */
#define WEIR_NOTES (WEIR_OVERFLOW + 1 - WEIR_UNTRUSTED_IDENTITY)

struct weir_identity {
	__u64 user;	 /* subject; 0: that of the peer's address */
	__u64 namespace; /* 0: none */
	struct weir_groups groups;
	__u32 notes; /* a bit for each */
	__u8 by;     /* enum weir_identified_by */
	__u8 pad[3];
};
WEIR_ASSERT_SIZE(struct weir_identity, 40);

WEIR_INLINE void weir_identity_note(struct weir_identity *id, enum weir_reason reason)
{
	id->notes |= 1U << (reason - WEIR_UNTRUSTED_IDENTITY);
}

/* Does the request name its user, if its peer may? */
WEIR_INLINE bool weir_request_claims(const struct weir_request *r)
{
	return weir_request_says(r, WEIR_HEADER_USER) || weir_request_says(r, WEIR_HEADER_GROUP);
}

/* The token that may be looked up; 0: none. */
WEIR_INLINE __u64 weir_request_token(const struct weir_request *r)
{
	return weir_request_repeats(r, WEIR_HEADER_TOKEN) ? 0 : r->token_subject;
}

WEIR_INLINE bool weir_identity_by_header(struct weir_identity *id, const struct weir_request *r,
					 const struct weir_known_groups *known, bool trusted)
{
	if (!weir_request_claims(r))
		return false;
	if (!trusted) {
		weir_identity_note(id, WEIR_UNTRUSTED_IDENTITY);
		return false;
	}
	if (weir_request_repeats(r, WEIR_HEADER_USER)) {
		weir_identity_note(id, WEIR_REPEATED_USER);
		return false;
	}
	if (!r->user_subject)
		return false;
	id->by = WEIR_IDENTIFIED_BY_REQUEST_HEADER;
	id->user = r->user_subject;
	id->groups = r->groups;
	weir_groups_join(&id->groups, &known->authenticated);
	if (r->account == WEIR_ACCOUNT_NAME)
		weir_groups_join(&id->groups, &known->service_accounts);
	return true;
}

/*
 * namespace: that of the request itself. trusted: the peer is a proxy that may name users. token, address: whom they stand for; NULL: nobody.
 */
WEIR_INLINE void weir_identify(struct weir_identity *id, const struct weir_request *r, __u64 namespace,
			       const struct weir_known_groups *known, bool trusted, const struct weir_principal *token,
			       const struct weir_principal *address)
{
	const struct weir_principal *principal = token ? token : address;

	*id = (struct weir_identity){ .by = WEIR_IDENTIFIED_BY_NOBODY, .groups = known->unauthenticated };
	if (weir_request_says(r, WEIR_HEADER_IMPERSONATE))
		weir_identity_note(id, WEIR_IMPERSONATED);
	id->namespace = !namespace && address ? address->namespace : namespace;
	if (weir_identity_by_header(id, r, known, trusted))
		return;
	if (weir_request_repeats(r, WEIR_HEADER_TOKEN))
		weir_identity_note(id, WEIR_REPEATED_TOKEN);
	if (!principal)
		return;
	id->by = token ? WEIR_IDENTIFIED_BY_TOKEN : WEIR_IDENTIFIED_BY_ADDRESS_TABLE;
	id->user = principal->user;
	id->groups = principal->groups;
}

WEIR_INLINE bool weir_identity_exempt(const struct weir_identity *id, const struct weir_known_groups *known)
{
	return weir_groups_meet(&id->groups, &known->exempt);
}

#endif
