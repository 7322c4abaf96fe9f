/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The whole agent over the kernel side in memory: its event loop answers whatever else it has under way. Built twice, as the
 * other tests with threads are. An event loop that waits makes a test hang: the alarm ends that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "control/control.h"
#include "fake_datapath.h"

#define PATIENCE_S 120
#define MS 1000
#define CLIENTS 3
#define ROUNDS 10

struct fixture {
	char state_dir[32], pin_dir[32], metrics[32];
	__u16 port;
	struct agent_options options;
	pthread_t agent;
	int ended; /* what agent_run() has returned */
	int log, stderr_before;
	off_t log_began;
};

/* --- the agent */

static void *run_agent(void *arg)
{
	struct fixture *f = arg;

	f->ended = agent_run(&f->options, NULL);
	return NULL;
}

static off_t log_size(const struct fixture *f)
{
	struct stat st;

	assert_int_equal(fstat(f->log, &st), 0);
	return st.st_size;
}

/* What was logged from a place on; the caller frees it. */
static char *read_log(const struct fixture *f, off_t from)
{
	off_t size = log_size(f) - from;
	char *text = calloc(1, size + 1);

	assert_int_equal(pread(f->log, text, size, from), size);
	return text;
}

/* Since it was started. */
static bool has_logged(const struct fixture *f, const char *word)
{
	CLEANUP_FREE char *text = read_log(f, f->log_began);

	return strstr(text, word);
}

static void wait_for_log(const struct fixture *f, const char *word)
{
	while (!has_logged(f, word))
		usleep(MS);
}

static void start(struct fixture *f)
{
	f->log_began = log_size(f);
	f->ended = -1;
	assert_int_equal(pthread_create(&f->agent, NULL, run_agent, f), 0);
}

static void start_and_wait(struct fixture *f)
{
	start(f);
	wait_for_log(f, "ready");
}

static void stop(struct fixture *f)
{
	pthread_kill(f->agent, SIGTERM);
	wait_for_log(f, "stopping");
}

static void join(struct fixture *f)
{
	pthread_join(f->agent, NULL);
	assert_int_equal(f->ended, 0);
}

/* --- a kernel that takes its time to load programs */

static atomic_bool is_opening, may_open;

static void open_when_told(void)
{
	is_opening = true;
	do
		usleep(MS);
	while (!may_open);
}

static void block_openings(void)
{
	is_opening = may_open = false;
}

static void wait_for_opening(void)
{
	while (!is_opening)
		usleep(MS);
}

/* --- its surroundings */

/* A port that nobody had a moment ago. */
static __u16 free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(address);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	return ntohs(address.sin_port);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	alarm(PATIENCE_S);
	strcpy(f->state_dir, P_tmpdir "/weir-test-XXXXXX");
	strcpy(f->pin_dir, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(f->state_dir));
	assert_non_null(mkdtemp(f->pin_dir));
	f->port = free_port();
	snprintf(f->metrics, sizeof(f->metrics), "127.0.0.1:%u", f->port);
	f->options = (struct agent_options){
		.state_dir = f->state_dir, .pin_dir = f->pin_dir, .metrics = f->metrics, .resync_s = 3600
	};
	f->log = memfd_create("log", MFD_CLOEXEC);
	fcntl(f->log, F_SETFL, O_APPEND);
	f->stderr_before = dup(STDERR_FILENO);
	dup2(f->log, STDERR_FILENO);
	fake_reset();
	fake_opening = open_when_told;
	may_open = true;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	static const char *const files[] = { "state.json", "lock" };
	struct fixture *f = *state;
	CLEANUP_FREE char *log = NULL;
	char path[64];

	dup2(f->stderr_before, STDERR_FILENO);
	log = read_log(f, 0);
	fputs(log, stderr);
	close(f->stderr_before);
	close(f->log);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->state_dir, files[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(f->state_dir), 0);
	assert_int_equal(rmdir(f->pin_dir), 0);
	free(f);
	return 0;
}

/* --- clients */

/* Its result, which the caller owns; NULL: it failed. */
static json_t *ask(const struct fixture *f, const char *command, const char *arguments, struct error *err)
{
	CLEANUP_JSON json_t *json = json_loads(arguments, 0, NULL);
	json_t *result = NULL;

	assert_non_null(json);
	return control_call(f->state_dir, command, json, &result, NULL, err) ? NULL : result;
}

static void succeed(const struct fixture *f, const char *command, const char *arguments)
{
	struct error err;
	CLEANUP_JSON json_t *result = ask(f, command, arguments, &err);

	if (!result)
		fail_msg("%s %s: %s", command, arguments, err.text);
}

/* "" when there is no such server. */
static void read_mode(const struct fixture *f, size_t server, char mode[static 16])
{
	CLEANUP_JSON json_t *status = ask(f, "status", "{}", NULL);
	json_t *found = json_array_get(json_object_get(status, "servers"), server);

	assert_non_null(status);
	snprintf(mode, 16, "%s", json_string_value(json_object_get(found, "mode")) ?: "");
}

static void assert_mode(const struct fixture *f, size_t server, const char *wanted)
{
	char mode[16];

	read_mode(f, server, mode);
	assert_string_equal(mode, wanted);
}

/* A client in a thread of its own, which waits for its answer. */
struct client {
	const struct fixture *f;
	const char *command, *arguments;
	pthread_t thread;
	atomic_bool answered;
	bool succeeded;
	struct error err;
};

static void *wait_for_answer(void *arg)
{
	struct client *c = arg;
	CLEANUP_JSON json_t *result = ask(c->f, c->command, c->arguments, &c->err);

	c->succeeded = result;
	c->answered = true;
	return NULL;
}

static void send_command(struct client *c)
{
	assert_int_equal(pthread_create(&c->thread, NULL, wait_for_answer, c), 0);
}

static void expect_success(struct client *c)
{
	pthread_join(c->thread, NULL);
	if (!c->succeeded)
		fail_msg("%s: %s", c->command, c->err.text);
}

static int connect_to(int family, const void *address, socklen_t length)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, address, length), 0);
	return fd;
}

static void send_text(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/*
 * A command that the agent has read when this returns: it comes together with another one, and is read as soon as that is
 * answered.
 */
static FILE *send_behind_status(const struct fixture *f, const char *line)
{
	CLEANUP_FREE char *answer = NULL;
	struct sockaddr_un address;
	size_t room = 0;
	FILE *stream;
	char mode[16];
	int fd;

	assert_int_equal(control_address(f->state_dir, &address, NULL), 0);
	fd = connect_to(AF_UNIX, &address, sizeof(address));
	send_text(fd, "{\"command\":\"status\"}\n");
	send_text(fd, line);
	stream = fdopen(fd, "r");
	assert_true(getline(&answer, &room, stream) > 0);
	/* One more turn of the event loop. */
	read_mode(f, 0, mode);
	read_mode(f, 0, mode);
	return stream;
}

static void expect_line(FILE *stream, const char *word)
{
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;

	assert_true(getline(&line, &room, stream) > 0);
	if (!strstr(line, word))
		fail_msg("\"%s\" does not say \"%s\"", line, word);
}

static void expect_metrics(const struct fixture *f)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(f->port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = connect_to(AF_INET, &address, sizeof(address));
	CLEANUP_FCLOSE FILE *stream = fdopen(fd, "r");

	send_text(fd, "GET /metrics HTTP/1.0\r\n\r\n");
	expect_line(stream, "200 OK");
}

/* --- the tests */

#define ONE "{\"server\":{\"name\":\"one\",\"listen\":[\"*:81\"]}}"
#define TWO "{\"server\":{\"name\":\"two\",\"listen\":[\"*:82\"],\"netns\":\"/netns/2\"}}"
#define THREE "{\"server\":{\"name\":\"three\",\"listen\":[\"*:83\"],\"netns\":\"/netns/3\"}}"
#define LIMIT "{\"server\":\"two\",\"limit\":{\"name\":\"total\",\"qps\":\"1\",\"burst\":1}}"

static void answers_while_a_command_loads(void **state)
{
	struct fixture *f = *state;
	struct client attach = { .f = f, .command = "attach", .arguments = TWO };
	FILE *limit;

	start_and_wait(f);
	succeed(f, "attach", ONE);
	block_openings();
	send_command(&attach);
	wait_for_opening();
	assert_mode(f, 0, "limiting");
	assert_mode(f, 1, "starting");
	expect_metrics(f);
	/* What changes something waits for its turn, and then finds what was attached before. */
	limit = send_behind_status(f, "{\"command\":\"limit set\",\"arguments\":" LIMIT "}\n");
	assert_false(attach.answered);
	may_open = true;
	expect_success(&attach);
	expect_line(limit, "result");
	fclose(limit);
	assert_mode(f, 1, "limiting");
	stop(f);
	join(f);
	assert_non_null(fake_limit(&fake_nets[2], 1, WEIR_LIMIT_TOTAL));
}

/* Whoever may only ask holds up nobody's change. */
static void changes_come_before_questions(void **state)
{
	struct fixture *f = *state;
	struct client attach = { .f = f, .command = "attach", .arguments = TWO };
	FILE *diff, *pause;

	start_and_wait(f);
	block_openings();
	send_command(&attach);
	wait_for_opening();
	diff = send_behind_status(f, "{\"command\":\"diff\",\"arguments\":{\"server\":\"two\",\"objects\":[],"
				     "\"prune\":true}}\n");
	pause = send_behind_status(f, "{\"command\":\"pause\"}\n");
	may_open = true;
	expect_success(&attach);
	expect_line(diff, "result");
	assert_true(has_logged(f, "is paused"));
	expect_line(pause, "result");
	fclose(diff);
	fclose(pause);
	stop(f);
	join(f);
}

static void answers_while_it_starts(void **state)
{
	struct fixture *f = *state;
	FILE *pause;

	start_and_wait(f);
	succeed(f, "attach", ONE);
	stop(f);
	join(f);
	block_openings();
	start(f);
	wait_for_opening();
	assert_mode(f, 0, "starting");
	expect_metrics(f);
	assert_false(has_logged(f, "ready"));
	pause = send_behind_status(f, "{\"command\":\"pause\"}\n");
	may_open = true;
	expect_line(pause, "result");
	fclose(pause);
	assert_true(has_logged(f, "ready"));
	assert_mode(f, 0, "paused");
	stop(f);
	join(f);
}

/* The command at hand comes to its end; what has not begun is not done, and said so. */
static void ends_while_a_command_loads(void **state)
{
	struct fixture *f = *state;
	struct client attach = { .f = f, .command = "attach", .arguments = TWO };
	FILE *second;

	start_and_wait(f);
	block_openings();
	send_command(&attach);
	wait_for_opening();
	second = send_behind_status(f, "{\"command\":\"attach\",\"arguments\":" THREE "}\n");
	stop(f);
	assert_false(attach.answered);
	may_open = true;
	join(f);
	expect_success(&attach);
	expect_line(second, "stopping");
	fclose(second);
	assert_int_equal(fake_nets[2].opened, 1);
	assert_int_equal(fake_nets[3].opened, 0);
}

/* The servers whose turn has not come stay as they were: of four workers, each has at most one. */
static void ends_while_it_starts(void **state)
{
	struct fixture *f = *state;
	FILE *pause;

	start_and_wait(f);
	succeed(f, "attach", ONE);
	stop(f);
	join(f);
	block_openings();
	start(f);
	wait_for_opening();
	pause = send_behind_status(f, "{\"command\":\"pause\"}\n");
	stop(f);
	may_open = true;
	join(f);
	expect_line(pause, "stopping");
	fclose(pause);
	assert_false(has_logged(f, "ready"));
	assert_true(fake_nets[1].servers[0].flags & WEIR_SERVER_ACTIVE);
}

/* Jobs end servers; the loop tells who has traced them. */
static void tracing_ends_with_the_server(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *name = json_pack("{s:s}", "name", "one"), *result = NULL;
	CLEANUP_FCLOSE FILE *stream = NULL;

	start_and_wait(f);
	succeed(f, "attach", ONE);
	assert_int_equal(control_follow(f->state_dir, "trace", name, &result, &stream, NULL), 0);
	succeed(f, "detach", "{\"name\":\"one\"}");
	expect_line(stream, "no longer attached");
	stop(f);
	join(f);
}

/* One of several, each with a namespace that it has opened and closed all the time. */
static void *come_and_go(void *arg)
{
	struct client *c = arg;
	char attach[128], detach[128], trace[64];

	snprintf(attach, sizeof(attach), "{\"server\":{\"name\":\"%s\",\"listen\":[\"*:%s\"],\"netns\":\"/netns/%s\"}}",
		 c->command, c->arguments, c->arguments);
	snprintf(detach, sizeof(detach), "{\"name\":\"%s\",\"force\":true}", c->command);
	snprintf(trace, sizeof(trace), "{\"name\":\"%s\"}", c->command);
	for (int i = 0; i < ROUNDS; i++) {
		CLEANUP_JSON json_t *name = json_loads(trace, 0, NULL), *result = NULL;
		CLEANUP_FCLOSE FILE *stream = NULL;

		succeed(c->f, "attach", attach);
		succeed(c->f, "status", "{}");
		control_follow(c->f->state_dir, "trace", name, &result, &stream, NULL);
		expect_metrics(c->f);
		succeed(c->f, "detach", detach);
	}
	c->succeeded = true;
	return NULL;
}

static void many_clients(void **state)
{
	struct fixture *f = *state;
	struct client clients[CLIENTS] = {
		{ .f = f, .command = "a", .arguments = "1" },
		{ .f = f, .command = "b", .arguments = "2" },
		{ .f = f, .command = "c", .arguments = "3" },
	};

	start_and_wait(f);
	for (size_t i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&clients[i].thread, NULL, come_and_go, &clients[i]), 0);
	for (size_t i = 0; i < CLIENTS; i++) {
		pthread_join(clients[i].thread, NULL);
		assert_true(clients[i].succeeded);
	}
	stop(f);
	join(f);
	for (size_t i = 1; i <= CLIENTS; i++)
		assert_false(fake_nets[i].open);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(answers_while_a_command_loads),
		TEST(changes_come_before_questions),
		TEST(answers_while_it_starts),
		TEST(ends_while_a_command_loads),
		TEST(ends_while_it_starts),
		TEST(tracing_ends_with_the_server),
		TEST(many_clients),
	};

	return cmocka_run_group_tests_name("agent loop", tests, NULL, NULL);
}
