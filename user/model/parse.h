/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The words people type, strictly: ports, addresses, names. Each function takes one whole text, returns 0 or -EINVAL
 * with err filled in, and leaves its out-parameter untouched on failure. The texts of errors quote what was given.
 */
#ifndef WEIR_USER_MODEL_PARSE_H
#define WEIR_USER_MODEL_PARSE_H

#include "weir/abi/abi.h"

#include "base/error.h"
#include "base/texts.h"
#include "datapath/address.h"

#define PARSE_NAME_SIZE 64	/* a server's or limit's name with its NUL */
#define PARSE_INTERFACE_SIZE 16 /* IFNAMSIZ */
#define PARSE_HEADER_SIZE (WEIR_TOKEN_MAX + 1)
#define PARSE_SUBJECT_MAX 1024 /* bytes */
#define PARSE_KEYS_MAX (1U << 24)

int parse_number(const char *text, __u64 max, __u64 *out, struct error *err);
/* Of which there must be one. */
int parse_count(const char *text, __u64 max, __u64 *out, struct error *err);
int parse_port(const char *text, __u16 *port, struct error *err);

/* ADDR:PORT, [ADDR6]:PORT or *:PORT. 0.0.0.0 and :: mean every address, as * does. */
int parse_listen(const char *text, struct datapath_listen *listen, struct error *err);

/* ADDR or ADDR/BITS, host bits cut off. -ERANGE: an address, but with an impossible prefix. */
int parse_cidr(const char *text, struct datapath_cidr *cidr, struct error *err);

/* Is the address in the network? */
bool cidr_covers(const struct datapath_cidr *network, const __u8 address[static 16]);

int parse_server_name(const char *text, struct error *err);
int parse_limit_name(const char *text, struct error *err);
int parse_interface(const char *text, struct error *err);
/* A header that weir may read: the name in lower case. */
int parse_header(const char *text, char name[static PARSE_HEADER_SIZE], struct error *err);
/* The name of a user, a group or a namespace, none of which may hold control characters. */
int parse_subject_name(const char *text, struct error *err);

/*
 * Whom a limit is for, as one part of its key has it (enum weir_key_part). text is canonical: one text for each subject, and
 * parsing it again gives the same subject.
 */
struct subject {
	enum weir_name_kind kind;
	__u8 address[16]; /* with WEIR_NAME_ADDRESS; network order */
	char text[PARSE_SUBJECT_MAX + 1];
};
int parse_subject(enum weir_key_part part, const char *text, struct subject *subject, struct error *err);
/* Of lists of users and of groups: of whom a request is. */
make_text user_text, group_text;
/* What of it is hashed (datapath_subject()): the address of one that is an address, else the text. */
const void *subject_bytes(const struct subject *subject, size_t *length);

#define PARSE_ADDRESS_TEXT 46 /* INET6_ADDRSTRLEN */
#define PARSE_LISTEN_TEXT 64
/* IPv4 where the address is ::ffff:a.b.c.d */
void format_address(const __u8 address[static 16], char text[static PARSE_ADDRESS_TEXT]);
void format_listen(const struct datapath_listen *listen, char text[static PARSE_LISTEN_TEXT]);
void format_cidr(const struct datapath_cidr *cidr, char text[static PARSE_LISTEN_TEXT]);

#endif
