/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests inside a server whose memory is of any content: this process, in whose registers and memory a request of a Kubernetes API
 * server lies, with words of it changed at random. Each comes to the probe, and each is counted once.
 */
#include "attached.h"
#include "inside_hit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define ROUNDS 20000

/* What an interface begins with, and keys. Nothing is there. */
enum {
	VALUE_ITAB = 0x1000,
	OTHER_ITAB,
	USER_TYPE,
	KEY_TYPE,
	INFO_TYPE,
	USER_ITAB
};
#define USER_KEY 7

/* As the layout below says; addresses of Go are words here. */
struct string {
	const char *at;
	__u64 length;
};

struct interface {
	__u64 type;
	const void *data;
};

struct info {
	struct string verb, namespace, group, resource, subresource, name, path;
	__u64 is_resource;
};

struct user {
	struct string name, uid;
	struct string *groups;
	__u64 n_groups, room;
};

struct context {
	struct interface parent, key, value;
};

struct other {
	__u64 more;
	struct interface parent;
};

struct request {
	struct string method, uri, peer;
	struct interface context;
	__u64 tls, proto_major;
};

/* All of it, in memory behind which there is none. */
struct memory {
	struct request request;
	struct context contexts[3];
	struct other other;
	struct user user;
	struct info info;
	struct string groups[10];
	__u64 key, goroutine[3];
	char text[256];
};

static struct memory *memory;
static void *nowhere; /* mapped, and not to be read */

static struct weir_inside_layout layout = {
	.user_itab = USER_ITAB,
	.request_in = WEIR_INSIDE_AX,
	.record_in = WEIR_INSIDE_AX,
	.method = offsetof(struct request, method),
	.uri = offsetof(struct request, uri),
	.peer = offsetof(struct request, peer),
	.tls = offsetof(struct request, tls),
	.proto_major = offsetof(struct request, proto_major),
	.user_name = offsetof(struct user, name),
	.user_groups = offsetof(struct user, groups),
	.request_size = sizeof(struct request),
	.user_size = sizeof(struct user),
	.state = 8,
	.share = 100,
	.info = {
		.verb = offsetof(struct info, verb),
		.namespace = offsetof(struct info, namespace),
		.group = offsetof(struct info, group),
		.resource = offsetof(struct info, resource),
		.subresource = offsetof(struct info, subresource),
		.name = offsetof(struct info, name),
		.path = offsetof(struct info, path),
		.is_resource = offsetof(struct info, is_resource),
		.size = sizeof(struct info),
	},
	.context = {
		.value_itab = VALUE_ITAB,
		.user_type = USER_TYPE,
		.key_type = KEY_TYPE,
		.user_key = USER_KEY,
		.info_type = INFO_TYPE,
		.request = offsetof(struct request, context),
		.n_others = 1,
		.others = { { OTHER_ITAB, offsetof(struct other, parent) } },
	},
};

static struct string text(const char *what)
{
	static size_t used;
	size_t length = strlen(what);

	if (used + length > sizeof(memory->text))
		used = 0;
	memcpy(memory->text + used, what, length);
	used += length;
	return (struct string){ memory->text + used - length, length };
}

/* alice lists pods, impersonated by nobody. */
static void make(void)
{
	struct memory *m = memory;

	memset(m, 0, sizeof(*m));
	m->request = (struct request){
		text("GET"), text("/api/v1/pods"), text("192.0.2.1:4711"), { VALUE_ITAB, &m->contexts[0] }, 1, 2
	};
	m->contexts[0] = (struct context){ { OTHER_ITAB, &m->other }, { 1, NULL }, { 2, NULL } };
	m->other = (struct other){ 0, { VALUE_ITAB, &m->contexts[1] } };
	m->contexts[1] =
		(struct context){ { VALUE_ITAB, &m->contexts[2] }, { KEY_TYPE, &m->key }, { USER_TYPE, &m->user } };
	m->contexts[2] = (struct context){ { 3, NULL }, { KEY_TYPE, &m->goroutine }, { INFO_TYPE, &m->info } };
	m->key = USER_KEY;
	m->user = (struct user){ text("alice"), text("1"), m->groups, 10, 10 };
	for (int i = 0; i < 10; i++)
		m->groups[i] = text("dev");
	m->info =
		(struct info){ text("list"), text("team"), text(""), text("pods"), text(""), text(""), text("/a"), 1 };
	m->goroutine[1] = 2; /* it runs, and has a number */
	m->goroutine[2] = 42;
}

/* A word that means something somewhere, or nothing. */
static __u64 word(void)
{
	const __u64 types[] = { VALUE_ITAB, OTHER_ITAB, USER_TYPE, KEY_TYPE, INFO_TYPE, USER_ITAB, USER_KEY };

	switch (random() % 8) {
	case 0:
		return random() % 300;
	case 1:
		return 0xffff888000000000ULL + random();
	case 2:
		return ((__u64)random() << 33) ^ random();
	case 3:
		return (__u64)nowhere + random() % PAGE;
	case 4:
		return (__u64)(memory + 1) - random() % 16;
	case 5:
		return types[random() % (sizeof(types) / sizeof(*types))];
	default:
		return (__u64)memory + random() % sizeof(*memory) / 8 * 8;
	}
}

static void change(void)
{
	__u64 *words = (__u64 *)memory;

	for (long n = random() % 4; n > 0; n--)
		words[random() % (long)(sizeof(*memory) / 8)] = word();
	if (random() % 4 == 0)
		memory->text[random() % (long)sizeof(memory->text)] = (char)random();
}

static void probed(enum weir_inside_point point)
{
	const struct datapath_binary binary = inside_hit_binary(point);
	const struct datapath_process own = inside_hit_process(&binary, &layout);

	done(datapath_inside_sync(dp, &own, 1, &error));
	close(binary.fd);
}

static void fuzz(enum weir_inside_point point)
{
	probed(point);
	make();
	inside_hit(&memory->request, &memory->goroutine);
	assert_int_equal(counter(WEIR_INSIDE_SEEN), 1);
	assert_int_equal(inside_hits_counted(), 1);
	srandom(1);
	for (int i = 2; i < ROUNDS; i++) {
		make();
		change();
		inside_hit(random() % 32 ? &memory->request : (const void *)word(),
			   random() % 32 ? &memory->goroutine : (const void *)word());
		if (i % 100 == 0)
			assert_int_equal(inside_hits_counted(), i);
	}
	look_into_nobody();
}

static void test_requests_of_an_api_server(void **state)
{
	(void)state;
	fuzz(WEIR_INSIDE_CONTEXT);
	assert_true(counter(WEIR_INSIDE_UNREADABLE) && counter(WEIR_INSIDE_OTHER_USER) &&
		    counter(WEIR_INSIDE_NOT_TEXT));
	assert_int_equal(counter(WEIR_INSIDE_NO_ROOM), 0);
}

static void test_requests_of_any_server(void **state)
{
	(void)state;
	fuzz(WEIR_INSIDE_HTTP);
	assert_true(counter(WEIR_INSIDE_UNREADABLE) > 0);
	assert_int_equal(counter(WEIR_INSIDE_OTHER_USER) + counter(WEIR_INSIDE_NOT_TEXT), 0);
}

/* What cannot be written is known by its address from then on: it need not be there. */
static void test_keys_that_are_constants(void **state)
{
	__u64 *keys = nowhere;

	(void)state;
	layout.constants_from = (__u64)nowhere;
	layout.constants_to = (__u64)nowhere + PAGE;
	probed(WEIR_INSIDE_CONTEXT);
	make();
	assert_int_equal(mprotect(nowhere, PAGE, PROT_READ | PROT_WRITE), 0);
	keys[0] = USER_KEY + 1;
	keys[1] = USER_KEY;
	memory->contexts[0].parent = (struct interface){ VALUE_ITAB, &memory->contexts[1] };
	memory->contexts[0].key = (struct interface){ KEY_TYPE, &keys[0] };
	memory->contexts[1].key = (struct interface){ KEY_TYPE, &keys[1] };
	inside_hit(&memory->request, &memory->goroutine);
	assert_int_equal(counter(WEIR_INSIDE_SEEN), 1);
	assert_int_equal(mprotect(nowhere, PAGE, PROT_NONE), 0);
	inside_hit(&memory->request, &memory->goroutine);
	assert_int_equal(counter(WEIR_INSIDE_SEEN), 2);
	memory->contexts[0].key.data = &keys[2]; /* another one that nobody has read */
	inside_hit(&memory->request, &memory->goroutine);
	assert_int_equal(counter(WEIR_INSIDE_UNREADABLE), 1);
	layout.constants_from = layout.constants_to = 0;
	look_into_nobody();
}

#define PEERS 60

/* Each peer has a token, whichever were read just before it. */
static void test_peers(void **state)
{
	char peer[64];

	(void)state;
	limit(WEIR_BUILTIN_USER, "0", 1);
	probed(WEIR_INSIDE_HTTP);
	make();
	for (int i = 1; i <= 4 * PEERS; i++) {
		snprintf(peer, sizeof(peer), "192.0.2.%d:%d", i % PEERS, 40000 + i / 2 % 7);
		memory->request.peer = text(peer);
		inside_hit(&memory->request, &memory->goroutine);
		assert_int_equal(counter(WEIR_INSIDE_SEEN), i);
		assert_int_equal(counter(WEIR_DRY_RUN_SHED), i > PEERS ? i - PEERS : 0);
	}
	/* No peer, though its text is that of one, and a zero: it has no token. */
	memory->request.peer.length++;
	memset((char *)memory->request.peer.at + memory->request.peer.length - 1, 0, 1);
	inside_hit(&memory->request, &memory->goroutine);
	assert_int_equal(counter(WEIR_DRY_RUN_SHED), 3 * PEERS);
	look_into_nobody();
}

static int open_all(void **state)
{
	const size_t room = (sizeof(struct memory) + PAGE - 1) / PAGE * PAGE;
	char *pages = mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || mprotect(pages + room, PAGE, PROT_NONE))
		return -1;
	memory = (struct memory *)(pages + room - sizeof(struct memory));
	nowhere = pages + room;
	return attached_open(state);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(requests_of_an_api_server),
		TEST(requests_of_any_server),
		TEST(keys_that_are_constants),
		TEST(peers),
	};

	return cmocka_run_group_tests_name("memory of servers", tests, open_all, attached_close);
}
