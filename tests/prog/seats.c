/* SPDX-License-Identifier: GPL-2.0 */
#include "seats.h"

#include <bpf/bpf.h>

#include "weir.skel.h"

struct datapath_limit limit_on_seats(__u8 key, __u32 seats)
{
	return (struct datapath_limit){ .kind = WEIR_LIMIT_IN_FLIGHT,
					.reason = WEIR_SHED_IN_FLIGHT,
					.key = key,
					.epoch = 7,
					.amount = { .set = true, .seats = seats } };
}

void lists_set(__u32 list_width, __u32 object_bytes)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE,
				      .swallow_max = 65536,
				      .list_width = list_width,
				      .object_bytes = object_bytes };

	weir_reading_default(&server.reading);
	done(datapath_server_set(dp, 0, &server, &listen, 1, NULL, 0, &error));
}

__u64 taken(void)
{
	__u64 seats[WEIR_SERVER_LIMITS] = {};

	done(datapath_in_flight(dp, 0, 1, seats, &error));
	return seats[SLOT];
}

__u64 kept(void)
{
	__u32 key, next, *at = NULL;
	struct weir_busy busy;
	__u64 n = 0;

	while (!bpf_map_get_next_key(dp->maps.busy, at, &next)) {
		key = next;
		at = &key;
		assert_int_equal(bpf_map_lookup_elem(dp->maps.busy, &key, &busy), 0);
		for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
			n += busy.seats[i].taken;
	}
	return n;
}

void forget(void)
{
	struct weir_forget forget = { .reason = WEIR_CONN_SWEPT };

	packet_flow(false, &forget.flow);
	assert_int_equal(datapath_run(bpf_program__fd(dp->skeleton->progs.weir_forget), &forget, sizeof(forget)), 0);
}

int seats_setup(void **state)
{
	struct datapath_limit limit = limit_on_seats(0, 1);

	attached_setup(state);
	slot_set(&limit);
	rule_set("{\"long_running\": false}");
	return 0;
}
