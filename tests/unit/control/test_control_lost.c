/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's socket, when somebody deletes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/control.h"
#include "line_client.h"

#define ASK "{\"command\":\"any\"}\n"
#define ANSWER "{\"result\":true}"

struct fixture {
	char dir[32];
	struct sockaddr_un address;
	struct event_base *base;
	struct control *control;
	struct access_control access;
};

static int handle(void *context, struct control_client *client, const char *command, json_t *arguments, json_t **result,
		  struct error *err)
{
	(void)context;
	(void)client;
	(void)command;
	(void)arguments;
	(void)err;
	*result = json_true();
	return 0;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(control_address(f->dir, &f->address, NULL), 0);
	f->base = event_base_new();
	assert_int_equal(control_open(&f->control, f->base, f->dir, &f->access, handle, NULL, NULL), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	control_close(f->control);
	event_base_free(f->base);
	assert_int_equal(rmdir(f->dir), 0); /* the socket is gone */
	free(f);
	return 0;
}

static void expect_service(const struct fixture *f)
{
	struct line_client client = { 0 };

	line_client_open(&client, f->base, f->dir);
	line_client_send(&client, ASK);
	line_client_expect(&client, ANSWER);
	line_client_close(&client);
}

static ino_t socket_inode(const struct fixture *f)
{
	struct stat st;

	assert_int_equal(stat(f->address.sun_path, &st), 0);
	return st.st_ino;
}

static void it_is_there(void **state)
{
	const struct fixture *f = *state;
	ino_t before = socket_inode(f);

	control_look_after(f->control);
	assert_true(socket_inode(f) == before);
	expect_service(f);
}

/* Who is connected stays so. */
static void it_is_made_again(void **state)
{
	const struct fixture *f = *state;
	struct line_client client = { 0 };
	struct stat st;

	line_client_open(&client, f->base, f->dir);
	line_client_run(&client);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unlink(f->address.sun_path), 0);
		control_look_after(f->control);
		assert_int_equal(stat(f->address.sun_path, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
		expect_service(f);
		line_client_send(&client, ASK);
		line_client_expect(&client, ANSWER);
	}
	line_client_close(&client);
}

static void its_directory_is_gone(void **state)
{
	const struct fixture *f = *state;
	struct line_client client = { 0 };

	line_client_open(&client, f->base, f->dir);
	assert_int_equal(unlink(f->address.sun_path), 0);
	assert_int_equal(rmdir(f->dir), 0);
	control_look_after(f->control);
	line_client_send(&client, ASK);
	line_client_expect(&client, ANSWER);
	line_client_close(&client);
	assert_int_equal(mkdir(f->dir, 0700), 0);
	control_look_after(f->control);
	expect_service(f);
}

int main(void)
{
#define served(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		served(it_is_there),
		served(it_is_made_again),
		served(its_directory_is_gone),
	};

	return cmocka_run_group_tests_name("control_lost", tests, NULL, NULL);
}
