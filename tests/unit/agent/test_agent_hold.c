/* SPDX-License-Identifier: GPL-2.0 */
/* On which cgroup servers are held: the one that was asked for if it sees all of their connections, and else the root (agent/net_hold.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "../../array_size.h"
#include "agent/net.h"
#include "agent_fixture.h"
#include "base/cleanup.h"
#include "fake_datapath.h"
#include "sys/cgroup.h"
#include "sys/socket_diag.h"

/* --- the machine's cgroups, in place of sys/cgroup.c */

enum {
	UNKNOWN,
	ROOT, /* by the kernel's own number */
	A,
	A_B,
	AB,
	NEVER, /* none has it */
};
static const char *const paths[] = { [ROOT] = "/cg", [A] = "/cg/a", [A_B] = "/cg/a/b", [AB] = "/cg/ab" };
static const char *root; /* what is mounted of them; NULL: nothing */

__u64 cgroup_id(const char *path)
{
	for (__u64 id = ROOT; id < ARRAY_SIZE(paths); id++)
		if (!strcmp(paths[id], path))
			return id;
	return UNKNOWN;
}

int cgroup_check(const char *path, struct error *err)
{
	return cgroup_id(path) ? 0 : error_set(err, -ENOENT, "cgroup %s: no such directory", path);
}

char *cgroup_root(void)
{
	return root ? strdup(root) : NULL;
}

bool cgroup_is_whole(const char *path)
{
	return cgroup_id(path) == ROOT;
}

static bool is_below(const char *path, const char *other)
{
	const size_t length = strlen(other);

	return !strncmp(path, other, length) && path[length] == '/';
}

/* What is not below it is out of reach. */
char *cgroup_find(const char *from, __u64 id)
{
	const char *path = id > UNKNOWN && id < ARRAY_SIZE(paths) ? paths[id] : NULL;
	bool reached = path && (!strcmp(path, from) || is_below(path, from) || root == paths[ROOT]);

	return reached ? strdup(path) : NULL;
}

bool cgroup_has(const char *path, __u64 id)
{
	CLEANUP_FREE char *found = cgroup_find(path, id);

	return cgroup_is_whole(path) || (found && (!strcmp(found, path) || is_below(found, path)));
}

/* --- a server on port 1 of 10.0.0.1, where sockets listen */

#define PORT 1

static struct socket_listener listening(__u64 cgroup, __u8 last, __u16 port)
{
	struct socket_listener listener = { .port = port, .cgroup = cgroup };

	if (last)
		memcpy(listener.address, (__u8[16]){ [10] = 0xff, 0xff, 10, 0, 0, last }, 16);
	return listener;
}

static void listeners_set(const struct socket_listener *listeners, size_t n)
{
	static struct socket_listener kept[WEIR_MAX_SERVERS];

	assert_true(n <= ARRAY_SIZE(kept));
	if (n)
		memcpy(kept, listeners, n * sizeof(*listeners));
	fake_listeners = kept;
	n_fake_listeners = n;
}

/* One socket, of this server. */
static void listen_in(__u64 cgroup)
{
	const struct socket_listener listener = listening(cgroup, 1, PORT);

	listeners_set(&listener, 1);
}

static int machine(void **state)
{
	root = paths[ROOT];
	listeners_set(NULL, 0);
	return set_up(state);
}

static int no_machine(void **state)
{
	fake_listeners = NULL;
	return tear_down(state);
}

/* cgroup: the one that is asked for, or NULL. It may not be there any more. */
static void attach_at(struct fixture *f, const char *name, int port, const char *cgroup)
{
	char arguments[160];

	snprintf(arguments, sizeof(arguments), "{\"server\":{\"name\":\"%s\",\"listen\":[\"10.0.0.1:%d\"]%s%s%s}}",
		 name, port, cgroup ? ",\"cgroup\":\"" : "", cgroup ?: "", cgroup ? "\"" : "");
	succeed(f, "attach", arguments);
}

static void look_again(struct fixture *f)
{
	agent_work_begin(&f->agent);
	net_hold(f->agent.nets);
	agent_work_end(&f->agent);
}

static void asked_for(struct fixture *f, const char *cgroup)
{
	free(f->agent.state.servers[0]->cgroup);
	f->agent.state.servers[0]->cgroup = cgroup ? strdup(cgroup) : NULL;
	look_again(f);
}

static const char *elsewhere(const struct fixture *f)
{
	return f->agent.servers[0].held_elsewhere;
}

static const char *failure(const struct fixture *f)
{
	return f->agent.nets->hold_err.text;
}

/* It is held there alone, and as it was asked for. */
static void assert_held_as_asked(const struct fixture *f, const char *cgroup)
{
	assert_int_equal(fake_nets[1].n_cgroups, 1);
	assert_string_equal(fake_nets[1].cgroups[0], cgroup);
	assert_null(elsewhere(f));
	assert_string_equal(failure(f), "");
	assert_int_equal(net_is_held_in_part(f->agent.nets), strcmp(cgroup, paths[ROOT]) != 0);
}

/* It is held at the root instead, and this is why. */
static void assert_held_at_the_root(const struct fixture *f, const char *why)
{
	assert_int_equal(fake_nets[1].n_cgroups, 1);
	assert_string_equal(fake_nets[1].cgroups[0], paths[ROOT]);
	assert_non_null(elsewhere(f));
	if (!strstr(elsewhere(f), why) || !strstr(elsewhere(f), "at /cg instead"))
		fail_msg("\"%s\" does not say \"%s\"", elsewhere(f), why);
	assert_string_equal(failure(f), "");
	assert_false(net_is_held_in_part(f->agent.nets));
}

static void none_is_asked_for(void **state)
{
	static const __u64 made_in[] = { UNKNOWN, ROOT, A, AB, NEVER };
	struct fixture *f = *state;

	attach_at(f, "api", PORT, NULL);
	assert_held_as_asked(f, paths[ROOT]);
	for (size_t i = 0; i < ARRAY_SIZE(made_in); i++) {
		listen_in(made_in[i]);
		look_again(f);
		assert_held_as_asked(f, paths[ROOT]);
	}
}

static void it_sees_what_was_made_in_it(void **state)
{
	struct fixture *f = *state;

	attach_at(f, "api", PORT, paths[A]);
	assert_held_as_asked(f, paths[A]); /* nobody listens yet */
	listen_in(A);
	look_again(f);
	assert_held_as_asked(f, paths[A]);
	listen_in(A_B); /* below it */
	look_again(f);
	assert_held_as_asked(f, paths[A]);
	asked_for(f, paths[A_B]);
	assert_held_as_asked(f, paths[A_B]);
}

static void what_was_made_outside_takes_the_root(void **state)
{
	struct fixture *f = *state;

	attach_at(f, "api", PORT, paths[A]);
	listen_in(AB); /* its name only begins in the same way */
	look_again(f);
	assert_held_at_the_root(f, "port 1 was made in cgroup /cg/ab, outside /cg/a");
	listen_in(ROOT);
	look_again(f);
	assert_held_at_the_root(f, "port 1 was made in cgroup /cg, outside /cg/a");
	listen_in(UNKNOWN);
	look_again(f);
	assert_held_at_the_root(f, "(gone, or out of reach), outside /cg/a");
	listen_in(NEVER);
	look_again(f);
	assert_held_at_the_root(f, "(gone, or out of reach), outside /cg/a");
	listen_in(A);
	asked_for(f, paths[A_B]); /* above it */
	assert_held_at_the_root(f, "port 1 was made in cgroup /cg/a, outside /cg/a/b");
}

/* Each time it is looked at anew: a service that starts again may have its sockets from another. */
static void it_goes_back(void **state)
{
	struct fixture *f = *state;

	attach_at(f, "api", PORT, paths[A]);
	for (int i = 0; i < 3; i++) {
		listen_in(A);
		look_again(f);
		assert_held_as_asked(f, paths[A]);
		listen_in(AB);
		look_again(f);
		assert_held_at_the_root(f, "/cg/ab");
	}
}

/* One of many is enough, and in any place. */
static void all_sockets_count(void **state)
{
	static const size_t sizes[] = { 1, 2, WEIR_MAX_SERVERS };
	struct socket_listener listeners[WEIR_MAX_SERVERS];
	struct fixture *f = *state;

	attach_at(f, "api", PORT, paths[A]);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (size_t outside = 0; outside < sizes[i]; outside++) {
			for (size_t each = 0; each < sizes[i]; each++)
				listeners[each] = listening(each == outside ? AB : A, 1, PORT);
			listeners_set(listeners, sizes[i]);
			look_again(f);
			assert_held_at_the_root(f, "/cg/ab");
			listeners[outside].cgroup = A_B;
			listeners_set(listeners, sizes[i]);
			look_again(f);
			assert_held_as_asked(f, paths[A]);
		}
	}
}

static void sockets_of_others_do_not_count(void **state)
{
	const struct socket_listener others[] = { listening(AB, 1, PORT + 1), listening(AB, 1, 65535),
						  listening(AB, 2, PORT), listening(AB, 0, PORT + 1),
						  listening(A, 0, PORT) };
	const struct socket_listener everywhere = listening(AB, 0, PORT);
	struct fixture *f = *state;

	attach_at(f, "api", PORT, paths[A]);
	listeners_set(others, ARRAY_SIZE(others));
	look_again(f);
	assert_held_as_asked(f, paths[A]);
	listeners_set(&everywhere, 1); /* at the server's address, too */
	look_again(f);
	assert_held_at_the_root(f, "/cg/ab");
}

static void what_is_not_known_takes_the_root(void **state)
{
	struct fixture *f = *state;

	attach_at(f, "api", PORT, paths[A]);
	asked_for(f, "/cg/gone");
	assert_held_at_the_root(f, "cgroup /cg/gone: no such directory");
	asked_for(f, paths[A]);
	assert_held_as_asked(f, paths[A]);
	fake_listeners = NULL;
	fake_fail("socket_diag_listeners", 1);
	look_again(f);
	assert_held_at_the_root(f, "the cgroups of its listening sockets are not known");
	fake_fail("socket_diag_listeners", 1);
	asked_for(f, paths[ROOT]); /* sees all, whoever listens */
	assert_held_as_asked(f, paths[ROOT]);
	fake_fail(NULL, 0);
}

/* Where nothing sees all of it, it is said, and what is seen is held all the same. */
static void nothing_sees_all(void **state)
{
	struct fixture *f = *state;

	attach_at(f, "api", PORT, paths[A]);
	listen_in(AB);
	root = NULL;
	look_again(f);
	assert_non_null(strstr(failure(f), "outside /cg/a"));
	assert_null(elsewhere(f));
	assert_int_equal(fake_nets[1].n_cgroups, 1);
	assert_string_equal(fake_nets[1].cgroups[0], paths[A]);
	assert_true(net_is_held_in_part(f->agent.nets));
	/* As in a container that has its own part of the hierarchy. */
	root = paths[A];
	asked_for(f, paths[A_B]);
	assert_non_null(strstr(failure(f), "(gone, or out of reach), outside /cg/a/b"));
	assert_null(elsewhere(f));
	assert_string_equal(fake_nets[1].cgroups[0], paths[A]);
	assert_true(net_is_held_in_part(f->agent.nets));
	listen_in(A);
	look_again(f);
	assert_string_equal(failure(f), "");
	assert_non_null(strstr(elsewhere(f), "at /cg/a instead"));
	assert_true(net_is_held_in_part(f->agent.nets));
}

static void there_is_no_hierarchy(void **state)
{
	struct fixture *f = *state;

	root = NULL;
	attach_at(f, "api", PORT, NULL);
	listen_in(A);
	look_again(f);
	assert_non_null(strstr(failure(f), "no cgroup2 hierarchy is mounted"));
	assert_int_equal(fake_nets[1].n_cgroups, 0);
	assert_false(net_is_held_in_part(f->agent.nets));
	root = paths[ROOT];
	look_again(f);
	assert_held_as_asked(f, paths[ROOT]);
}

/* Each server of a namespace has a place of its own. */
static void servers_have_their_own_places(void **state)
{
	const struct socket_listener listeners[] = { listening(A, 1, PORT), listening(AB, 1, PORT + 1) };
	struct fixture *f = *state;

	attach_at(f, "api", PORT, paths[A]);
	attach_at(f, "web", PORT + 1, paths[A]);
	listeners_set(listeners, 2);
	look_again(f);
	assert_int_equal(fake_nets[1].n_cgroups, 2);
	assert_string_equal(fake_nets[1].cgroups[0], paths[A]);
	assert_string_equal(fake_nets[1].cgroups[1], paths[ROOT]);
	assert_null(f->agent.servers[0].held_elsewhere);
	assert_non_null(f->agent.servers[1].held_elsewhere);
	assert_true(net_is_held_in_part(f->agent.nets));
	succeed(f, "detach", "{\"name\":\"api\",\"force\":true}");
	look_again(f);
	assert_int_equal(fake_nets[1].n_cgroups, 1);
	assert_string_equal(fake_nets[1].cgroups[0], paths[ROOT]);
	assert_false(net_is_held_in_part(f->agent.nets));
}

#define on_a_machine(test) cmocka_unit_test_setup_teardown(test, machine, no_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_a_machine(none_is_asked_for),
		on_a_machine(it_sees_what_was_made_in_it),
		on_a_machine(what_was_made_outside_takes_the_root),
		on_a_machine(it_goes_back),
		on_a_machine(all_sockets_count),
		on_a_machine(sockets_of_others_do_not_count),
		on_a_machine(what_is_not_known_takes_the_root),
		on_a_machine(nothing_sees_all),
		on_a_machine(there_is_no_hierarchy),
		on_a_machine(servers_have_their_own_places),
	};

	return cmocka_run_group_tests_name("agent hold", tests, NULL, NULL);
}
