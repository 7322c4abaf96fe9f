/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs cost for one packet, by BPF_PROG_TEST_RUN, in a network namespace of their own.
 *
 *   decision [RUNS [NAME]]
 *
 * NAME: only packets and heads whose name contains it, each head read RUNS times: for a profile of nothing else.
 *
 * One JSON object a line. Packets that bring nothing to read are run RUNS times (bare.h).
 *
 * A request of one packet, and its answer, with so many limits; so is a packet to a program that does nothing, run once. The least:
 *
 *   {"exchange": NAME, "limits": N, "ns": LEAST}
 *
 * The heads of both are read, and nothing else: reading.h.
 *
 * A request is refused only once, on a connection that is set back before each run: the median.
 *
 *   {"packet": NAME, "ns": MEDIAN}
 *
 * A head is read only once: several in one packet, on a connection that is set back before each run, without limits:
 *
 *   {"head": NAME, "bytes": OF ONE, "ns": MEDIAN OF ONE}
 *
 * So is a request decided only once: REQUESTS in a packet, each of a random user of those that have a bucket:
 *
 *   {"keys": N, "limits": N, "ns": MEDIAN OF ONE, "least_ns": LEAST, "bytes": OF THE BUCKET MAP}
 *
 * And with one limit for each user, which has so many rules, of which the last matches:
 *
 *   {"rules": N, "users": N, "ns": MEDIAN OF ONE, "least_ns": LEAST}
 *
 * With no limits they are read and not decided. As on loopback, checksums are left to the device.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weir/limit/penalty.h"

#include "bare.h"
#include "base/rate.h"
#include "many_rules.h"
#include "reading.h"
#include "turned.h"
#include "weir.skel.h"

#define REQUESTS 48
/* Heads, with what may differ from one to the next (reading.h). */
#define USER_TEXT_TO(host) "GET / HTTP/1.1\r\nHost: " host "\r\nX-Remote-User: u0000000\r\n\r\n"
#define KUBECTL_TEXT(host, line)                                                       \
	"GET /api/v1/namespaces/default/pods?limit=500 HTTP/1.1\r\nHost: " host "\r\n" \
	"User-Agent: kubectl/v1.31.0 (linux/amd64) kubernetes/9edcffc\r\n"             \
	"Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n"    \
	"Accept-Encoding: gzip\r\n" line "\r\n"
#define NGINX_RESPONSE_AT(time)                                                   \
	"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Fri, 20 Nov 2026 " time \
	" GMT\r\nContent-Type: text/plain\r\n"                                    \
	"Content-Length: 0\r\nConnection: keep-alive\r\n\r\n"
#define ALICE "X-Remote-User: alice\r\n"
#define USER_TEXT USER_TEXT_TO("bench")
#define NGINX_RESPONSE NGINX_RESPONSE_AT("11:36:45")
#define USER_DIGITS 7
#define USER_AT (sizeof(USER_TEXT) - 1 - 4 - USER_DIGITS)
#define BATCH 10000
#define HEADS_ROOM 3000 /* bytes of heads in a packet */
#define PACKETS 1001
#define EXCHANGES 20 /* runs for each of these: the least is looked for */

static int ingress, egress;
static __u32 times = 1000000, packets = PACKETS;
static const char *only = "";

/* --- heads */

static int compare(const void *a, const void *b)
{
	return *(const __u32 *)a < *(const __u32 *)b ? -1 : *(const __u32 *)a > *(const __u32 *)b;
}

static double median_of_one(__u32 *ns, __u32 n, __u32 in_a_packet)
{
	__u32 middle;

	qsort(ns, n, sizeof(*ns), compare);
	middle = ns[n / 2];
	return (double)middle / in_a_packet;
}

/* Room for n times; to be freed. */
static __u32 *times_array(__u32 n)
{
	__u32 *ns = calloc(n, sizeof(*ns));

	if (!ns)
		die("memory", ENOMEM);
	return ns;
}

/* All heads of the packet were read: the connection has counted them. */
static bool all_were_read(bool from_server, __u32 heads)
{
	struct weir_conn c;
	struct weir_flow flow;

	packet_flow(false, &flow);
	if (bpf_map_lookup_elem(dp->maps.conns, &flow, &c))
		die("conns", errno);
	return (from_server ? c.responses : c.requests) == heads;
}

static void measure_head(const char *name, int program, bool from_server, const char *head)
{
	static char text[HEADS_ROOM];
	const size_t size = strlen(head);
	const __u32 room = sizeof(text) / size;
	const __u32 heads = room < WEIR_OUTSTANDING_MAX ? room : WEIR_OUTSTANDING_MAX;
	struct packet packet;
	__u32 *ns;

	if (!strstr(name, only))
		return;
	ns = times_array(packets);
	for (size_t i = 0; i < heads * size; i++)
		text[i] = head[i % size];
	packet = packet_of((struct spec){ .text = text, .n_text = heads * size, .from_server = from_server });
	for (__u32 i = 0; i < packets; i++) {
		connect_anew(from_server ? heads : 0);
		ns[i] = run_ns(program, &packet, 1);
		if (!all_were_read(from_server, heads))
			die(name, EINVAL);
	}
	printf("{\"head\": \"%s\", \"bytes\": %zu, \"ns\": %.1f}\n", name, size, median_of_one(ns, packets, heads));
	free(ns);
}

static void measure_heads(void)
{
	measure_head("a small request", ingress, false, "GET / HTTP/1.1\r\nHost: bench\r\n\r\n");
	measure_head("a request of kubectl", ingress, false, KUBECTL_TEXT("127.0.0.1:8001", ""));
	measure_head("a response of Go", egress, true,
		     "HTTP/1.1 200 OK\r\n"
		     "Date: Fri, 20 Nov 2026 11:36:45 GMT\r\n"
		     "Content-Length: 0\r\n\r\n");
	measure_head("a response of nginx", egress, true, NGINX_RESPONSE);
}

/* --- requests and decisions */

static void user_write(char *digits, __u32 user)
{
	for (int i = USER_DIGITS - 1; i >= 0; i--) {
		digits[i] = '0' + user % 10;
		user /= 10;
	}
}

static int buckets_fd(__u32 slot)
{
	__u32 index = weir_limit_index(0, slot), id;
	int fd;

	if (bpf_map_lookup_elem(dp->maps.buckets, &index, &id))
		die("buckets", errno);
	fd = bpf_map_get_fd_by_id(id);
	if (fd < 0)
		die("buckets", errno);
	return fd;
}

/* Gives each of the users a bucket that was in use a moment ago. */
static void buckets_fill(int fd, __u32 slot, __u32 keys)
{
	__u32 index = weir_limit_index(0, slot);
	struct weir_limit limit;
	static struct weir_kept values[BATCH];
	static __u64 subjects[BATCH];
	char user[] = "u0000000";
	__u32 n;

	if (bpf_map_lookup_elem(dp->maps.limits, &index, &limit))
		die("limits", errno);
	for (__u32 from = 0; from < keys; from += n) {
		n = keys - from < BATCH ? keys - from : BATCH;
		for (__u32 i = 0; i < n; i++) {
			user_write(user + 1, from + i);
			subjects[i] = datapath_subject(dp, WEIR_NAME_USER, user, sizeof(user) - 1);
			values[i] = weir_kept_new(subjects[i]);
			weir_bucket_take(&values[i].bucket, &limit.terms.amount.history, datapath_now_ns());
		}
		if (bpf_map_update_batch(fd, subjects, values, &n, NULL))
			die("filling the buckets", errno);
	}
}

static unsigned long map_bytes(int fd)
{
	unsigned long bytes = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "memlock:", 8))
			bytes = strtoul(line + 8, NULL, 10);
	}
	if (file)
		fclose(file);
	return bytes;
}

static __u64 counted(enum weir_reason reason)
{
	__u64 counters[WEIR_REASON_COUNT];

	done(datapath_counters(dp, 0, counters, &error));
	return counters[reason];
}

/* Of one request, over n packets. */
struct spread {
	double median, least;
};

static struct spread measure_requests(__u32 keys, __u32 n)
{
	static char text[REQUESTS * (sizeof(USER_TEXT) - 1)];
	const size_t size = sizeof(USER_TEXT) - 1;
	__u64 before = counted(WEIR_PASSED);
	struct packet packet;
	__u32 *ns = times_array(n);
	struct spread spread;

	for (__u32 i = 0; i < n; i++) {
		for (int r = 0; r < REQUESTS; r++) {
			memcpy(text + r * size, USER_TEXT, size);
			user_write(text + r * size + USER_AT, random() % keys);
		}
		packet = packet_of((struct spec){ .text = text, .n_text = sizeof(text) });
		connect_anew(0);
		ns[i] = run_ns(ingress, &packet, 1);
	}
	if (counted(WEIR_PASSED) - before != (__u64)n * REQUESTS)
		die("some requests were not read, or did not pass", EINVAL);
	spread.median = median_of_one(ns, n, REQUESTS); /* it sorts them */
	spread.least = (double)ns[0] / REQUESTS;
	free(ns);
	return spread;
}

static __u64 ample(void)
{
	__u64 per_ns;

	if (weir_qps_parse("1000000", &per_ns))
		die("qps", EINVAL);
	return per_ns;
}

static void ample_set(enum weir_builtin_limit builtin, __u32 keys)
{
	done(limit_set(dp, 0, builtin, ample(), 1000000, keys));
}

static void measure_refusal(const char *name)
{
	struct packet packet = packet_of((struct spec){ .text = USER_TEXT, .n_text = sizeof(USER_TEXT) - 1 });
	__u64 before = counted(WEIR_ANSWERED);
	__u32 *ns;

	if (!strstr(name, only))
		return;
	ns = times_array(packets);
	done(limit_set(dp, 0, WEIR_BUILTIN_USER, 0, 0, 10));
	for (__u32 i = 0; i < packets; i++) {
		connect_anew(0);
		ns[i] = run_ns(ingress, &packet, 1);
	}
	if (counted(WEIR_ANSWERED) - before != packets)
		die("some requests were not refused", EINVAL);
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_USER, &error));
	printf("{\"packet\": \"%s\", \"ns\": %.0f}\n", name, median_of_one(ns, packets, 1));
	free(ns);
}

/* Of a packet that is run once at a time, on a connection that is set back before each run. */
static __u32 least_ns(int program, struct packet *packet, __u32 outstanding)
{
	__u32 least = ~0U, ns;

	for (__u32 i = 0; i < packets * EXCHANGES; i++) {
		connect_anew(outstanding);
		ns = run_ns(program, packet, 1);
		least = ns < least ? ns : least;
	}
	return least;
}

static void measure_exchange(__u32 limits)
{
	static const char response[] = NGINX_RESPONSE;
	struct packet asks = packet_of((struct spec){ .text = USER_TEXT, .n_text = sizeof(USER_TEXT) - 1 });
	struct packet answers = packet_of(
		(struct spec){ .text = response, .n_text = sizeof(response) - 1, .from_server = true });
	const struct {
		const char *name;
		int program;
		struct packet *packet;
	} parts[] = { { "the request", ingress, &asks }, { "its answer", egress, &answers } };
	__u64 before = counted(WEIR_PASSED);

	for (int i = 0; i < 2; i++)
		if (strstr(parts[i].name, only))
			printf("{\"exchange\": \"%s\", \"limits\": %u, \"ns\": %u}\n", parts[i].name, limits,
			       least_ns(parts[i].program, parts[i].packet, i));
	if (strstr(parts[0].name, only) && counted(WEIR_PASSED) - before != (__u64)packets * EXCHANGES)
		die("some requests did not pass", EINVAL);
}

static void measure_exchanges(void)
{
	struct packet packet = packet_of((struct spec){});
	CLEANUP_CLOSE int nothing = empty_program(BPF_PROG_TYPE_SCHED_CLS);

	if (strstr("nothing", only))
		printf("{\"exchange\": \"nothing\", \"limits\": 0, \"ns\": %u}\n", least_ns(nothing, &packet, 0));
	measure_exchange(0);
	ample_set(WEIR_BUILTIN_USER, 10);
	measure_exchange(1);
	ample_set(WEIR_BUILTIN_TOTAL, 1);
	measure_exchange(2);
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_USER, &error));
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_TOTAL, &error));
}

static void measure_keys(__u32 keys, __u32 limits, unsigned long bytes)
{
	struct spread ns = measure_requests(keys, times / 500 + 1);

	printf("{\"keys\": %u, \"limits\": %u, \"ns\": %.1f, \"least_ns\": %.1f, \"bytes\": %lu}\n", keys, limits,
	       ns.median, ns.least, bytes);
}

static void measure_decisions(__u32 keys)
{
	unsigned long bytes;

	measure_keys(keys, 0, 0);
	ample_set(WEIR_BUILTIN_USER, keys);
	{
		CLEANUP_CLOSE int fd = buckets_fd(WEIR_BUILTIN_USER);

		buckets_fill(fd, WEIR_BUILTIN_USER, keys);
		bytes = map_bytes(fd);
	}
	measure_keys(keys, 1, bytes);
	ample_set(WEIR_BUILTIN_TOTAL, 1);
	measure_keys(keys, 2, bytes);
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_USER, &error));
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_TOTAL, &error));
}

static __u64 admitted(__u32 slot)
{
	struct weir_limit_counts counts = { 0 };

	done(datapath_limit_counts(dp, 0, slot, &counts, &error));
	return counts.admitted;
}

static void measure_rules(__u32 rules, __u32 keys)
{
	__u64 before = admitted(MANY_RULES_SLOT);
	struct spread ns;

	done(many_rules_set(dp, rules, ample(), keys, &error));
	{
		CLEANUP_CLOSE int fd = buckets_fd(MANY_RULES_SLOT);

		buckets_fill(fd, MANY_RULES_SLOT, keys);
	}
	ns = measure_requests(keys, times / 500 + 1);
	printf("{\"rules\": %u, \"users\": %u, \"ns\": %.1f, \"least_ns\": %.1f}\n", rules, keys, ns.median, ns.least);
	if (admitted(MANY_RULES_SLOT) - before != (__u64)(times / 500 + 1) * REQUESTS)
		die("some requests did not meet the rules", EINVAL);
	done(many_rules_unset(dp, &error));
}

static void measure_readings(__u32 times_each)
{
	measure_reading("the request", false, USER_TEXT, times_each);
	measure_reading("its answer", true, NGINX_RESPONSE, times_each);
	measure_reading("the request, if each is another one", false, USER_TEXT_TO("#####"), times_each);
	measure_reading("its answer, if each is another one", true, NGINX_RESPONSE_AT("##:##:##"), times_each);
	measure_reading("kubectl's, with a user", false, KUBECTL_TEXT("127.0.0.1:8001", ALICE), times_each);
	measure_reading("kubectl's, if each is another one", false, KUBECTL_TEXT("127.0.0.1:####", ALICE), times_each);
}

static void set_up(void)
{
	struct weir_server server = server_plain();

	weir_groups_add(&server.groups.authenticated, MANY_RULES_GROUP);
	server_open(&server, 1024);
	ingress = bpf_program__fd(dp->skeleton->progs.weir_ingress);
	egress = bpf_program__fd(dp->skeleton->progs.weir_egress);
	turned_open();
}

int main(int argc, char **argv)
{
	static const __u32 keys[] = { 10, 10000, 1000000 };

	if (argc > 1)
		times = strtoul(argv[1], NULL, 10);
	if (argc > 2) {
		only = argv[2];
		packets = times;
	}
	set_up();
	measure_bare(times, only);
	measure_refusal("a request that is refused, and its 429");
	measure_heads();
	measure_exchanges();
	if (strstr("reading", only))
		measure_readings(packets * EXCHANGES);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && strstr("keys", only); i++)
		measure_decisions(keys[i]);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && strstr("rules", only); i++)
		for (__u32 rules = 1; rules <= 1000; rules *= rules == 1 ? 100 : 10)
			measure_rules(rules, keys[i]);
	turned_close();
	done(datapath_remove(dp, &error));
	datapath_close(dp);
	return 0;
}
