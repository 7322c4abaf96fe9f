/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a client says to the agent's socket, over the kernel side in memory of the unit tests. The first byte tells whether
 * it may only read (bit 0); then nothing of the agent changes, whatever it says. Each line gets one reply.
 */
#include <assert.h>
#include <event2/event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent_in_memory.h"
#include "base/cleanup.h"
#include "control/private.h"
#include "daemon/request.h"

/* A server with a limit, for commands to be about. */
static void attach(struct agent *agent)
{
	static const char *const commands[][2] = {
		{ "attach", "{\"server\":{\"name\":\"api\",\"listen\":[\"*:80\"],\"netns\":\"/netns/2\"}}" },
		{ "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}" },
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		CLEANUP_JSON json_t *arguments = json_loads(commands[i][1], 0, NULL), *result = NULL;
		struct error err;

		assert(!agent_request(agent, NULL, commands[i][0], arguments, &result, &err));
	}
}

/* All that it says, and then its end. Returns how many lines came back. */
static size_t talk(struct agent *agent, struct control *control, enum access access, const uint8_t *data, size_t size)
{
	size_t lines = 0, sent = 0;
	char bytes[65536];
	int pair[2];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
		abort();
	assert(control_client_new(control, pair[1], access));
	control->n_clients++;
	for (int idle = 0; idle < 3;) {
		n = send(pair[0], data + sent, size - sent, MSG_NOSIGNAL);
		sent += n > 0 ? n : 0;
		if (sent == size)
			shutdown(pair[0], SHUT_WR);
		event_base_loop(agent->base, EVLOOP_NONBLOCK);
		idle++;
		while ((n = recv(pair[0], bytes, sizeof(bytes), 0)) > 0) {
			idle = 0;
			for (ssize_t i = 0; i < n; i++)
				lines += bytes[i] == '\n';
		}
		if (n == 0)
			break;
	}
	close(pair[0]);
	return lines;
}

static size_t count_lines(const uint8_t *data, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum access access = size && data[0] & 1 ? ACCESS_READ : ACCESS_CHANGE;
	CLEANUP_FREE char *before = NULL, *after = NULL;
	struct control *control;
	struct agent agent;
	size_t said;

	if (!size)
		return 0;
	agent_begin(&agent);
	attach(&agent);
	before = agent_servers(&agent);
	if (control_open(&control, agent.base, agent.options->state_dir, &agent.access, agent_request, &agent, NULL))
		abort();
	said = talk(&agent, control, access, data + 1, size - 1);
	/* A stream has lines of its own, and what follows its command is no command. */
	if (access == ACCESS_READ)
		assert(said <= count_lines(data + 1, size - 1));
	control_close(control);
	after = agent_servers(&agent);
	if (access == ACCESS_READ)
		assert(!strcmp(before, after));
	agent_finish(&agent);
	return 0;
}
