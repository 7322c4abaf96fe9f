/* SPDX-License-Identifier: GPL-2.0 */
#include "packets.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "datapath_fixture.h"

#define ETHERNET 14
#define TS_OPTION 12

static const __u8 ends4[2][4] = { { 127, 0, 0, 9 }, { 127, 0, 0, 1 } };
static const __u8 ends6[2][16] = { { 0xfd, [15] = 9 }, { 0xfd, [15] = 1 } };

static __u32 get(const __u8 *at, int bytes)
{
	__u32 n = 0;

	while (bytes--)
		n = n << 8 | *at++;
	return n;
}

static void put(__u8 *at, int bytes, __u32 n)
{
	while (bytes--) {
		at[bytes] = n;
		n >>= 8;
	}
}

static __u32 sum(__u32 start, const __u8 *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		start += i % 2 ? at[i] : at[i] << 8;
	return start;
}

static __u16 fold(__u32 n)
{
	while (n >> 16)
		n = (n & 0xffff) + (n >> 16);
	return n;
}

/* Over addresses, protocol and length. */
static __u32 pseudo_sum(const __u8 *bytes, bool ipv6, size_t n)
{
	return ipv6 ? sum(6 + n, bytes + ETHERNET + 8, 32) : sum(6 + n, bytes + ETHERNET + 12, 8);
}

/* Over these, and the segment; 0xffff when its checksum field is right. */
static __u16 tcp_sum(const __u8 *bytes, bool ipv6, size_t n)
{
	return fold(sum(pseudo_sum(bytes, ipv6, n), bytes + ETHERNET + (ipv6 ? 40 : 20), n));
}

static void put_ip(__u8 *ip, const struct spec *spec, size_t n)
{
	int source = spec->from_server, protocol = spec->protocol ? spec->protocol : 6;

	if (spec->ipv6) {
		put(ip, 4, 6U << 28);
		put(ip + 4, 2, n);
		ip[6] = protocol;
		ip[7] = 61;
		memcpy(ip + 8, ends6[source], 16);
		memcpy(ip + 24, ends6[!source], 16);
		if (spec->mapped) {
			memcpy(ip + 8, (__u8[12]){ [10] = 0xff, [11] = 0xff }, 12);
			memcpy(ip + 20, ends4[source], 4);
		}
		return;
	}
	put(ip, 4, 0x45 << 24 | (20 + n));
	put(ip + 4, 4, 0x12344000);
	ip[8] = 61;
	ip[9] = protocol;
	memcpy(ip + 12, ends4[source], 4);
	memcpy(ip + 16, ends4[!source], 4);
	put(ip + 10, 2, (__u16)~fold(sum(0, ip, 20)));
}

void packet_build(struct packet *p, const struct spec *spec)
{
	size_t n_text = spec->text ? spec->n_text ?: strlen(spec->text) : 0;
	size_t header = 20 + (spec->ts ? TS_OPTION : 0) + spec->n_options;
	__u8 *ip = p->bytes + ETHERNET, *tcp = ip + (spec->ipv6 ? 40 : 20);
	__u16 port = spec->port ? spec->port : SERVER_PORT;
	__u16 client_port = spec->client_port ? spec->client_port : CLIENT_PORT;

	memset(p, 0, sizeof(*p));
	put(p->bytes + 12, 2, spec->ipv6 ? 0x86dd : 0x0800);
	put_ip(ip, spec, header + n_text);
	put(tcp, 2, spec->from_server ? port : client_port);
	put(tcp + 2, 2, spec->from_server ? client_port : port);
	put(tcp + 4, 4, spec->seq);
	put(tcp + 8, 4, spec->ack);
	tcp[12] = header / 4 << 4;
	tcp[13] = spec->flags;
	put(tcp + 14, 2, spec->window);
	put(tcp + 18, 2, spec->urgent);
	if (spec->ts) {
		put(tcp + 20, 4, 0x0101080a);
		put(tcp + 24, 4, spec->tsval);
		put(tcp + 28, 4, spec->tsecr);
	}
	if (spec->n_options)
		memcpy(tcp + header - spec->n_options, spec->options, spec->n_options);
	if (n_text)
		memcpy(tcp + header, spec->text, n_text);
	put(tcp + 16, 2, (__u16)~tcp_sum(p->bytes, spec->ipv6, header + n_text));
	if (spec->begun_checksum)
		put(tcp + 16, 2, fold(pseudo_sum(p->bytes, spec->ipv6, header + n_text)));
	if (spec->bad_checksum)
		tcp[17] ^= 1;
	p->length = tcp + header + n_text - p->bytes;
}

void packet_sum_ip(struct packet *p)
{
	__u8 *ip = p->bytes + ETHERNET;

	if (get(p->bytes + 12, 2) == 0x86dd)
		return;
	put(ip + 10, 2, 0);
	put(ip + 10, 2, (__u16)~fold(sum(0, ip, (ip[0] & 15) * 4)));
}

void packet_lengthen_ip(struct packet *p)
{
	bool ipv6 = get(p->bytes + 12, 2) == 0x86dd;
	__u8 *ip = p->bytes + ETHERNET, *behind = ip + (ipv6 ? 40 : 20), *length = ip + (ipv6 ? 4 : 2);

	memmove(behind + 8, behind, p->bytes + p->length - behind);
	memset(behind, 1, 8);
	p->length += 8;
	put(length, 2, get(length, 2) + 8);
	if (ipv6) {
		behind[0] = 6;
		behind[1] = 0;
		ip[6] = 60;
	} else {
		ip[0] = 0x47;
	}
	packet_sum_ip(p);
}

void packet_extend(struct packet *p, unsigned int n, bool with_length)
{
	__u8 *ip = p->bytes + ETHERNET, *behind = ip + 40;

	memmove(behind + 8 * n, behind, p->bytes + p->length - behind);
	for (unsigned int i = 0; i < n; i++)
		memcpy(behind + 8 * i, (__u8[8]){ i + 1 < n ? 60 : 6, 0, 1, 4 }, 8);
	ip[6] = 60;
	p->length += 8 * n;
	put(ip + 4, 2, with_length ? get(ip + 4, 2) + 8 * n : 0);
}

void packet_see(const struct packet *p, struct seen *seen)
{
	bool ipv6 = get(p->bytes + 12, 2) == 0x86dd;
	const __u8 *ip = p->bytes + ETHERNET, *tcp = ip + (ipv6 ? 40 : 20);
	const __u8 *source = ipv6 ? ip + 8 : ip + 12, *dest = ipv6 ? ip + 24 : ip + 16;
	size_t size = ipv6 ? 16 : 4, n = p->length - (tcp - p->bytes), header = (tcp[12] >> 4) * 4;
	const __u8 *ends = ipv6 ? ends6[0] : ends4[0];

	memset(seen, 0, sizeof(*seen));
	assert_int_equal(get(ip + (ipv6 ? 4 : 2), 2), ipv6 ? n : 20 + n);
	if (!ipv6)
		assert_int_equal(fold(sum(0, ip, 20)), 0xffff);
	assert_int_equal(tcp_sum(p->bytes, ipv6, n), 0xffff);
	seen->from_server = !memcmp(source, ends + size, size);
	assert_memory_equal(source, ends + (seen->from_server ? size : 0), size);
	assert_memory_equal(dest, ends + (seen->from_server ? 0 : size), size);
	assert_int_equal(get(tcp + (seen->from_server ? 0 : 2), 2), SERVER_PORT);
	assert_int_equal(get(tcp + (seen->from_server ? 2 : 0), 2), CLIENT_PORT);
	seen->seq = get(tcp + 4, 4);
	seen->ack = get(tcp + 8, 4);
	seen->flags = tcp[13];
	seen->window = get(tcp + 14, 2);
	seen->urgent = get(tcp + 18, 2);
	seen->options = tcp + 20;
	if (header >= 20 + TS_OPTION && get(tcp + 20, 4) == 0x0101080a) {
		seen->ts = true;
		seen->tsval = get(tcp + 24, 4);
		seen->tsecr = get(tcp + 28, 4);
		seen->options += TS_OPTION;
	}
	seen->n_options = tcp + header - seen->options;
	seen->text = (const char *)tcp + header;
	seen->n_text = n - header;
}

struct test_run {
	int program;
	struct packet *packet;
	struct __sk_buff *context;
	struct __sk_buff *context_in; /* may be NULL */
};

/* The test run takes the loopback device of the caller's network namespace. */
static int run_inside(void *arg)
{
	struct test_run *run = arg;
	struct packet in = *run->packet;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = in.bytes, .data_size_in = in.length,
		    .data_out = run->packet->bytes, .data_size_out = PACKET_ROOM, .ctx_in = run->context_in,
		    .ctx_size_in = run->context_in ? sizeof(*run->context_in) : 0, .ctx_out = run->context,
		    .ctx_size_out = sizeof(*run->context), .repeat = 1);

	if (bpf_prog_test_run_opts(run->program, &options))
		return -errno;
	run->packet->length = options.data_size_out;
	return options.retval & 0xff;
}

int packet_run(int program, struct packet *p)
{
	struct __sk_buff context;

	return packet_run_in(program, p, &context);
}

static int run_as(int program, struct packet *p, struct __sk_buff *context, struct __sk_buff *context_in)
{
	struct test_run run = { .program = program, .packet = p, .context = context, .context_in = context_in };
	int verdict = call_inside(run_inside, &run);

	if (verdict < 0)
		fail_msg("test run: %s", strerror(-verdict));
	return (__s8)verdict;
}

int packet_run_in(int program, struct packet *p, struct __sk_buff *context)
{
	return run_as(program, p, context, NULL);
}

int packet_run_gro(int program, struct packet *p, __u32 gso_size)
{
	struct __sk_buff context, in = { .gso_size = gso_size, .gso_segs = p->length / gso_size + 1 };

	return run_as(program, p, &context, &in);
}

static void map_end(const __u8 *end, bool ipv6, __u8 *out)
{
	memset(out, 0, 16);
	if (ipv6) {
		memcpy(out, end, 16);
		return;
	}
	out[10] = out[11] = 0xff;
	memcpy(out + 12, end, 4);
}

void packet_flow(bool ipv6, struct weir_flow *flow)
{
	map_end(ipv6 ? ends6[0] : ends4[0], ipv6, flow->client);
	map_end(ipv6 ? ends6[1] : ends4[1], ipv6, flow->server);
	flow->client_port = htons(CLIENT_PORT);
	flow->server_port = htons(SERVER_PORT);
}
