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

#include "line_scene.h"

static struct stat socket_stat(const struct line_scene *s)
{
	struct stat st;

	assert_int_equal(stat(s->address.sun_path, &st), 0);
	return st;
}

static void delete_socket(const struct line_scene *s)
{
	assert_int_equal(unlink(s->address.sun_path), 0);
}

static void it_is_there(void **state)
{
	const struct line_scene *s = *state;
	ino_t before = socket_stat(s).st_ino;

	control_look_after(s->control);
	assert_true(socket_stat(s).st_ino == before);
	line_scene_expect_service(s);
}

/* Who is connected stays so. */
static void it_is_made_again(void **state)
{
	const struct line_scene *s = *state;
	struct line_client client = { 0 };

	line_client_open(&client, s->base, s->dir);
	line_client_run(&client);
	for (int i = 0; i < 2; i++) {
		delete_socket(s);
		control_look_after(s->control);
		assert_int_equal(socket_stat(s).st_mode & 0777, 0600);
		line_scene_expect_service(s);
		line_client_send(&client, ASK);
		line_client_expect(&client, ANSWER);
	}
	line_client_close(&client);
}

static void its_directory_is_gone(void **state)
{
	const struct line_scene *s = *state;
	struct line_client client = { 0 };

	line_client_open(&client, s->base, s->dir);
	delete_socket(s);
	assert_int_equal(rmdir(s->dir), 0);
	control_look_after(s->control);
	line_client_send(&client, ASK);
	line_client_expect(&client, ANSWER);
	line_client_close(&client);
	assert_int_equal(mkdir(s->dir, 0700), 0);
	control_look_after(s->control);
	line_scene_expect_service(s);
}

/* By another socket, which is nobody's then, or by a link. */
static void it_is_replaced(void **state)
{
	const struct line_scene *s = *state;
	struct sockaddr_un address = s->address;
	int other = socket(AF_UNIX, SOCK_STREAM, 0);

	delete_socket(s);
	assert_int_equal(bind(other, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(other, 1), 0);
	control_look_after(s->control);
	line_scene_expect_service(s);
	delete_socket(s);
	assert_int_equal(symlink("/dev/null", s->address.sun_path), 0);
	control_look_after(s->control);
	line_scene_expect_service(s);
	close(other);
}

/* The agent does not remove a directory, and goes on with those who are connected. */
static void it_is_replaced_by_a_directory(void **state)
{
	const struct line_scene *s = *state;
	struct line_client client = { 0 };

	line_client_open(&client, s->base, s->dir);
	delete_socket(s);
	assert_int_equal(mkdir(s->address.sun_path, 0700), 0);
	control_look_after(s->control);
	line_client_send(&client, ASK);
	line_client_expect(&client, ANSWER);
	line_client_close(&client);
	assert_int_equal(rmdir(s->address.sun_path), 0);
	control_look_after(s->control);
	line_scene_expect_service(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		answered(it_is_there),
		answered(it_is_made_again),
		answered(its_directory_is_gone),
		answered(it_is_replaced),
		answered(it_is_replaced_by_a_directory),
	};

	return cmocka_run_group_tests_name("control_lost", tests, NULL, NULL);
}
