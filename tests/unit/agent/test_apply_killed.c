/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An agent that is killed during an apply, before each of the steps that it takes in the kernel: the next one finds a file that says all
 * of what was wanted before, or all of what was wanted then, and makes the kernel that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_fixture.h"
#include "base/cleanup.h"
#include "fake_datapath.h"
#include "policy/policy.h"

#define ATTACHING                                                                                                 \
	"{\"objects\":[{\"file\":\"/etc/p.yaml\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\"," \
	"\"metadata\":{\"name\":\"api\"},\"spec\":{\"listen\":[\"*:7\"],\"limits\":[" USER("") "]}}}]}"
#define THROTTLE(limits)                                                                                          \
	"{\"objects\":[{\"file\":\"/etc/p.yaml\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\"," \
	"\"metadata\":{\"name\":\"api\"},\"spec\":{\"limits\":[" limits "]}}}]}"
#define OVERRIDE(subject, burst) "{\"subject\":\"" subject "\",\"qps\":1,\"burst\":" burst "}"
#define USER(overrides) "{\"name\":\"user\",\"qps\":5,\"burst\":9,\"overrides\":[" overrides "]}"
#define BEFORE                                                                    \
	THROTTLE(USER(OVERRIDE("ann", "1") "," OVERRIDE("bob", "1") "," OVERRIDE( \
		"cat", "1")) ",{\"name\":\"total\",\"qps\":1,\"burst\":7}")
#define AFTER                                                                                                \
	THROTTLE(USER(OVERRIDE("dan", "4") "," OVERRIDE("ann", "1") "," OVERRIDE(                            \
		"bob", "2")) ",{\"name\":\"namespace\",\"qps\":1,\"burst\":3,\"overrides\":[" OVERRIDE("ns", \
												       "6") "]}")
#define OWN_NET 1 /* the cookie of the namespace that all of this is in */
#define ENDED 0
#define KILLED 1

static int steps_left;		     /* of the child */
static struct datapath *left_behind; /* what the agent's own namespace has when it is killed; shared with it */

static void count_step(void)
{
	if (steps_left--)
		return;
	*left_behind = fake_nets[OWN_NET];
	_exit(KILLED);
}

/* In a process of its own. Returns whether it was killed. */
static bool command_killed(struct fixture *f, const char *command, const char *objects, int steps)
{
	pid_t child = fork();
	int status = 0;

	assert_true(child >= 0);
	if (!child) {
		CLEANUP_JSON json_t *result = NULL;

		steps_left = steps;
		fake_asked = count_step;
		result = run(f, command, objects);
		fake_asked = NULL;
		*left_behind = fake_nets[OWN_NET];
		_exit(result ? ENDED : 99);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_in_range(WEXITSTATUS(status), ENDED, KILLED);
	return WEXITSTATUS(status) == KILLED;
}

/* The next agent begins with what the killed one has left in the kernel; descriptors are the test's own. */
static void take_over(struct fixture *f)
{
	struct datapath *own = &fake_nets[OWN_NET];

	end_agent(f);
	left_behind->open = own->open;
	memcpy(left_behind->netlink, own->netlink, sizeof(own->netlink));
	memcpy(left_behind->traced, own->traced, sizeof(own->traced));
	*own = *left_behind;
	start_agent(f);
}

static __u64 burst_of(const char *user)
{
	const struct datapath_amount *amount = fake_override(&fake_nets[OWN_NET], 0, WEIR_BUILTIN_USER, WEIR_KEY_USER,
							     user);

	return amount ? amount->burst : 0;
}

static size_t count_overrides(void)
{
	size_t n = 0;

	for (int i = 0; i < FAKE_OVERRIDES; i++)
		n += fake_nets[OWN_NET].overrides[i].there;
	return n;
}

/* The kernel is all of what one of them says. */
static void assert_kernel(bool after)
{
	struct datapath *dp = &fake_nets[OWN_NET];

	assert_int_equal(count_overrides(), after ? 4 : 3);
	assert_int_equal(burst_of("ann"), 1);
	assert_int_equal(burst_of("bob"), after ? 2 : 1);
	assert_int_equal(burst_of("cat"), after ? 0 : 1);
	assert_int_equal(burst_of("dan"), after ? 4 : 0);
	assert_int_equal(fake_limit(dp, 0, WEIR_BUILTIN_TOTAL) != NULL, !after);
	assert_int_equal(fake_limit(dp, 0, WEIR_BUILTIN_NAMESPACE) != NULL, after);
}

/* Half-way there is nothing that neither of them says. */
static void assert_half_way(void)
{
	const struct datapath *dp = left_behind;

	for (int i = 0; i < FAKE_OVERRIDES; i++) {
		const struct fake_override *there = &dp->overrides[i];
		__u64 burst = there->amount.burst;

		if (there->there)
			assert_true(burst == 1 || burst == 2 || burst == 4 || burst == 6);
	}
}

static bool file_says_after(struct fixture *f)
{
	CLEANUP_FREE char *text = saved_state(f);
	bool dan = strstr(text, "\"dan\""), cat = strstr(text, "\"cat\"");

	assert_int_equal(dan, !cat);
	return dan;
}

static void killed_anywhere(void **state)
{
	struct fixture *f = *state;
	int steps = 0, after = 0;
	bool killed;

	left_behind = mmap(NULL, sizeof(*left_behind), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(left_behind, MAP_FAILED);
	succeed(f, "attach", ATTACH);
	do {
		bool said;

		succeed(f, "apply", BEFORE);
		assert_kernel(false);
		killed = command_killed(f, "apply", AFTER, steps++);
		said = file_says_after(f);
		assert_half_way();
		take_over(f);
		assert_int_equal(file_says_after(f), said);
		assert_kernel(said);
		/* What is in the file is not taken back by a later step. */
		assert_true(said || !after);
		after += said;
	} while (killed);
	assert_true(after > 4); /* steps in the kernel, all of them behind the file */
	munmap(left_behind, sizeof(*left_behind));
}

/* A server that is attached by its Throttle, or detached with it, is never taken for one that a command has attached. */
static void attached_by_a_throttle(void **state)
{
	static const char *const commands[] = { "apply", "delete" };
	struct fixture *f = *state;

	left_behind = mmap(NULL, sizeof(*left_behind), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(left_behind, MAP_FAILED);
	for (int i = 0; i < 2; i++) {
		int steps = 0, there = 0;
		bool killed;

		do {
			if (i == 1)
				succeed(f, "apply", ATTACHING);
			killed = command_killed(f, commands[i], ATTACHING, steps++);
			take_over(f);
			if (!f->agent.state.servers[0])
				continue;
			there++;
			assert_true(policy_attached(f->agent.state.servers[0]));
			succeed(f, "detach", "{\"name\":\"api\",\"force\":true}");
		} while (killed);
		assert_true(there > 1);
	}
	munmap(left_behind, sizeof(*left_behind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(killed_anywhere),
		with_agent(attached_by_a_throttle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
