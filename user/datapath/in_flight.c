/* SPDX-License-Identifier: GPL-2.0 */
/* Seats of limits that requests have taken. */
#include "datapath/map_cursor.h"
#include "datapath/private.h"

static bool is_of_limit(const void *key, const void *value, const void *arg)
{
	const struct weir_in_flight_key *seat = key;

	(void)value;
	return seat->limit == *(const __u32 *)arg;
}

int datapath_in_flight_clear(struct datapath *dp, __u32 limit)
{
	return map_drop_if(dp->maps.in_flight, sizeof(struct weir_in_flight_key), sizeof(struct weir_in_flight),
			   is_of_limit, &limit);
}

int datapath_in_flight(struct datapath *dp, __u32 server, __u32 n, __u64 *taken, struct error *err)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret = map_cursor_open(&cursor, dp->maps.in_flight, sizeof(struct weir_in_flight_key),
				  sizeof(struct weir_in_flight));

	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_in_flight_key *keys = cursor.keys;
		const struct weir_in_flight *values = cursor.values;

		ret = 0;
		for (__u32 i = 0; i < cursor.n; i++) {
			__u32 limit = keys[i].limit - weir_limit_index(server, 0);

			if (limit >= n * WEIR_SERVER_LIMITS)
				continue;
			taken[limit] += weir_in_flight_taken(values[i].word);
		}
	}
	return ret ? datapath_map_failed(err, ret, "in_flight") : 0;
}

__u32 datapath_in_flight_of(struct datapath *dp, __u32 server, __u32 slot, __u32 epoch, __u64 subject)
{
	const struct weir_in_flight_key key = { .limit = weir_limit_index(server, slot),
						.epoch = epoch,
						.subject = subject };
	struct weir_in_flight seats;

	return bpf_map_lookup_elem(dp->maps.in_flight, &key, &seats) ? 0 : weir_in_flight_taken(seats.word);
}
