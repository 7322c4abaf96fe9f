/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection's seats (weir/conn/seats.h) while two packets of its client's are decided at once and its server answers:
 * what is counted for each subject is what the connection and the drafts have, at every moment, and nothing at the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../random.h"
#include "weir/conn/conn.h"

#define SUBJECTS 12
#define ACTORS 2
#define REQUESTS 4
#define ROUNDS 200000

/* A packet between begin and commit. */
struct actor {
	bool busy;
	__u32 version, first, n;
	__u32 subject[REQUESTS], wanted[REQUESTS];
	struct weir_seats_draft draft[WEIR_SEAT_SLOTS];
};

struct scene {
	struct random random;
	struct weir_conn conn;
	struct weir_busy busy;
	__s64 counted[SUBJECTS];					   /* the map in_flight */
	__u32 subject[WEIR_OUTSTANDING_MAX], wanted[WEIR_OUTSTANDING_MAX]; /* of outstanding requests */
	struct actor actor[ACTORS];
	unsigned int committed, contended, lost;
};

static void check_unused(const struct actor *a)
{
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		assert_false(weir_draft_used(&a->draft[i]));
}

static void begin(struct scene *s, struct actor *a)
{
	a->busy = true;
	a->version = s->conn.version;
	a->first = s->conn.requests;
	a->n = 0;
	weir_conn_draft_seats(&s->busy, a->draft);
	check_unused(a);
}

static struct weir_seats_draft *slot_of(struct actor *a, const struct weir_in_flight_key *key)
{
	struct weir_seats_draft *free = NULL;

	for (int i = 0; i < WEIR_SEAT_SLOTS; i++) {
		if (weir_seats_are_of(&a->draft[i].now, key))
			return &a->draft[i];
		if (!a->draft[i].now.taken)
			free = &a->draft[i];
	}
	return free;
}

/* One more request of the packet; at times another limit refuses it in the end. */
static void decide(struct scene *s, struct actor *a)
{
	struct weir_in_flight_key key = { .subject = random_below(&s->random, SUBJECTS) };
	__u32 wanted = 1 + random_below(&s->random, 3), missing;
	struct weir_seats_draft *d;

	if (a->n == REQUESTS || a->first + a->n - s->conn.responses >= WEIR_OUTSTANDING_MAX - 1)
		return;
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		weir_draft_request(&a->draft[i]);
	d = slot_of(a, &key);
	if (!d)
		return;
	missing = wanted > d->now.taken ? wanted - d->now.taken : 0;
	s->counted[key.subject] += missing;
	weir_draft_take(d, &key, missing, a->first + a->n + 1);
	if (random_chance(&s->random, 200)) {
		for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
			s->counted[a->draft[i].now.key.subject] -= weir_draft_undo_request(&a->draft[i]);
		return;
	}
	a->subject[a->n] = key.subject;
	a->wanted[a->n++] = wanted;
}

static void undo(struct scene *s, struct actor *a)
{
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		s->counted[a->draft[i].now.key.subject] -= weir_draft_undo(&a->draft[i]);
	check_unused(a);
}

static void commit(struct scene *s, struct actor *a)
{
	struct weir_conn *c = &s->conn;
	bool moved = c->version != a->version, lost = weir_conn_lost_seats(c, &s->busy, a->draft);

	a->busy = false;
	if (moved || lost) {
		s->contended++;
		s->lost += lost && !moved;
		undo(s, a);
		undo(s, a); /* what has gone back once does not go back again */
		return;
	}
	weir_conn_commit_seats(c, &s->busy, a->draft);
	for (__u32 i = 0; i < a->n; i++) {
		s->subject[c->requests % WEIR_OUTSTANDING_MAX] = a->subject[i];
		s->wanted[c->requests++ % WEIR_OUTSTANDING_MAX] = a->wanted[i];
	}
	c->version++;
	s->committed++;
}

static void answer(struct scene *s)
{
	struct weir_seats out[WEIR_SEAT_SLOTS];

	if (s->conn.requests == s->conn.responses)
		return;
	s->conn.responses++;
	weir_conn_take_out_seats(&s->conn, &s->busy, out);
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		s->counted[out[i].key.subject % SUBJECTS] -= out[i].taken;
}

static __u32 seats_of(const struct weir_busy *busy, __u32 subject)
{
	__u32 n = 0;

	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		n += busy->seats[i].key.subject == subject ? busy->seats[i].taken : 0;
	return n;
}

static void check(const struct scene *s)
{
	__s64 owned[SUBJECTS] = {};

	for (int i = 0; i < WEIR_SEAT_SLOTS; i++) {
		owned[s->busy.seats[i].key.subject] += s->busy.seats[i].taken;
		for (int k = 0; k < ACTORS; k++) {
			const struct weir_seats_draft *d = &s->actor[k].draft[i];

			owned[d->now.key.subject] += s->actor[k].busy ? d->now.taken - d->had : 0;
		}
	}
	for (int i = 0; i < SUBJECTS; i++)
		assert_int_equal(s->counted[i], owned[i]);
	for (__u32 i = s->conn.responses; i != s->conn.requests; i++)
		assert_true(seats_of(&s->busy, s->subject[i % WEIR_OUTSTANDING_MAX]) >=
			    s->wanted[i % WEIR_OUTSTANDING_MAX]);
	assert_int_equal(weir_conn_has_seats(&s->conn), s->conn.requests != s->conn.responses);
}

static void test_two_packets_and_a_server(void **state)
{
	static struct scene s;

	(void)state;
	s.random = (struct random){ 12 };
	for (int i = 0; i < ROUNDS; i++) {
		struct actor *a = &s.actor[random_below(&s.random, ACTORS)];

		if (random_chance(&s.random, 300))
			answer(&s);
		else if (!a->busy)
			begin(&s, a);
		else if (random_chance(&s.random, 600))
			decide(&s, a);
		else
			commit(&s, a);
		check(&s);
	}
	assert_true(s.committed > 10000 && s.contended > 10000 && s.lost > 500);
	for (int k = 0; k < ACTORS; k++)
		undo(&s, &s.actor[k]);
	while (s.conn.requests != s.conn.responses)
		answer(&s);
	for (int i = 0; i < SUBJECTS; i++)
		assert_int_equal(s.counted[i], 0);
}

/* Its entry is given up while a packet is being decided: the packet's seats go back, and the entry gets none. */
static void test_forgotten_meanwhile(void **state)
{
	static struct scene s;
	struct actor *a = &s.actor[0];

	(void)state;
	s.random = (struct random){ 3 };
	begin(&s, a);
	while (a->n < 2)
		decide(&s, a);
	s.conn.id = WEIR_CONN_FORGOTTEN;
	commit(&s, a);
	assert_int_equal(s.contended, 1);
	assert_int_equal(s.conn.requests, 0);
	for (int i = 0; i < SUBJECTS; i++)
		assert_int_equal(s.counted[i], 0);
}

/* No limit has the seats of another one, nor those of what was in its place before. */
static void test_whose_they_are(void **state)
{
	const struct weir_in_flight_key key = { 1, 2, 3 }, others[] = { { 2, 2, 3 }, { 1, 3, 3 }, { 1, 2, 4 } };
	struct weir_seats s = { .key = key, .taken = 1 };

	(void)state;
	assert_true(weir_seats_are_of(&s, &key));
	for (int i = 0; i < 3; i++)
		assert_false(weir_seats_are_of(&s, &others[i]));
	s.taken = 0;
	assert_false(weir_seats_are_of(&s, &key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_packets_and_a_server),
		cmocka_unit_test(test_forgotten_meanwhile),
		cmocka_unit_test(test_whose_they_are),
	};

	return cmocka_run_group_tests_name("seats", tests, NULL, NULL);
}
