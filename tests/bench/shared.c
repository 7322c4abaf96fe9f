/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one packet changes in memory that other CPUs may use: all maps but those that each CPU has for itself are read before it and
 * after it, in a network namespace of their own.
 *
 *   shared
 *
 * One JSON object a line. Words are of 8 bytes; of the connection's own entries, and of all others.
 *
 *   {"shared": PACKET, "own": WORDS, "others": WORDS, "where": MAPS}
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rate.h"
#include "runs.h"
#include "weir.skel.h"

#define WORD 8
#define BODY (1 << 20)
#define KEY_MAX 64
#define WHERE_MAX 200

/* All values of a map, one behind the other. */
struct image {
	const char *name;
	__u8 *bytes;
	size_t length, room;
};

#define MAPS_MAX 256

struct images {
	struct image of[MAPS_MAX];
	int n;
};

static int ingress, egress;

static void image_add(struct image *image, int fd, const void *key, size_t size)
{
	__u8 *to;

	if (!image->bytes || image->length + size > image->room) {
		image->room = 2 * image->room + size;
		image->bytes = realloc(image->bytes, image->room);
		if (!image->bytes)
			die("memory", ENOMEM);
	}
	to = image->bytes + image->length;
	memset(to, 0, size); /* the kernel leaves out a lock */
	if (!bpf_map_lookup_elem(fd, key, to))
		image->length += size;
}

static void image_take(struct images *images, const char *name, int fd, size_t size)
{
	struct image *image = &images->of[images->n++];
	__u8 keys[2][KEY_MAX];
	void *key = NULL;

	if (images->n == MAPS_MAX)
		die(name, E2BIG);
	*image = (struct image){ .name = name };
	for (int i = 0; !bpf_map_get_next_key(fd, key, keys[i]); i = !i) {
		key = keys[i];
		image_add(image, fd, key, size);
	}
}

/* Maps that are in another one: its values are their ids. */
static void images_take_inner(struct images *images, const char *name, int fd)
{
	struct bpf_map_info info;
	__u32 keys[2], *key = NULL, id, length = sizeof(info);
	int inner;

	for (int i = 0; !bpf_map_get_next_key(fd, key, &keys[i]); i = !i) {
		key = &keys[i];
		if (bpf_map_lookup_elem(fd, key, &id))
			continue;
		inner = bpf_map_get_fd_by_id(id);
		if (inner < 0 || bpf_obj_get_info_by_fd(inner, memset(&info, 0, sizeof(info)), &length))
			die(name, errno);
		image_take(images, name, inner, info.value_size);
		close(inner);
	}
}

static struct images images_take(void)
{
	struct images images = {};
	struct bpf_map *map;

	bpf_object__for_each_map (map, dp->skeleton->obj) {
		enum bpf_map_type type = bpf_map__type(map);

		if (bpf_map__fd(map) < 0)
			continue;
		if (type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_ARRAY)
			image_take(&images, bpf_map__name(map), bpf_map__fd(map), bpf_map__value_size(map));
		else if (type == BPF_MAP_TYPE_ARRAY_OF_MAPS || type == BPF_MAP_TYPE_HASH_OF_MAPS)
			images_take_inner(&images, bpf_map__name(map), bpf_map__fd(map));
	}
	return images;
}

static void images_free(struct images *images)
{
	for (int i = 0; i < images->n; i++)
		free(images->of[i].bytes);
}

static int words_changed(const struct image *before, const struct image *after)
{
	int n = 0;

	if (before->length != after->length)
		die(before->name, EEXIST); /* something is new: that is not what a packet costs each time */
	for (size_t at = 0; at < before->length; at += WORD) {
		size_t left = before->length - at;

		n += memcmp(before->bytes + at, after->bytes + at, left < WORD ? left : WORD) != 0;
	}
	return n;
}

static bool is_own(const char *name)
{
	return !strcmp(name, "conns") || !strcmp(name, "busy");
}

struct kind {
	const char *name;
	int program;
	struct spec spec;
	__u32 outstanding;
	__u32 body;
};

static void connect_for(const struct kind *kind)
{
	struct weir_conn c = connection(kind->outstanding);

	c.splice.has_ts = c.splice.client_has_ts = 1;
	c.splice.server_end += kind->spec.from_server ? 0 : kind->body;
	c.request_next += kind->body;
	c.response_next += kind->body;
	connection_put(&c);
}

static void show(const struct kind *kind)
{
	struct packet p = packet_of(kind->spec);
	struct images before, after;
	char where[WHERE_MAX] = "";
	int own = 0, others = 0, n;

	connect_for(kind);
	run_ns(kind->program, &p, 1); /* what it makes anew is there */
	connect_for(kind);
	before = images_take();
	run_ns(kind->program, &p, 1);
	after = images_take();
	for (int i = 0; i < before.n; i++) {
		n = words_changed(&before.of[i], &after.of[i]);
		*(is_own(before.of[i].name) ? &own : &others) += n;
		if (n && !is_own(before.of[i].name) && strlen(where) + strlen(before.of[i].name) + 2 < sizeof(where))
			strcat(strcat(where, " "), before.of[i].name);
	}
	images_free(&before);
	images_free(&after);
	printf("{\"shared\": \"%s\", \"own\": %d, \"others\": %d, \"where\": \"%s\"}\n", kind->name, own, others,
	       where);
}

static void limit_to(enum weir_builtin_limit builtin, const char *qps, __u64 burst)
{
	__u64 per_ns;

	if (weir_qps_parse(qps, &per_ns))
		die("qps", EINVAL);
	done(limit_set(dp, 0, builtin, per_ns, burst, 1000));
}

static void set_up(void)
{
	const struct weir_server server = server_plain();

	server_open(&server, 64);
	ingress = bpf_program__fd(dp->skeleton->progs.weir_ingress);
	egress = bpf_program__fd(dp->skeleton->progs.weir_egress);
}

int main(void)
{
	static const char body[1024], get[] = "GET / HTTP/1.1\r\nHost: bench\r\nX-Remote-User: u\r\n\r\n";
	const struct spec asks = { .text = get, .n_text = sizeof(get) - 1 };
	const struct spec answers = { .text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .from_server = true };
	const struct spec part = { .text = body, .n_text = sizeof(body) },
			  sent = { .text = body, .n_text = sizeof(body), .from_server = true };

	set_up();
	show(&(struct kind){ .name = "to another port", .program = ingress, .spec = { .port = SERVER_PORT + 1 } });
	show(&(struct kind){
		.name = "pure ACK from a client", .program = ingress, .spec = { .ack = sizeof(body) }, .body = BODY });
	show(&(struct kind){ .name = "pure ACK from its server",
			     .program = egress,
			     .spec = { .ack = sizeof(body), .from_server = true },
			     .body = BODY });
	show(&(struct kind){ .name = "1 KiB of a body from a client",
			     .program = ingress,
			     .spec = part,
			     .outstanding = 1,
			     .body = BODY });
	show(&(struct kind){ .name = "1 KiB of a body from its server",
			     .program = egress,
			     .spec = sent,
			     .outstanding = 1,
			     .body = BODY });
	show(&(struct kind){ .name = "a request", .program = ingress, .spec = asks });
	show(&(struct kind){ .name = "its answer", .program = egress, .spec = answers, .outstanding = 1 });
	limit_to(WEIR_BUILTIN_USER, "1000000", 1000000);
	show(&(struct kind){ .name = "a request, a limit for each user", .program = ingress, .spec = asks });
	limit_to(WEIR_BUILTIN_TOTAL, "1000000", 1000000);
	show(&(struct kind){ .name = "a request, a limit for the server, too", .program = ingress, .spec = asks });
	limit_to(WEIR_BUILTIN_USER, "0", 0);
	show(&(struct kind){ .name = "a request that is refused", .program = ingress, .spec = asks });
	done(datapath_remove(dp, &error));
	datapath_close(dp);
	return 0;
}
