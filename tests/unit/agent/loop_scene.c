/* SPDX-License-Identifier: GPL-2.0 */
#include "loop_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/file.h"
#include "base/cleanup.h"
#include "control/control.h"
#include "fake_datapath.h"
#include "history/files.h"

#define PATIENCE_S 120
#define MS 1000

/* --- the agent */

static void *run_agent(void *arg)
{
	struct loop_scene *f = arg;

	f->ended = agent_run(&f->options, NULL);
	return NULL;
}

static off_t log_size(const struct loop_scene *f)
{
	struct stat st;

	assert_int_equal(fstat(f->log, &st), 0);
	return st.st_size;
}

/* What was logged from a place on; the caller frees it. */
static char *read_log(const struct loop_scene *f, off_t from)
{
	off_t size = log_size(f) - from;
	char *text = calloc(1, size + 1);

	assert_int_equal(pread(f->log, text, size, from), size);
	return text;
}

/* Since it was started. */
bool loop_has_logged(const struct loop_scene *f, const char *word)
{
	CLEANUP_FREE char *text = read_log(f, f->log_began);

	return strstr(text, word);
}

static void loop_wait_for_log(const struct loop_scene *f, const char *word)
{
	while (!loop_has_logged(f, word))
		usleep(MS);
}

void loop_start(struct loop_scene *f)
{
	f->log_began = log_size(f);
	f->ended = -1;
	assert_int_equal(pthread_create(&f->agent, NULL, run_agent, f), 0);
}

void loop_start_and_wait(struct loop_scene *f)
{
	loop_start(f);
	loop_wait_for_log(f, "ready");
}

void loop_stop(struct loop_scene *f)
{
	/* The agent's loop reads it. NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread,cert-pos44-c) */
	pthread_kill(f->agent, SIGTERM);
	loop_wait_for_log(f, "stopping");
}

void loop_join(struct loop_scene *f)
{
	pthread_join(f->agent, NULL);
	assert_int_equal(f->ended, 0);
}

/* --- a kernel that takes its time to load programs */

atomic_bool loop_may_open;
static atomic_bool is_opening;

static void open_when_told(void)
{
	is_opening = true;
	do
		usleep(MS);
	while (!loop_may_open);
}

void loop_block_openings(void)
{
	is_opening = loop_may_open = false;
}

void loop_wait_for_opening(void)
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

int loop_set_up(void **state)
{
	struct loop_scene *f = calloc(1, sizeof(*f));

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
	loop_may_open = true;
	*state = f;
	return 0;
}

int loop_tear_down(void **state)
{
	static const char *const files[] = { "state.json", "lock" };
	struct loop_scene *f = *state;
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
	snprintf(path, sizeof(path), "%s/%s", f->state_dir, HISTORY_DIR);
	history_remove(path);
	audit_remove(f->state_dir);
	assert_int_equal(rmdir(f->state_dir), 0);
	assert_int_equal(rmdir(f->pin_dir), 0);
	free(f);
	return 0;
}

/* --- clients */

/* Its result, which the caller owns; NULL: it failed. */
static json_t *ask(const struct loop_scene *f, const char *command, const char *arguments, struct error *err)
{
	CLEANUP_JSON json_t *json = json_loads(arguments, 0, NULL);
	json_t *result = NULL;

	assert_non_null(json);
	return control_call(f->state_dir, command, json, &result, NULL, err) ? NULL : result;
}

void loop_succeed(const struct loop_scene *f, const char *command, const char *arguments)
{
	struct error err;
	CLEANUP_JSON json_t *result = ask(f, command, arguments, &err);

	if (!result)
		fail_msg("%s %s: %s", command, arguments, err.text);
}

/* "" when there is no such server. */
static void loop_read_mode(const struct loop_scene *f, size_t server, char mode[static 16])
{
	CLEANUP_JSON json_t *status = ask(f, "status", "{}", NULL);
	json_t *found = json_array_get(json_object_get(status, "servers"), server);

	assert_non_null(status);
	snprintf(mode, 16, "%s", json_string_value(json_object_get(found, "mode")) ?: "");
}

void loop_assert_mode(const struct loop_scene *f, size_t server, const char *wanted)
{
	char mode[16];

	loop_read_mode(f, server, mode);
	assert_string_equal(mode, wanted);
}

static void *wait_for_answer(void *arg)
{
	struct loop_client *c = arg;
	CLEANUP_JSON json_t *result = ask(c->f, c->command, c->arguments, &c->err);

	c->succeeded = result;
	c->answered = true;
	return NULL;
}

void loop_send_command(struct loop_client *c)
{
	assert_int_equal(pthread_create(&c->thread, NULL, wait_for_answer, c), 0);
}

void loop_expect_success(struct loop_client *c)
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
FILE *loop_send_behind_status(const struct loop_scene *f, const char *line)
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
	loop_read_mode(f, 0, mode);
	loop_read_mode(f, 0, mode);
	return stream;
}

void loop_expect_line(FILE *stream, const char *word)
{
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;

	assert_true(getline(&line, &room, stream) > 0);
	if (!strstr(line, word))
		fail_msg("\"%s\" does not say \"%s\"", line, word);
}

void loop_expect_metrics(const struct loop_scene *f)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(f->port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = connect_to(AF_INET, &address, sizeof(address));
	CLEANUP_FCLOSE FILE *stream = fdopen(fd, "r");

	send_text(fd, "GET /metrics HTTP/1.0\r\n\r\n");
	loop_expect_line(stream, "200 OK");
}
