/* SPDX-License-Identifier: GPL-2.0 */
/* Programs on one packet (BPF_PROG_TEST_RUN) of one connection, in a network namespace of the benchmark's own. */
#ifndef WEIR_TESTS_BENCH_RUNS_H
#define WEIR_TESTS_BENCH_RUNS_H

#include "../prog/datapath_fixture.h"
#include "../prog/packets.h"

#define CLIENT_NEXT 1000U
#define SERVER_NEXT 500000U

extern struct datapath *dp; /* attached.h */

__attribute__((noreturn)) void die(const char *what, int error_number);

/* The server below, as it is where nothing is set. */
struct weir_server server_plain(void);
/* The datapath in a network namespace of its own, with this server. Whoever is at 127.0.0.0/8 may say whose request it is. */
void server_open(const struct weir_server *server, __u32 connections);

/* The mean of so many runs in a row; priority: of the skb. */
__u32 run_marked_ns(int program, struct packet *packet, __u32 priority, __u32 repeat);
__u32 run_ns(int program, struct packet *packet, __u32 repeat);

/* One that does nothing; to be closed. */
int empty_program(enum bpf_prog_type type);

/* Numbers count from where the connections below begin. As on loopback, the checksum is left to the device. */
struct packet packet_of(struct spec spec);

/* Its checksum is made, and nobody has checked it. */
struct packet packet_from_elsewhere(struct spec spec);

/* A connection whose handshake is done, and whose server owes so many answers. */
struct weir_conn connection(__u32 outstanding);
void connection_put(const struct weir_conn *c);
/* It is followed, whatever came before. */
void connect_anew(__u32 outstanding);

#endif
