/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A flood of SYNs whose sources are not the sender's own: random ones of 172.16.0.0/12, which is a million addresses.
 *
 *   syns DEVICE MAC ADDRESS PORT RATE SECONDS
 *
 * MAC: of who receives them. One line of JSON on stdout: how many were sent.
 */
#include <arpa/inet.h>
#include <err.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOURCES 0xac100000U
#define SOURCES_MASK 0xfffffU
#define BATCH 64
#define NS_PER_S 1000000000ULL

struct frame {
	struct ether_header ether;
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));

static struct frame frames[BATCH];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The sum of 16-bit words in ones' complement, not yet folded. */
static uint32_t sum(const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint32_t total = 0;

	for (size_t i = 0; i < size; i += 2)
		total += bytes[i] << 8 | bytes[i + 1];
	return total;
}

static uint16_t checksum(uint32_t total)
{
	total = (total >> 16) + (total & 0xffff);
	return htons(~((total >> 16) + total));
}

static uint32_t next_random(void)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

static void frame_begin(struct frame *f, const uint8_t mac[6], const char *address, const char *port)
{
	memcpy(f->ether.ether_dhost, mac, 6);
	memset(f->ether.ether_shost, 2, 6);
	f->ether.ether_type = htons(ETHERTYPE_IP);
	f->ip = (struct iphdr){ .version = 4,
				.ihl = 5,
				.ttl = 64,
				.protocol = IPPROTO_TCP,
				.tot_len = htons(sizeof(f->ip) + sizeof(f->tcp)) };
	if (inet_pton(AF_INET, address, &f->ip.daddr) != 1)
		errx(2, "%s is no IPv4 address", address);
	f->tcp = (struct tcphdr){ .dest = htons(atoi(port)), .doff = 5, .syn = 1, .window = htons(1000) };
}

static void frame_vary(struct frame *f)
{
	uint32_t random = next_random();

	f->ip.saddr = htonl(SOURCES | (random & SOURCES_MASK));
	f->tcp.source = htons(1024 + (random >> 17));
	f->tcp.seq = random;
	f->ip.check = 0;
	f->ip.check = checksum(sum(&f->ip, sizeof(f->ip)));
	f->tcp.check = 0;
	f->tcp.check = checksum(sum(&f->ip.saddr, 8) + IPPROTO_TCP + sizeof(f->tcp) + sum(&f->tcp, sizeof(f->tcp)));
}

static int batch_send(int out)
{
	struct mmsghdr messages[BATCH] = {};
	struct iovec pieces[BATCH];

	for (int i = 0; i < BATCH; i++) {
		frame_vary(&frames[i]);
		pieces[i] = (struct iovec){ &frames[i], sizeof(frames[i]) };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &pieces[i], .msg_iovlen = 1 };
	}
	return sendmmsg(out, messages, BATCH, 0);
}

static int packets_to(const char *device)
{
	int out = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(device) };

	if (out < 0 || !to.sll_ifindex || bind(out, (struct sockaddr *)&to, sizeof(to)))
		err(1, "%s", device);
	return out;
}

int main(int argc, char **argv)
{
	uint64_t start, end, due, sent = 0;
	uint8_t mac[6];
	int out, n;

	if (argc != 7 ||
	    sscanf(argv[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
		errx(2, "syns DEVICE MAC ADDRESS PORT RATE SECONDS");
	out = packets_to(argv[1]);
	for (int i = 0; i < BATCH; i++)
		frame_begin(&frames[i], mac, argv[3], argv[4]);
	start = now_ns();
	end = start + atof(argv[6]) * NS_PER_S;
	for (uint64_t now = start; now < end; now = now_ns()) {
		due = (now - start) * atof(argv[5]) / NS_PER_S;
		if (sent + BATCH > due) {
			usleep(200);
			continue;
		}
		n = batch_send(out);
		sent += n > 0 ? n : 0;
	}
	printf("{\"sent\": %lu}\n", sent);
	return 0;
}
