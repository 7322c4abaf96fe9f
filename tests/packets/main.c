/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sends packets as no kernel would to an HTTP server, on many connections at once.
 *
 *   sender --interface NAME --server ADDRESS --port N --source ADDRESS --macs OURS,THEIRS --seed N
 *          [--packets N] [--connections N,N,...] [--open N] [--burst N]
 *
 * The requests of connection N are those of the user fuzz-N. Connections begin at 0 and go on until so many packets are
 * sent; --connections: these alone, in this order. One line on stdout, for run to read:
 *
 *   packets=N connections=N unsent=N tame=N
 *
 * Exit 1 when a well-behaved client was not served as it should be.
 */
#include "conn.h"
#include "tame.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OPEN_MAX 1024
#define FEW 8 /* connections that do not keep the sender busy while the server thinks */

struct settings {
	const char *interface, *server, *connections;
	struct ends ends;
	uint64_t seed, packets;
	unsigned int open, burst;
};

struct fuzzer {
	struct settings settings;
	struct wire *wire;
	struct conn *conns;
	struct conn *by_port[1 << 16];
	const char *list; /* what is left of settings.connections */
	uint64_t begun;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void hear(void *context, const struct heard *heard)
{
	struct fuzzer *f = context;

	if (f->by_port[heard->port])
		conn_hear(f->by_port[heard->port], heard);
}

/* False: there is none left. */
static bool next_number(struct fuzzer *f, uint64_t *number)
{
	char *end;

	if (!f->settings.connections) {
		*number = f->begun;
		return wire_sent(f->wire) < f->settings.packets;
	}
	if (!*f->list)
		return false;
	*number = strtoull(f->list, &end, 10);
	f->list = *end ? end + 1 : end;
	return true;
}

/* True: it is alive. */
static bool turn(struct fuzzer *f, struct conn *conn, uint64_t now)
{
	uint64_t number;

	if (conn->state == CONN_OVER) {
		if (f->by_port[conn->ends.source_port] == conn)
			f->by_port[conn->ends.source_port] = NULL;
		if (!next_number(f, &number))
			return false;
		conn_begin(conn, f->wire, &f->settings.ends, f->settings.seed, number);
		f->by_port[conn->ends.source_port] = conn;
		if (f->settings.connections)
			conn_describe(conn);
		f->begun++;
	}
	conn_step(conn, now);
	return true;
}

static void run(struct fuzzer *f)
{
	unsigned int alive;

	do {
		uint64_t now = now_ns();

		alive = 0;
		for (unsigned int i = 0; i < f->settings.open; i++)
			alive += turn(f, &f->conns[i], now);
		wire_flush(f->wire);
		wire_hear(f->wire, alive <= FEW, hear, f);
	} while (alive);
}

static bool read_address(const char *text, struct ends *ends, uint8_t *address)
{
	ends->ipv6 = strchr(text, ':');
	return inet_pton(ends->ipv6 ? AF_INET6 : AF_INET, text, address) == 1;
}

static bool read_macs(const char *text, struct ends *ends)
{
	uint8_t *o = ends->source_mac, *t = ends->dest_mac;

	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx,%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &o[0], &o[1], &o[2], &o[3],
		      &o[4], &o[5], &t[0], &t[1], &t[2], &t[3], &t[4], &t[5]) == 12;
}

enum choice {
	INTERFACE,
	SERVER,
	PORT,
	SOURCE,
	MACS,
	SEED,
	PACKETS,
	CONNECTIONS,
	OPEN,
	BURST,
};

static bool read_option(int choice, const char *text, struct settings *s)
{
	switch (choice) {
	case INTERFACE:
		s->interface = text;
		return true;
	case SERVER:
		s->server = text;
		return read_address(text, &s->ends, s->ends.dest);
	case SOURCE:
		return read_address(text, &s->ends, s->ends.source);
	case MACS:
		return read_macs(text, &s->ends);
	case PORT:
		s->ends.dest_port = strtoul(text, NULL, 10);
		return s->ends.dest_port;
	case SEED:
		s->seed = strtoull(text, NULL, 10);
		return true;
	case PACKETS:
		s->packets = strtoull(text, NULL, 10);
		return true;
	case CONNECTIONS:
		s->connections = text;
		return true;
	case OPEN:
		s->open = strtoul(text, NULL, 10);
		return s->open && s->open <= OPEN_MAX;
	case BURST:
		s->burst = strtoul(text, NULL, 10);
		return true;
	default:
		return false;
	}
}

static bool read_options(int argc, char **argv, struct settings *s)
{
	static const struct option options[] = {
		{ "interface", required_argument, NULL, INTERFACE },
		{ "server", required_argument, NULL, SERVER },
		{ "port", required_argument, NULL, PORT },
		{ "source", required_argument, NULL, SOURCE },
		{ "macs", required_argument, NULL, MACS },
		{ "seed", required_argument, NULL, SEED },
		{ "packets", required_argument, NULL, PACKETS },
		{ "connections", required_argument, NULL, CONNECTIONS },
		{ "open", required_argument, NULL, OPEN },
		{ "burst", required_argument, NULL, BURST },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (!read_option(option, optarg, s)) {
			fprintf(stderr, "sender: a wrong option, or %s is not what it takes\n", optarg);
			return false;
		}
	}
	return s->interface && s->server;
}

int main(int argc, char **argv)
{
	static struct fuzzer fuzzer = { .settings = { .packets = 10000, .open = 64, .burst = 2 } };
	struct settings *settings = &fuzzer.settings;
	struct tame *tame;
	long right;

	if (!read_options(argc, argv, settings))
		return 2;
	fuzzer.list = settings->connections;
	fuzzer.conns = calloc(settings->open, sizeof(*fuzzer.conns));
	fuzzer.wire = wire_open(settings->interface, settings->ends.ipv6, settings->ends.dest_port);
	tame = tame_start(settings->server, settings->ends.dest_port, settings->burst);
	if (!fuzzer.conns || !fuzzer.wire || !tame) {
		perror("sender");
		return 2;
	}
	for (unsigned int i = 0; i < settings->open; i++)
		fuzzer.conns[i].state = CONN_OVER;
	run(&fuzzer);
	right = tame_stop(tame);
	printf("packets=%llu connections=%llu unsent=%llu tame=%ld\n", (unsigned long long)wire_sent(fuzzer.wire),
	       (unsigned long long)fuzzer.begun, (unsigned long long)wire_unsent(fuzzer.wire), right);
	wire_close(fuzzer.wire);
	free(fuzzer.conns);
	return right < 0;
}
