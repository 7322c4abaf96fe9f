/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of user/datapath share. */
#ifndef WEIR_USER_DATAPATH_PRIVATE_H
#define WEIR_USER_DATAPATH_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <libmnl/libmnl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/cleanup.h"
#include "datapath/datapath.h"
#include "sys/attach.h"
#include "sys/cgroup_links.h"

struct weir_bpf;
struct weir_explain;
struct weir_replayed;
struct xdp_bpf;

/* The maps that both sides know (weir/abi/abi.h), which are pinned. `settings` is made first and removed last. */
#define DATAPATH_MAPS(X)     \
	DATAPATH_OWN_MAPS(X) \
	X(limit_changes)     \
	X(limit_counts)      \
	X(in_flight)         \
	X(admitted)          \
	X(boxes)             \
	X(widths)            \
	X(newcomers)         \
	X(names)             \
	X(hold_turns)        \
	X(conns)             \
	X(busy)              \
	X(lingering)         \
	X(resting)           \
	X(body_servers)      \
	X(outgoing)          \
	X(finished)          \
	X(table)             \
	X(holders)           \
	X(counters)          \
	X(heavy)             \
	X(recent)            \
	X(trace)

/* Descriptors; the skeleton owns them. */
struct datapath_maps {
#define X(name) int name;
	DATAPATH_MAPS(X)
#undef X
};

/* The programs that packets meet, which are pinned as prog-NAME. What ingress answers, egress must translate: it is first. */
#define DATAPATH_PROGRAMS(X) X(egress) X(ingress) X(hold) X(sockops)

enum datapath_program {
#define X(name) DATAPATH_PROGRAM_##name,
	DATAPATH_PROGRAMS(X)
#undef X
	DATAPATH_PROGRAMS_COUNT
};

/* Programs at the sockets: weir_hold and weir_sockops. */
#define DATAPATH_ON_CGROUPS 2

struct datapath {
	char *dir;  /* PIN_DIR/net-COOKIE */
	int dir_fd; /* holds the lock on it */
	int netns_fd;
	__u64 netns_cookie;
	struct weir_bpf *skeleton;
	struct datapath_maps maps;
	int programs[DATAPATH_PROGRAMS_COUNT]; /* descriptors, its own; -1: not loaded */
	struct datapath_written written;
	struct datapath_inside *inside; /* programs inside servers (inside.c); NULL: none */
	struct weir_bpf *explain;	/* of the one program weir_explain, or weir_replay; NULL: not asked for yet */
	struct weir_replayed *replayed; /* slots of weir_replay; NULL: it is not loaded */
	struct xdp_bpf *xdp;		/* NULL: no device has the program */
	struct error no_xdp;		/* why the kernel refuses it; "": it has not */
	int override_end_fd, forget_fd, forget_admitted_fd, collect_fd; /* programs */
	atomic_bool unswept;						/* connections are not swept any more */
	struct cgroup_program on_cgroups[DATAPATH_ON_CGROUPS];
	struct error no_hold; /* why those have none; "": they have one each */
	__u64 seed[2];
	int cpus; /* possible ones: values of a per-CPU map */
	struct attach attach;
	struct ring_buffer *ring;		/* NULL until opened */
	struct datapath_trace_reading *reading; /* whom it is read for, just now */
	struct mnl_socket *monitor;		/* NULL until opened */
	pthread_mutex_t
		lock; /* of what another thread may use meanwhile: values of `servers` while they change, and: */
	struct datapath_link *links; /* as the latest sync left them */
	int n_links;
	__u32 pace_ifindex; /* as `settings` should have it */
};

/* Says why the kernel did not load a program, of which libbpf_log has heard. Returns code. */
int datapath_load_failed(int code, struct error *err);
/* Is it a program at the sockets that was refused? All else can go on without those. */
bool datapath_hold_refused(void);
/* Of the next ones that are loaded: with those or without. */
void datapath_hold_wanted(struct weir_bpf *skeleton, bool wanted);

/* Holds the directory, which is there, for this agent alone (datapath.c). */
int datapath_directory_lock(struct datapath *dp, struct error *err);
/* Makes it anew if others have removed it (shared.c). What has no pin would be taken for what is not there. */
int datapath_directory_sync(struct datapath *dp, struct error *err);

/*
 * Opening, step by step (maps.c, datapath.c): the programs are loaded on the maps that are pinned already, and on
 * new ones; these are pinned, and filled; the programs are pinned, and take the place of those that run.
 */
int datapath_maps_load(struct datapath *dp, __u32 conns_max, struct error *err);
int datapath_maps_keep(struct datapath *dp, struct error *err);
/* A descriptor of the map that is pinned in dir by this name, which the caller closes, and what it is. -ENOENT: none is pinned; err is untouched. */
int datapath_map_pinned(const char *dir, const char *name, struct bpf_map_info *info, struct error *err);
/* As its own name says. One that is pinned already stays as it is. */
int datapath_map_pin(const struct datapath *dp, const struct bpf_map *map, struct error *err);
/* Another object, not loaded yet, uses the datapath's maps: those that have the same name. */
int datapath_maps_share(const struct datapath *dp, struct bpf_object *with);
/* New maps that are not pinned, and no programs. */
int datapath_maps_alone(struct datapath *dp, struct error *err);
int datapath_programs_keep(struct datapath *dp, struct error *err);

/* The BPF object, marked with the number of its build, not loaded yet (programs.c). */
int datapath_object_open(struct weir_bpf **out, struct error *err);
/* Room for so many connections, before the maps are made. */
void datapath_conns_max_set(struct weir_bpf *skeleton, __u32 conns_max);
/*
 * Are all programs pinned, of this build, and on the maps that the skeleton has taken over? Then they are the datapath's, and
 * the skeleton's need not be loaded.
 */
bool datapath_programs_find(struct datapath *dp);
void datapath_programs_close(struct datapath *dp);
const char *datapath_program_pin(enum datapath_program which);

/* What `settings` says is the datapath's; where it says nothing yet, it is made (settings.c). */
int datapath_settings_fill(struct datapath *dp, struct error *err);
/* `settings` says what the datapath's does, `answers` what it should. */
int datapath_settings_sync(struct datapath *dp, struct error *err);
int datapath_answers_fill(struct datapath *dp, struct error *err);

/* Makes the ring `trace` readable (trace.c). */
int datapath_trace_open(struct datapath *dp, struct error *err);

__u64 datapath_now_ns(void);

/* Loads one program that is asked, once (explain.c). */
int datapath_explain_load(struct datapath *dp, const char *name, struct error *err);
int datapath_question_fill(struct weir_explain *out, __u32 server, const struct datapath_question *question,
			   struct error *err);
/* Is the map of weir_replay made with the object? (replay.c) */
void datapath_replay_wanted(struct bpf_object *object, bool wanted);
void datapath_replay_close(struct datapath *dp);

/* Runs a program of bpf/control.h on its input, of DATAPATH_INPUT_MAX bytes at most. */
#define DATAPATH_INPUT_MAX 64
int datapath_run(int prog_fd, const void *input, size_t size);

/* The networks of trusted proxies: these and no others. */
int datapath_proxies_set(struct datapath *dp, __u32 slot, const struct datapath_cidr *proxies, size_t n,
			 struct error *err);

int datapath_server_read(struct datapath *dp, __u32 slot, struct weir_server *server, struct error *err);
int datapath_server_write(struct datapath *dp, __u32 slot, const struct weir_server *server, struct error *err);

/*
 * Returns when programs that were running when this was called, and may have seen what was there before, have ended, but for those that may
 * sleep. False: one may not have, because the kernel does not say when (nohz_full).
 */
bool datapath_wait_for_programs(void);

/* A descriptor of the map with this number, which the caller closes, or a negative errno (buckets.c). */
int datapath_map_by_id(__u32 id);

/* Whose rates have which generations: one subject's own and those of all others are never taken for each other. */
enum datapath_generations {
	DATAPATH_OF_LIMIT = 0,
	DATAPATH_OF_OVERRIDE = (WEIR_GENERATIONS + 1) / 2, /* and up */
};

/* The amount in force, and then another one: what was before is remembered. What is in force already changes nothing. */
struct weir_amount datapath_amount_pushed(const struct weir_amount *before, const struct datapath_amount *wanted,
					  enum datapath_generations whose);

/* By limit (weir_limit_index()). */
bool datapath_override_exists(struct datapath *dp, __u32 limit, __u64 subject);
int datapath_overrides_drop(struct datapath *dp, __u32 limit);
/* `limits` has been written: what programs know of it is to be looked up again. */
int datapath_limits_changed(struct datapath *dp, struct error *err);

/* Of a limit (weir_limit_index()): a descriptor of the map of its buckets, which the caller closes, or -ENOENT (buckets.c). */
int datapath_buckets_open(struct datapath *dp, __u32 limit);
/* Makes the map, for so many keys, if there is none. 0: WEIR_DEFAULT_KEYS. */
int datapath_buckets_ensure(struct datapath *dp, __u32 limit, __u32 keys, struct error *err);
int datapath_buckets_remove(struct datapath *dp, __u32 limit);
/* Drops the buckets of subjects that nothing limits any more. */
int datapath_buckets_tidy(struct datapath *dp, __u32 limit);
/* The bucket that all penalties of the limit share. */
int datapath_penalty_bucket_make(struct datapath *dp, __u32 limit);

/* The answers that name a limit (weir_limit_index()): name "" drops them (refusals.c). */
int datapath_refusal_set(struct datapath *dp, __u32 limit, const char *name, struct error *err);

/* Removes all limits of a server, with their overrides, buckets and counts. */
int datapath_limits_clear(struct datapath *dp, __u32 server, struct error *err);

/* Forgets the seats of a limit (weir_limit_index()) that are taken. */
int datapath_in_flight_clear(struct datapath *dp, __u32 limit);

/* Forgets the connections of a slot, whatever their state. */
int datapath_conns_clear(struct datapath *dp, __u32 slot, struct error *err);

/* Forgets who made its load. */
int datapath_heavy_clear(struct datapath *dp, __u32 slot, struct error *err);

int datapath_counters_clear(struct datapath *dp, __u32 slot, struct error *err);

/* Lets go of the programs inside servers, or takes them off (inside.c). */
void datapath_inside_close(struct datapath *dp);
int datapath_inside_remove(struct datapath *dp, struct error *err);
/* From now on, and for WEIR_LOOK_NS, all requests inside servers are written down for the call below. */
int datapath_look(struct datapath *dp, struct error *err);
/* Adds the requests in flight that are seen inside servers (inside_open.c). */
int datapath_inside_open(struct datapath *dp, enum weir_heavy_by by, struct open_requests *out);

/* "limits: Invalid argument": what failed on which map. Returns code. */
int datapath_map_failed(struct error *err, int code, const char *map);

#endif
