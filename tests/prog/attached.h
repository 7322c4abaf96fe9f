/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One attached server, connections of the ends in packets.h to it, and packets through its programs. The files of tests that want
 * it are one program, test_attached: loading the programs takes the kernel a second.
 */
#ifndef WEIR_TESTS_ATTACHED_H
#define WEIR_TESTS_ATTACHED_H

#include "datapath_fixture.h"
#include "packets.h"

#define PASS (-1)
#define DROP 2
#define CLIENT_NEXT 1000U
#define SERVER_NEXT 500000U
#define ACK WEIR_TCP_ACK
#define PSH_ACK (WEIR_TCP_PSH | WEIR_TCP_ACK)
#define FIN_ACK (WEIR_TCP_FIN | WEIR_TCP_ACK)

extern struct datapath *dp;
extern int ingress, egress;  /* programs */
extern struct packet packet; /* the latest one */

extern const char get_a[]; /* a request of namespace a */
extern const char ok[];	   /* an answer, with a body */

/* In place of main(): the tests of this file. */
#define ATTACHED_TESTS                                      \
	static int file_tests(void);                        \
	__attribute__((constructor)) static void file(void) \
	{                                                   \
		attached_file(__FILE__, file_tests);        \
	}                                                   \
	static int file_tests(void)

void attached_file(const char *path, int (*tests)(void));
/* Runs the tests of all files, or of those that are named (test_answer): how many failed. */
int attached_run(char **names);

/*
 * Around all tests of a file: the programs are there. Around each of them: the server is attached, without options and limits; and
 * removed, with whatever the programs have kept.
 */
int attached_open(void **state);
int attached_close(void **state);
int attached_setup(void **state);
int attached_teardown(void **state);
/* The test's processes are looked into no more. The programs stay for the file's next test, and nothing that they have kept. */
void look_into_nobody(void);
void limit(enum weir_builtin_limit builtin, const char *qps, __u64 burst);
__u64 counter(enum weir_reason reason);
/* Makes a connection whose handshake is done, a new one in place of the one before. */
void connect_ends(bool ipv6);
/* What is kept of it now. */
struct weir_conn conn_look(bool ipv6);

/* Runs a program on the packet that is built of `spec`: its verdict. */
int run(int program, const struct spec *spec);
/* It passes, and bit for bit as it came. */
void assert_untouched(int program, const struct spec *spec);
/* The latest packet is an answer of weir's with this Retry-After; *seen is what it says. */
void assert_answer(struct seen *seen, const char *retry, bool body);

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, attached_setup, attached_teardown)

#endif
