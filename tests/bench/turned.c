/* SPDX-License-Identifier: GPL-2.0 */
#include "turned.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "tests/bench/bpf/bench.skel.h"
#include "weir.skel.h"
#include "weir/http/digest.h"

static struct bench_bpf *bench;

static void share_maps(struct bpf_object *object)
{
	struct bpf_map *map, *there;

	bpf_object__for_each_map (map, object) {
		there = bpf_object__find_map_by_name(dp->skeleton->obj, bpf_map__name(map));
		if (there && bpf_map__fd(there) >= 0 && !bpf_map__is_internal(map) &&
		    bpf_map__reuse_fd(map, bpf_map__fd(there)))
			die("a map", errno);
	}
}

/* One program may call another one of the same kind alone. */
static void be_of_kind(const struct bpf_program *other)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, bench->obj)
		if (bpf_program__type(program) == bpf_program__type(other))
			bpf_program__set_expected_attach_type(program, bpf_program__expected_attach_type(other));
}

void turned_open(void)
{
	static const __u64 seed[2] = { 1, 2 };

	bench = bench_bpf__open();
	if (!bench)
		die("the benchmark's programs", errno);
	share_maps(bench->obj);
	weir_digest_keys_make((struct weir_digest_keys *)bench->rodata_keys->digest_keys, seed);
	be_of_kind(dp->skeleton->progs.weir_ingress);
	if (bench_bpf__load(bench))
		die("the benchmark's programs", errno);
}

__u32 turned_look_ups(const char *path, struct packet *packet)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program, *ingress = NULL;
	struct bpf_map *counts;
	const __u32 zero = 0;
	__u32 look_ups;

	if (!object)
		die(path, errno);
	share_maps(object);
	bpf_object__for_each_program (program, object) {
		bool wanted = !strcmp(bpf_program__name(program), "weir_ingress");

		bpf_program__set_autoload(program, wanted);
		if (wanted)
			ingress = program;
	}
	counts = bpf_object__find_map_by_name(object, ".bss");
	if (!ingress || !counts || bpf_map__value_size(counts) != sizeof(look_ups) || bpf_object__load(object))
		die(path, EINVAL);
	run_ns(bpf_program__fd(ingress), packet, 1);
	if (bpf_map_lookup_elem(bpf_map__fd(counts), &zero, &look_ups))
		die(path, errno);
	bpf_object__close(object);
	return look_ups;
}

void turned_close(void)
{
	bench_bpf__destroy(bench);
}

int turned_program(enum turned_program which)
{
	return bpf_program__fd(which == TURNED_LOOK_UP ? bench->progs.look_up : bench->progs.nothing);
}

static void turn_to(int program, const struct turned *how)
{
	const __u32 zero = 0;
	__u32 fd = program;

	if (bpf_map_update_elem(bpf_map__fd(bench->maps.target), &zero, &fd, BPF_ANY))
		die("a program to be called", errno);
	bench->bss->turned = *how;
}

__u32 turned_ns(int program, struct packet *packet, const struct turned *how, __u32 repeat)
{
	turn_to(program, how);
	return run_ns(bpf_program__fd(bench->progs.turn), packet, repeat);
}

/* It has to come to the end of the text. */
static __u32 read_ns(const struct bpf_program *program, struct packet *packet, __u32 text)
{
	const struct weir_conn c = { .requests = 1 };
	const __u32 zero = 0;
	__u32 ns;

	if (bpf_map_update_elem(bpf_map__fd(bench->maps.read_of), &zero, &c, BPF_ANY))
		die("whose heads are read", errno);
	bench->bss->turned.payload = packet->length - text;
	bench->bss->read_to = 0;
	ns = run_ns(bpf_program__fd(program), packet, 1);
	if (bench->bss->read_to != text)
		die("heads were not read to their end", EINVAL);
	return ns;
}

__u32 turned_read_ns(bool from_server, struct packet *packet, __u32 text)
{
	return read_ns(from_server ? bench->progs.read_responses : bench->progs.read_requests, packet, text);
}

__u32 turned_unread_ns(bool from_server, struct packet *packet, __u32 text)
{
	return read_ns(from_server ? bench->progs.read_no_response : bench->progs.read_no_request, packet, text);
}
