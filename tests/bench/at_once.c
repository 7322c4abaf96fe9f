/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a request takes while another CPU decides, too: a thread on each of two CPUs runs packets of REQUESTS requests through the program
 * (BPF_PROG_TEST_RUN), each on a connection of its own.
 *
 *   at_once [PACKETS]
 *
 * One JSON object a line; ns: the median over a round's packets, for one request; the least of ROUNDS rounds, in turns:
 *
 *   {"at_once": HOW, "limits": N, "ns": OF ONE}
 *
 * And packets that change nothing, REPEATS in a row; the same:
 *
 *   {"at_once": HOW, "packet": NAME, "ns": OF ONE}
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rate.h"
#include "runs.h"
#include "weir.skel.h"

#define REQUESTS 48
#define ROUNDS 8
#define CPUS 2
#define USER_TEXT "GET / HTTP/1.1\r\nHost: bench\r\nX-Remote-User: u0\r\n\r\n"
#define USER_AT (sizeof(USER_TEXT) - 1 - 5)
#define PORT_AT 34
#define REPEATS 1000
#define BODY (1 << 20)

static int ingress;
static __u32 packets = 2000;
static pthread_barrier_t start;

/* Who decides beside whom. */
static const struct way {
	const char *name;
	int cpus;
	int users;
} ways[] = {
	{ "one CPU", 1, 1 },
	{ "two CPUs, two users", 2, 2 },
	{ "two CPUs, one user", 2, 1 },
};
#define WAYS (sizeof(ways) / sizeof(*ways))

struct side {
	pthread_t thread;
	int cpu;
	struct packet packet;
	__u32 packets, repeat;
	struct weir_flow flow;
	struct weir_conn conn; /* as it is before each packet */
	__u32 *ns;
	int failed;
};

static struct side sides[CPUS];

static int compare(const void *a, const void *b)
{
	return *(const __u32 *)a < *(const __u32 *)b ? -1 : *(const __u32 *)a > *(const __u32 *)b;
}

/* n packets of this kind, each so many times in a row, from a port of this side's own. */
static void side_make(struct side *side, int cpu, const struct spec *spec, __u32 n, __u32 repeat)
{
	__u16 port = CLIENT_PORT + cpu;

	side->cpu = cpu;
	side->packets = n;
	side->repeat = repeat;
	side->packet = packet_of(*spec);
	side->packet.bytes[PORT_AT] = port >> 8;
	side->packet.bytes[PORT_AT + 1] = port & 0xff;
	packet_flow(false, &side->flow);
	side->flow.client_port = htons(port);
	side->conn = connection(0);
}

/* Packets of a user's requests. */
static void side_make_requests(struct side *side, int cpu, int user, __u32 n)
{
	static char text[REQUESTS * (sizeof(USER_TEXT) - 1)];
	const size_t size = sizeof(USER_TEXT) - 1;

	for (int i = 0; i < REQUESTS; i++) {
		memcpy(text + i * size, USER_TEXT, size);
		text[i * size + USER_AT] = '0' + user;
	}
	side_make(side, cpu, &(struct spec){ .text = text, .n_text = sizeof(text) }, n, 1);
}

static int packets_run(void *arg)
{
	struct side *side = arg;

	for (__u32 i = 0; i < side->packets; i++) {
		struct bpf_test_run_opts options = {
			.sz = sizeof(options),
			.data_in = side->packet.bytes,
			.data_size_in = side->packet.length,
			.repeat = side->repeat,
		};

		if (bpf_map_update_elem(dp->maps.conns, &side->flow, &side->conn, BPF_ANY) ||
		    bpf_prog_test_run_opts(ingress, &options))
			return -errno;
		side->ns[i] = options.duration;
	}
	return 0;
}

static void *side_run(void *arg)
{
	struct side *side = arg;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(side->cpu, &cpu);
	pthread_setaffinity_np(pthread_self(), sizeof(cpu), &cpu);
	/* What else runs here must not keep the two from running at once. */
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	pthread_barrier_wait(&start);
	side->failed = call_inside(packets_run, side);
	return NULL;
}

static __u32 median(const struct side *side)
{
	return side->ns[side->packets / 2];
}

/* One round of the first so many sides at once: the median of a packet. */
static double round_ns(int cpus)
{
	double sum = 0;

	pthread_barrier_init(&start, NULL, cpus);
	for (int i = 0; i < cpus; i++)
		if (pthread_create(&sides[i].thread, NULL, side_run, &sides[i]))
			die("a thread", EAGAIN);
	for (int i = 0; i < cpus; i++) {
		pthread_join(sides[i].thread, NULL);
		if (sides[i].failed)
			die("test run", -sides[i].failed);
		qsort(sides[i].ns, sides[i].packets, sizeof(*sides[i].ns), compare);
		sum += median(&sides[i]);
	}
	pthread_barrier_destroy(&start);
	return sum / cpus;
}

static double requests_ns(const struct way *way)
{
	for (int i = 0; i < way->cpus; i++)
		side_make_requests(&sides[i], i, i % way->users, packets);
	return round_ns(way->cpus) / REQUESTS;
}

static __u64 counted(enum weir_reason reason)
{
	__u64 counters[WEIR_REASON_COUNT];

	done(datapath_counters(dp, 0, counters, &error));
	return counters[reason];
}

/* On one CPU, so that the buckets of the two users lie beside each other. */
static void buckets_make(void)
{
	for (int user = 0; user < CPUS; user++) {
		side_make_requests(&sides[0], 0, user, 1);
		if (call_inside(packets_run, &sides[0]))
			die("test run", EINVAL);
	}
}

static void measure(int limits)
{
	double least[WAYS];
	__u64 before, lost, contended, asked = 0;

	buckets_make();
	before = counted(WEIR_PASSED);
	contended = counted(WEIR_LIMIT_CONTENDED);
	for (size_t w = 0; w < WAYS; w++)
		least[w] = 1e9;
	for (int i = 0; i < ROUNDS; i++)
		for (size_t w = 0; w < WAYS; w++) {
			double ns = requests_ns(&ways[w]);

			least[w] = ns < least[w] ? ns : least[w];
			asked += (__u64)packets * REQUESTS * ways[w].cpus;
		}
	/* Eight times in a row another CPU may be first: then a request is refused, and what comes behind it in the packet is not read. */
	lost = asked - (counted(WEIR_PASSED) - before);
	if (lost > (counted(WEIR_LIMIT_CONTENDED) - contended) * REQUESTS)
		die("some requests did not pass", EINVAL);
	for (size_t w = 0; w < WAYS; w++)
		printf("{\"at_once\": \"%s\", \"limits\": %d, \"ns\": %.1f}\n", ways[w].name, limits, least[w]);
}

/* The connections are in the midst of a body. */
static void measure_packet(const char *name, struct spec spec)
{
	double least[] = { 1e9, 1e9 };

	for (int i = 0; i < ROUNDS; i++)
		for (int cpus = 1; cpus <= CPUS; cpus++) {
			double ns;

			for (int cpu = 0; cpu < cpus; cpu++) {
				side_make(&sides[cpu], cpu, &spec, packets / 10 + 1, REPEATS);
				sides[cpu].conn = connection(1);
				sides[cpu].conn.request_next += BODY;
			}
			ns = round_ns(cpus);
			least[cpus - 1] = ns < least[cpus - 1] ? ns : least[cpus - 1];
		}
	for (int cpus = 1; cpus <= CPUS; cpus++)
		printf("{\"at_once\": \"%s\", \"packet\": \"%s\", \"ns\": %.0f}\n", ways[cpus - 1].name, name,
		       least[cpus - 1]);
}

static void measure_packets(void)
{
	static const char body[1024];

	measure_packet("to another port", (struct spec){ .port = SERVER_PORT + 1 });
	measure_packet("pure ACK", (struct spec){});
	measure_packet("1 KiB of a body", (struct spec){ .text = body, .n_text = sizeof(body) });
}

static void limit_ample(enum weir_builtin_limit builtin, __u32 keys)
{
	__u64 per_ns;

	if (weir_qps_parse("100000000", &per_ns))
		die("qps", EINVAL);
	done(limit_set(dp, 0, builtin, per_ns, 100000000, keys));
}

static void set_up(void)
{
	const struct weir_server server = server_plain();

	server_open(&server, 1024);
	ingress = bpf_program__fd(dp->skeleton->progs.weir_ingress);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		packets = strtoul(argv[1], NULL, 10);
	for (int i = 0; i < CPUS; i++) {
		sides[i].ns = calloc(packets, sizeof(*sides[i].ns));
		if (!sides[i].ns)
			die("memory", ENOMEM);
	}
	set_up();
	measure_packets();
	measure(0);
	limit_ample(WEIR_BUILTIN_USER, 1000);
	measure(1);
	limit_ample(WEIR_BUILTIN_TOTAL, 1);
	measure(2);
	done(datapath_remove(dp, &error));
	datapath_close(dp);
	return 0;
}
