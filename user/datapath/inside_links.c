/* SPDX-License-Identifier: GPL-2.0 */
/* Links of the programs inside servers, each pinned as inside-GENERATION-N. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "datapath/inside_pins.h"
#include "datapath/inside_private.h"
#include "datapath/private.h"
#include "inside.skel.h"
#include "sys/libbpf_log.h"
#include "sys/pins.h"
#include "sys/privilege.h"

bool inside_writes_registers(enum weir_inside_point point)
{
	return point == WEIR_INSIDE_HTTP_ANSWER || point == WEIR_INSIDE_HANDLE || point == WEIR_INSIDE_AUTHORIZE ||
	       point == WEIR_INSIDE_EXECUTE || point == WEIR_INSIDE_GROWS;
}

bool inside_is_by_memory(enum weir_inside_point point)
{
	return point == WEIR_INSIDE_HANDLE_WRITE || point == WEIR_INSIDE_HANDED || point == WEIR_INSIDE_AUTHORIZED ||
	       point == WEIR_INSIDE_EXECUTED;
}

struct bpf_program *inside_program_of(struct inside_bpf *skeleton, enum weir_inside_point point)
{
	struct bpf_program *const programs[WEIR_INSIDE_POINTS] = {
		[WEIR_INSIDE_CONTEXT] = skeleton->progs.weir_inside_context,
		[WEIR_INSIDE_REQUEST] = skeleton->progs.weir_inside_request,
		[WEIR_INSIDE_ATTRIBUTES] = skeleton->progs.weir_inside_attributes,
		[WEIR_INSIDE_HTTP] = skeleton->progs.weir_inside_http,
		[WEIR_INSIDE_HTTP_ANSWER] = skeleton->progs.weir_inside_http_answer,
		[WEIR_INSIDE_FILTER] = skeleton->progs.weir_inside_filter,
		[WEIR_INSIDE_HANDLE] = skeleton->progs.weir_inside_handle,
		[WEIR_INSIDE_AUTHORIZE] = skeleton->progs.weir_inside_authorize,
		[WEIR_INSIDE_HANDLED] = skeleton->progs.weir_inside_handled,
		[WEIR_INSIDE_EXECUTE] = skeleton->progs.weir_inside_execute,
		[WEIR_INSIDE_HANDLE_WRITE] = skeleton->progs.weir_inside_handle_write,
		[WEIR_INSIDE_HANDED] = skeleton->progs.weir_inside_handed,
		[WEIR_INSIDE_AUTHORIZED] = skeleton->progs.weir_inside_authorized,
		[WEIR_INSIDE_EXECUTED] = skeleton->progs.weir_inside_executed,
		[WEIR_INSIDE_END] = skeleton->progs.weir_inside_end,
		[WEIR_INSIDE_GOEXIT] = skeleton->progs.weir_inside_goexit,
		[WEIR_INSIDE_GROWS] = skeleton->progs.weir_inside_grows,
	};

	return programs[point];
}

__u32 inside_links_set(const struct datapath_inside *inside, const struct datapath_binary *binary)
{
	for (size_t i = 0; i < inside->n_links && binary->n_probes; i++) {
		const struct probe_link *link = &inside->links[i];

		if (link->device == binary->device && link->inode == binary->inode &&
		    link->first == binary->probes[0].point)
			return link->set;
	}
	return 0;
}

static struct probe_link *link_find(struct datapath_inside *inside, __u32 set, const struct datapath_probe *probe)
{
	for (size_t i = 0; i < inside->n_links; i++) {
		struct probe_link *link = &inside->links[i];

		if (link->set == set && link->probe.point == probe->point && link->probe.offset == probe->offset)
			return link;
	}
	return NULL;
}

/* -1 as process: in every one that has the file, which the program then tells apart. */
static struct bpf_link *attach(const struct datapath_inside *inside, const struct datapath_binary *binary,
			       const struct datapath_probe *probe, __u32 set)
{
	const struct weir_inside_cookie cookie = {
		.generation = inside->generation,
		.set = set,
		.again = probe->again,
		.nested = inside->nested,
		.grows = probe->grows,
	};
	LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = weir_inside_cookie_word(&cookie));
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_PROBE);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", binary->fd);
	return bpf_program__attach_uprobe_opts(inside_program_of(inside->skeleton, probe->point), -1, path,
					       probe->offset, &options);
}

/* Takes over the link. */
static int pin(struct datapath *dp, struct bpf_link *link, struct error *err)
{
	struct datapath_inside *inside = dp->inside;
	char path[PATH_MAX];
	int ret;

	pins_path(path, dp->dir, INSIDE_PIN "%08x-%u", inside->generation, inside->pinned++);
	ret = bpf_link__pin(link, path);
	if (!ret)
		return 0;
	bpf_link__destroy(link);
	return error_set(err, ret, "pinning %s: %s", path, strerror(-ret));
}

static int link_add(struct datapath *dp, const struct datapath_binary *binary, __u32 set,
		    const struct datapath_probe *probe, struct error *err)
{
	struct datapath_inside *inside = dp->inside;
	struct probe_link *place = &inside->links[inside->n_links];
	int ret;

	if (inside->n_links >= INSIDE_LINKS_MAX)
		return error_set(err, -ENOSPC, "there is no room for more than %d probes", INSIDE_LINKS_MAX);
	if (set > WEIR_INSIDE_SETS_MAX)
		return error_set(err, -ENOSPC, "more than %u binaries were probed since the agent began",
				 WEIR_INSIDE_SETS_MAX);
	libbpf_log_begin();
	*place = (struct probe_link){
		.device = binary->device,
		.inode = binary->inode,
		.first = binary->probes[0].point,
		.set = set,
		.probe = *probe,
		.wanted = true,
	};
	place->link = attach(inside, binary, probe, set);
	if (!place->link)
		return error_set(err, -errno, "probing the server's binary at %#llx: %s", probe->offset,
				 libbpf_log_failure());
	ret = pin(dp, place->link, err);
	if (!ret)
		inside->n_links++;
	return ret;
}

static bool is_end(enum weir_inside_point point)
{
	return point == WEIR_INSIDE_END || point == WEIR_INSIDE_GOEXIT;
}

int inside_links_add(struct datapath *dp, const struct datapath_process *process, struct error *err)
{
	const struct datapath_binary *binary = process->binary;
	__u32 set = inside_links_set(dp->inside, binary) ?: ++dp->inside->sets;
	int ret = 0;

	for (size_t i = 0; i < binary->n_probes && !ret; i++) {
		struct probe_link *link = link_find(dp->inside, set, &binary->probes[i]);

		if (is_end(binary->probes[i].point) && !process->process.layout.ends)
			continue;
		if (link)
			link->wanted = true;
		else
			ret = link_add(dp, binary, set, &binary->probes[i], err);
	}
	return ret;
}

int inside_links_begin(struct datapath *dp, struct error *err)
{
	struct datapath_inside *inside = dp->inside;
	struct bpf_program *const programs[] = { inside->skeleton->progs.weir_inside_exit,
						 inside->skeleton->progs.weir_inside_exec };
	int ret = 0;

	for (size_t i = 0; i < 2 && !ret; i++) {
		CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_PROBE);
		struct bpf_link *link = bpf_program__attach(programs[i]);

		if (!link)
			return error_set(err, -errno, "watching for processes that end: %s", strerror(errno));
		ret = pin(dp, link, err);
		inside->processes[i] = ret ? NULL : link;
	}
	return ret;
}

static void link_end(struct bpf_link *link)
{
	bpf_link__unpin(link);
	bpf_link__destroy(link);
}

void inside_links_drop_unwanted(struct datapath_inside *inside)
{
	for (size_t i = inside->n_links; i-- > 0;) {
		struct probe_link *link = &inside->links[i];

		if (link->wanted)
			continue;
		link_end(link->link);
		*link = inside->links[--inside->n_links];
	}
}

/* libbpf leaves a link's descriptors open when it is to go on without them; the agent ends soon. */
static void link_keep(struct bpf_link *link)
{
	bpf_link__disconnect(link);
	bpf_link__destroy(link);
}

static void close_all(struct datapath_inside *inside, void (*close_link)(struct bpf_link *link))
{
	for (size_t i = 0; i < inside->n_links; i++)
		close_link(inside->links[i].link);
	for (size_t i = 0; i < 2; i++)
		if (inside->processes[i])
			close_link(inside->processes[i]);
	inside->n_links = 0;
	memset(inside->processes, 0, sizeof(inside->processes));
}

void inside_links_close(struct datapath_inside *inside)
{
	close_all(inside, link_keep);
}

void inside_links_end(struct datapath_inside *inside)
{
	close_all(inside, link_end);
}
