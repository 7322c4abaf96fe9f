/* SPDX-License-Identifier: GPL-2.0 */
/* What came of recorded requests, by what the programs have answered. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../state/server_fixture.h"
#include "base/cleanup.h"
#include "replay/private.h"

#define ASKED WEIR_EXPLAINED_ASKED
#define REFUSED (ASKED | WEIR_EXPLAINED_REFUSED)
#define OVERLOOKED (ASKED | WEIR_EXPLAINED_DRY_RUN) /* the limit is in a dry run of its own */

/* Slots. */
enum {
	TOTAL,
	USER = 2,
	SLOW = WEIR_BUILTIN_LIMITS + 17,
};

enum {
	ALICE = 11,
	BOB,
	CAROL,
	DEV = 21,
};

static const char api[] = "{\"name\":\"api\",\"listen\":[\"*:80\"],\"limits\":["
			  "{\"name\":\"user\",\"qps\":\"1\",\"burst\":1},"
			  "{\"name\":\"slow\",\"key\":\"namespace\",\"number\":17,\"qps\":\"1\",\"burst\":1}]}";
static const char web[] = "{\"name\":\"web\",\"listen\":[\"*:81\"],\"limits\":["
			  "{\"name\":\"late\",\"key\":\"user\",\"number\":17,\"qps\":\"1\",\"burst\":1}]}";

static struct replay *replay;

static int set_up(void **state)
{
	(void)state;
	replay = test_calloc(1, sizeof(*replay));
	replay->servers[0] = make_server(api);
	replay->servers[1] = make_server(web);
	replay->n_servers = 2;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tally_clear(&replay->tally);
	server_free(replay->servers[0]);
	server_free(replay->servers[1]);
	test_free(replay);
	return 0;
}

static struct replay_line line_of(const char *user)
{
	return (struct replay_line){
		.asked = true,
		.recorded = { .server = "api", .user = user, .namespace = "dev", .decision = WEIR_PASSED },
	};
}

static struct weir_explained answer_of(enum weir_reason decision)
{
	return (struct weir_explained){ .lost = WEIR_REASON_NONE, .whole = 1, .trace.decision = decision };
}

static void answer_limit(struct weir_explained *answer, __u32 slot, __u64 subject, __u32 flags)
{
	answer->limits[answer->n_limits++] =
		(struct weir_explained_limit){ .slot = slot, .subject = subject, .flags = flags };
}

static struct replayed count(const struct replay_line *line, const struct weir_explained *answer)
{
	struct replayed out = { .decided = true, .limit = "" };
	struct error err = { 0 };

	assert_int_equal(replay_count(replay, line, answer, &out, &err), 0);
	return out;
}

/* A request of a user that the limit `user` is asked about. */
static struct replayed count_user(const char *user, __u64 subject, enum weir_reason decision, __u32 flags)
{
	struct replay_line line = line_of(user);
	struct weir_explained answer = answer_of(decision);

	answer.trace.named = USER;
	answer_limit(&answer, USER, subject, flags);
	return count(&line, &answer);
}

/* wanted: members of the result. */
static void expect(const char *wanted)
{
	CLEANUP_JSON json_t *result = replay_result(replay, 10), *all = json_loads(wanted, 0, NULL);
	const char *key;
	json_t *value;

	assert_non_null(result);
	assert_non_null(all);
	json_object_foreach (all, key, value) {
		CLEANUP_FREE char *is = json_dumps(json_object_get(result, key), JSON_COMPACT | JSON_ENCODE_ANY);
		CLEANUP_FREE char *is_to_be = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

		assert_non_null(is);
		assert_string_equal(is, is_to_be);
	}
}

/* wanted: "SERVER LIMIT [SUBJECT] REQUESTS REFUSED WOULD_REFUSE, ..." */
static void expect_rows(size_t top, const char *which, const char *wanted)
{
	CLEANUP_JSON json_t *result = replay_result(replay, top);
	CLEANUP_FREE char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);
	json_t *row;

	json_array_foreach (json_object_get(result, which), i, row) {
		const char *subject = json_string_value(json_object_get(row, "subject"));

		fprintf(out, "%s%s %s ", i ? ", " : "", json_string_value(json_object_get(row, "server")),
			json_string_value(json_object_get(row, "limit")));
		fprintf(out, "%s%s%lld %lld %lld", subject ?: "", subject ? " " : "",
			json_integer_value(json_object_get(row, "requests")),
			json_integer_value(json_object_get(row, "refused")),
			json_integer_value(json_object_get(row, "would_refuse")));
	}
	fclose(out);
	assert_string_equal(text, wanted);
}

static void expect_limits(const char *wanted)
{
	expect_rows(0, "limits", wanted);
}

static void expect_subjects(size_t top, const char *wanted)
{
	expect_rows(top, "subjects", wanted);
}

/* --- who is charged */

static void test_a_limit_and_its_subject_are_charged(void **state)
{
	(void)state;
	count_user("alice", ALICE, WEIR_PASSED, ASKED);
	expect_limits("api user 1 0 0");
	expect_subjects(10, "api user alice 1 0 0");
}

static void test_each_subject_has_what_is_its_own(void **state)
{
	(void)state;
	count_user("bob", BOB, WEIR_PASSED, ASKED);
	count_user("alice", ALICE, WEIR_PASSED, ASKED);
	count_user("alice", ALICE, WEIR_PASSED, ASKED);
	expect_limits("api user 3 0 0");
	expect_subjects(10, "api user alice 2 0 0, api user bob 1 0 0");
}

static void test_a_limit_that_charges_all_alike_has_no_subjects(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_PASSED);

	(void)state;
	answer_limit(&answer, TOTAL, 0, ASKED);
	count(&line, &answer);
	expect_limits("api total 1 0 0");
	expect_subjects(10, "");
}

static void test_every_limit_that_was_asked_counts(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_PASSED);

	(void)state;
	answer_limit(&answer, SLOW, DEV, ASKED);
	answer_limit(&answer, TOTAL, 0, 0);
	answer_limit(&answer, USER, ALICE, ASKED);
	count(&line, &answer);
	expect_limits("api user 1 0 0, api slow 1 0 0");
	expect_subjects(10, "api user alice 1 0 0, api slow dev 1 0 0");
}

/* The programs answer where they have answered another request before. */
static void test_what_another_request_has_left_does_not_count(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_DRY_RUN_SHED);

	(void)state;
	answer_limit(&answer, USER, ALICE, OVERLOOKED);
	answer_limit(&answer, TOTAL, 0, OVERLOOKED);
	answer.n_limits = 1;
	assert_string_equal(count(&line, &answer).limit, "user");
	expect_limits("api user 1 0 1");
}

/* However many the programs say that there are. */
static void test_no_more_limits_count_than_there_can_be(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_SHED);

	(void)state;
	while (answer.n_limits < WEIR_MATCHES_MAX)
		answer_limit(&answer, TOTAL, 0, ASKED);
	answer.n_limits++;
	count(&line, &answer);
	expect_limits("api total 16 0 0");
}

static void test_servers_are_told_apart(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_SHED);

	(void)state;
	line.server = 1;
	answer.trace.named = SLOW;
	answer_limit(&answer, SLOW, ALICE, REFUSED);
	assert_string_equal(count(&line, &answer).limit, "late");
	expect_limits("web late 1 1 0");
	expect_subjects(10, "web late alice 1 1 0");
}

static void test_of_each_limit_the_first_subjects_are_shown(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_PASSED);

	(void)state;
	count_user("carol", CAROL, WEIR_PASSED, ASKED);
	count_user("bob", BOB, WEIR_SHED, REFUSED);
	count_user("alice", ALICE, WEIR_SHED, REFUSED);
	answer_limit(&answer, SLOW, DEV, ASKED);
	count(&line, &answer);
	expect_subjects(2, "api user alice 1 1 0, api user bob 1 1 0, api slow dev 1 0 0");
	expect_subjects(0, "");
}

/* --- refusals */

static void test_a_refusal(void **state)
{
	struct replayed out = count_user("alice", ALICE, WEIR_SHED, REFUSED);

	(void)state;
	assert_true(out.decided);
	assert_int_equal(out.decision, WEIR_SHED);
	assert_string_equal(out.limit, "user");
	expect_limits("api user 1 1 0");
	expect_subjects(10, "api user alice 1 1 0");
}

/* Of the limit, or of the whole server. */
static void test_a_dry_run_would_refuse(void **state)
{
	(void)state;
	assert_string_equal(count_user("alice", ALICE, WEIR_DRY_RUN_SHED, OVERLOOKED).limit, "user");
	assert_string_equal(count_user("alice", ALICE, WEIR_DRY_RUN_SHED, REFUSED).limit, "user");
	expect_limits("api user 2 0 2");
	expect_subjects(10, "api user alice 2 0 2");
}

static void test_what_refuses_stands_beside_what_only_would(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_SHED);

	(void)state;
	answer.trace.named = USER;
	answer_limit(&answer, USER, ALICE, REFUSED);
	answer_limit(&answer, SLOW, DEV, OVERLOOKED);
	assert_string_equal(count(&line, &answer).limit, "user");
	expect_limits("api user 1 1 0, api slow 1 0 1");
}

/* As long as the refusal says, the client would have had to wait for this one. */
static void test_of_several_the_slowest_is_named(void **state)
{
	static const enum weir_reason decisions[] = { WEIR_SHED, WEIR_DRY_RUN_SHED };
	static const __u32 slots[] = { SLOW, USER, TOTAL };
	static const char *const names[] = { "slow", "user", "total" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (size_t n = 0; n < 3; n++) {
			struct replay_line line = line_of("alice");
			struct weir_explained answer = answer_of(decisions[i]);

			answer_limit(&answer, SLOW, DEV, REFUSED);
			answer_limit(&answer, USER, ALICE, REFUSED);
			answer_limit(&answer, TOTAL, 0, REFUSED);
			answer.trace.named = slots[n];
			assert_string_equal(count(&line, &answer).limit, names[n]);
		}
	}
}

/* The programs do not say which of these is the slowest. */
static void test_of_several_in_dry_runs_of_their_own_the_first_is_named(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_DRY_RUN_SHED);

	(void)state;
	answer_limit(&answer, TOTAL, 0, ASKED);
	answer_limit(&answer, SLOW, DEV, OVERLOOKED);
	answer_limit(&answer, USER, ALICE, OVERLOOKED);
	assert_string_equal(count(&line, &answer).limit, "slow");
}

static void test_what_passes_names_no_limit(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_PASSED);
	struct replayed out;

	(void)state;
	answer_limit(&answer, USER, ALICE, ASKED);
	answer.trace.retry_s = 3;
	out = count(&line, &answer);
	assert_true(out.decided);
	assert_int_equal(out.decision, WEIR_PASSED);
	assert_null(out.limit);
	assert_int_equal(out.retry_s, 0);
}

static void test_a_refusal_says_for_how_long(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_SHED);

	(void)state;
	answer.trace.retry_s = 3;
	assert_int_equal(count(&line, &answer).retry_s, 3);
	answer.trace.decision = WEIR_DRY_RUN_SHED;
	assert_int_equal(count(&line, &answer).retry_s, 3);
}

/* --- all of them */

static void test_decisions_are_compared(void **state)
{
	(void)state;
	replay->first_ns = 2 * WEIR_NS_PER_S;
	replay->latest_ns = 5 * WEIR_NS_PER_S;
	count_user("alice", ALICE, WEIR_PASSED, ASKED);
	count_user("alice", ALICE, WEIR_PASSED, ASKED);
	count_user("alice", ALICE, WEIR_SHED, REFUSED);
	expect("{\"requests\":3,\"changed\":1,\"seconds\":3.0,"
	       "\"recorded\":{\"passed\":3,\"shed\":0,\"exempt\":0,\"dry_run_shed\":0},"
	       "\"replayed\":{\"passed\":2,\"shed\":1,\"exempt\":0,\"dry_run_shed\":0}}");
}

static void test_what_recordings_do_not_say_is_counted(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_PASSED);

	(void)state;
	line.recorded.missing[RECORDED_NO_TARGET] = true;
	line.recorded.missing[RECORDED_NO_GROUPS] = true;
	count(&line, &answer);
	line.recorded.missing[RECORDED_NO_TARGET] = false;
	count(&line, &answer);
	expect("{\"missing\":{\"target\":1,\"rest_of_target\":0,\"groups\":2}}");
}

/* It is in no count but its own. */
static void expect_undecided(struct replayed out, const char *left_out)
{
	assert_false(out.decided);
	assert_null(out.limit);
	expect("{\"requests\":0,\"changed\":0,\"limits\":[],\"subjects\":[],"
	       "\"missing\":{\"target\":0,\"rest_of_target\":0,\"groups\":0}}");
	expect(left_out);
}

static void test_what_was_not_asked_is_not_decided(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_PASSED);

	(void)state;
	answer_limit(&answer, USER, ALICE, ASKED);
	line.asked = false;
	expect_undecided(count(&line, &answer), "{\"left_out\":{\"other_servers\":0,\"rejected\":0,\"unread\":0}}");
}

static void test_what_cannot_be_read_is_not_decided(void **state)
{
	struct replay_line line = line_of("alice");
	struct weir_explained answer = answer_of(WEIR_PASSED);

	(void)state;
	answer_limit(&answer, USER, ALICE, ASKED);
	line.recorded.missing[RECORDED_NO_TARGET] = true;
	answer.lost = WEIR_BAD_HEADER;
	expect_undecided(count(&line, &answer), "{\"left_out\":{\"other_servers\":0,\"rejected\":0,\"unread\":1}}");
	answer.lost = WEIR_REASON_NONE;
	answer.whole = 0;
	expect_undecided(count(&line, &answer), "{\"left_out\":{\"other_servers\":0,\"rejected\":0,\"unread\":2}}");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_limit_and_its_subject_are_charged),
		TEST(test_each_subject_has_what_is_its_own),
		TEST(test_a_limit_that_charges_all_alike_has_no_subjects),
		TEST(test_every_limit_that_was_asked_counts),
		TEST(test_what_another_request_has_left_does_not_count),
		TEST(test_no_more_limits_count_than_there_can_be),
		TEST(test_servers_are_told_apart),
		TEST(test_of_each_limit_the_first_subjects_are_shown),
		TEST(test_a_refusal),
		TEST(test_a_dry_run_would_refuse),
		TEST(test_what_refuses_stands_beside_what_only_would),
		TEST(test_of_several_the_slowest_is_named),
		TEST(test_of_several_in_dry_runs_of_their_own_the_first_is_named),
		TEST(test_what_passes_names_no_limit),
		TEST(test_a_refusal_says_for_how_long),
		TEST(test_decisions_are_compared),
		TEST(test_what_recordings_do_not_say_is_counted),
		TEST(test_what_was_not_asked_is_not_decided),
		TEST(test_what_cannot_be_read_is_not_decided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
