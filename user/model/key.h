/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A limit's key (enum weir_key_part) and its subjects, as people write them. A key is "total" or its parts joined by ',':
 * "namespace,user". A subject has a text for each of them, in the order of enum weir_key_part, joined by '/': "ns1/alice".
 */
#ifndef WEIR_USER_MODEL_KEY_H
#define WEIR_USER_MODEL_KEY_H

#include "model/parse.h"

struct datapath;

#define KEY_TEXT 48 /* room for any key */
#define KEY_SUBJECT_TEXT (WEIR_KEY_PARTS * (PARSE_SUBJECT_MAX + 1) + 1)

/* In any order, each part at most once. */
int key_parse(const char *text, __u8 *key, struct error *err);
void key_format(__u8 key, char text[static KEY_TEXT]);

/* The canonical text: one for each subject. Of a key that is no one's own (total, object) there is none. */
int key_subject_parse(__u8 key, const char *text, char canonical[static KEY_SUBJECT_TEXT], struct error *err);
/* The subject of a canonical text to the kernel. */
__u64 key_subject(const struct datapath *dp, __u8 key, const char *canonical);

/* The subject that limits by source charge for an address (IPv6: its /64), and its name. */
struct datapath_cidr source_counted(const __u8 address[static 16]);
void format_source(const struct datapath_cidr *source, char text[static PARSE_LISTEN_TEXT]);

#endif
