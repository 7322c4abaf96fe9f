/* SPDX-License-Identifier: GPL-2.0 */
/* The texts of the answers and the stamping of a 429's Retry-After, read back as a client would. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "datapath/answer_text.h"
#include "weir/http/ambiguity.h"
#include "weir/limit/bucket.h"

static struct weir_answer make(enum weir_answer_kind kind, unsigned int digits)
{
	struct weir_answer answer;

	assert_int_equal(weir_answer_make(NULL, kind, digits, &answer), 0);
	return answer;
}

static void test_every_byte_of_one(void **state)
{
	static const char expected[] =
		"HTTP/1.1 429 Too Many Requests\r\n"
		"Content-Type: application/json\r\n"
		"Retry-After: 37\r\n"
		"Content-Length: 197\r\n"
		"\r\n"
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
		"\"message\":\"Too many requests, please try again later.\",\"reason\":\"TooManyRequests\","
		"\"details\":{\"retryAfterSeconds\":37},\"code\":429}\n";
	struct weir_answer answer = make(WEIR_ANSWER_KEEP, 2);
	char text[WEIR_ANSWER_TEXT];

	(void)state;
	memcpy(text, answer.text, sizeof(text));
	weir_answer_stamp(text, &answer, 37);
	assert_int_equal(answer.length, strlen(expected));
	assert_string_equal(text, expected);
	assert_int_equal(answer.head_length, strstr(expected, "{") - expected);
}

static void test_a_limit_is_named(void **state)
{
	static const char expected[] =
		"HTTP/1.1 429 Too Many Requests\r\n"
		"Content-Type: application/json\r\n"
		"Retry-After: 37\r\n"
		"Weir-Limit: level/busy\r\n"
		"Content-Length: 306\r\n"
		"\r\n"
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
		"\"message\":\"weir: limit level/busy: too many requests, please try again later\","
		"\"reason\":\"TooManyRequests\",\"details\":{\"causes\":[{\"reason\":\"LimitExceeded\","
		"\"message\":\"limit level/busy: try again in 37 s\"}],\"retryAfterSeconds\":37},\"code\":429}\n";
	struct weir_answer answer;

	(void)state;
	assert_int_equal(weir_answer_make("level/busy", WEIR_ANSWER_KEEP, 2, &answer), 0);
	weir_answer_stamp(answer.text, &answer, 37);
	assert_string_equal(answer.text, expected);
	assert_int_equal(answer.length, strlen(expected));
}

static void test_every_byte_of_a_403(void **state)
{
	static const char named[] =
		"HTTP/1.1 403 Forbidden\r\n"
		"Content-Type: application/json\r\n"
		"Weir-Limit: user\r\n"
		"Content-Length: 245\r\n"
		"Connection: close\r\n"
		"\r\n"
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
		"\"message\":\"weir: limit user: this request is denied\",\"reason\":\"Forbidden\","
		"\"details\":{\"causes\":[{\"reason\":\"LimitDenies\",\"message\":\"limit user denies this request\"}]},"
		"\"code\":403}\n";
	static const char plain[] = "\"message\":\"This request is denied.\",\"reason\":\"Forbidden\",\"details\":{},";
	struct weir_answer answer;

	(void)state;
	assert_int_equal(weir_answer_make("user", WEIR_ANSWER_CLOSE, 0, &answer), 0);
	weir_answer_stamp(answer.text, &answer, 0);
	assert_string_equal(answer.text, named);
	answer = make(WEIR_ANSWER_KEEP, 0);
	assert_non_null(strstr(answer.text, plain));
	assert_null(strstr(answer.text, "eir"));
	assert_null(strstr(answer.text, "Retry-After"));
}

/* The longest name has room in each of them; a longer one, and what is no word, cannot break the head or the JSON. */
static void test_names_have_room(void **state)
{
	struct weir_refusal *refusal = calloc(1, sizeof(*refusal));
	char name[300] = "a\r\nX: \"{}";

	(void)state;
	memset(name + strlen(name), 'n', sizeof(name) - 1 - strlen(name));
	assert_int_equal(weir_refusal_make(name, refusal), 0);
	for (enum weir_answer_kind kind = 0; kind < WEIR_ANSWER_KINDS; kind++) {
		for (unsigned int digits = 0; digits <= WEIR_RETRY_DIGITS; digits++) {
			const struct weir_answer *answer = &refusal->answers[weir_answer_index(kind, digits)];
			json_t *status = json_loads(answer->text + answer->head_length, 0, NULL);
			const char *limit = strstr(answer->text, "\r\nWeir-Limit: ");

			assert_non_null(status);
			json_decref(status);
			assert_non_null(limit);
			limit += strlen("\r\nWeir-Limit: ");
			assert_int_equal(strcspn(limit, "\r"), WEIR_ANSWER_NAME - 1);
			assert_memory_equal(limit, "a__X:____nnn", 12);
		}
	}
	free(refusal);
}

static void test_close_says_so(void **state)
{
	(void)state;
	for (unsigned int digits = 1; digits <= WEIR_RETRY_DIGITS; digits++) {
		struct weir_answer keep = make(WEIR_ANSWER_KEEP, digits);
		struct weir_answer close = make(WEIR_ANSWER_CLOSE, digits);
		const char *header = strstr(close.text, "\r\nConnection: close\r\n");

		assert_null(strstr(keep.text, "Connection"));
		assert_non_null(header);
		assert_true(header < close.text + close.head_length);
		assert_int_equal(close.length, keep.length + strlen("Connection: close\r\n"));
	}
}

static void test_bad_arguments(void **state)
{
	struct weir_answer answer, untouched;

	(void)state;
	memset(&answer, 0x55, sizeof(answer));
	untouched = answer;
	assert_int_equal(weir_answer_make(NULL, WEIR_ANSWER_KINDS, 1, &answer), -EINVAL);
	assert_int_equal(weir_answer_make(NULL, WEIR_ANSWER_KEEP, WEIR_RETRY_DIGITS + 1, &answer), -EINVAL);
	assert_memory_equal(&answer, &untouched, sizeof(answer));
}

/* The number behind `name` in the head. */
static long header(const char *head, const char *name)
{
	const char *found = strstr(head, name);
	char *end;
	long value;

	assert_non_null(found);
	value = strtol(found + strlen(name), &end, 10);
	assert_memory_equal(end, "\r\n", 2);
	return value;
}

static void check_body(const char *body, size_t length, __u32 seconds)
{
	json_t *status = json_loadb(body, length, JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(status);
	assert_int_equal(body[length - 1], '\n');
	assert_string_equal(json_string_value(json_object_get(status, "reason")), "TooManyRequests");
	assert_int_equal(json_integer_value(json_object_get(status, "code")), 429);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(status, "details"), "retryAfterSeconds")),
			 seconds);
	json_decref(status);
}

static void test_every_retry_after(void **state)
{
	struct weir_answer answers[WEIR_REFUSALS];

	(void)state;
	for (enum weir_answer_kind kind = 0; kind < WEIR_ANSWER_KINDS; kind++)
		for (unsigned int digits = 1; digits <= WEIR_RETRY_DIGITS; digits++)
			answers[weir_answer_index(kind, digits)] = make(kind, digits);

	for (enum weir_answer_kind kind = 0; kind < WEIR_ANSWER_KINDS; kind++) {
		for (__u32 seconds = 1; seconds <= WEIR_RETRY_MAX_S; seconds++) {
			const struct weir_answer *answer =
				&answers[weir_answer_index(kind, weir_retry_digits(seconds))];
			/* As in BPF: words are copied, and nothing past them may be touched. */
			char *text = malloc(WEIR_ANSWER_TEXT);

			memcpy(text, answer->text, WEIR_ANSWER_TEXT);
			weir_answer_stamp(text, answer, seconds);
			assert_int_equal(strlen(text), answer->length);
			assert_memory_equal(text + answer->head_length - 4, "\r\n\r\n", 4);
			assert_ptr_equal(strstr(text, "\r\n\r\n") + 4, text + answer->head_length);
			assert_int_equal(header(text, "\r\nRetry-After: "), seconds);
			assert_int_equal(header(text, "\r\nContent-Length: "), answer->length - answer->head_length);
			check_body(text + answer->head_length, answer->length - answer->head_length, seconds);
			free(text);
		}
	}
}

/* Whatever stands in the map, nothing outside the text is written. */
static void test_wild_offsets(void **state)
{
	char *text = calloc(1, WEIR_ANSWER_TEXT);
	char *zeros = calloc(1, WEIR_ANSWER_TEXT);

	(void)state;
	for (__u32 at = WEIR_ANSWER_TEXT - WEIR_RETRY_DIGITS + 1; at <= 65535; at++) {
		struct weir_answer wild = { .digits = at, .at = { at, at, at } };

		weir_answer_stamp(text, &wild, 1234);
	}
	assert_memory_equal(text, zeros, WEIR_ANSWER_TEXT);
	for (__u32 digits = 0; digits <= 65535; digits++) {
		struct weir_answer wild = { .digits = digits, .at = { WEIR_ANSWER_TEXT - WEIR_RETRY_DIGITS } };

		weir_answer_stamp(text, &wild, 1234);
	}
	free(text);
	free(zeros);
}

static void test_every_byte_of_a_400(void **state)
{
	static const char expected[] =
		"HTTP/1.1 400 Bad Request\r\n"
		"Content-Type: application/json\r\n"
		"Content-Length: 155\r\n"
		"Connection: close\r\n"
		"\r\n"
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
		"\"message\":\"The request is ambiguous: LF without CR.\",\"reason\":\"BadRequest\",\"code\":400}\n";
	struct weir_answer answer;
	char text[WEIR_ANSWER_TEXT];

	(void)state;
	assert_int_equal(weir_rejection_make(WEIR_BARE_LF, &answer), 0);
	memcpy(text, answer.text, sizeof(text));
	weir_answer_stamp(text, &answer, 3600);
	assert_string_equal(text, expected);
	assert_int_equal(answer.length, strlen(expected));
	assert_int_equal(answer.head_length, strstr(expected, "{") - expected);
}

/* Each ambiguity has a text of its own that says its length, and nothing else has one. */
static void test_every_ambiguity(void **state)
{
	struct weir_answer answers[WEIR_REASON_COUNT] = { 0 };

	(void)state;
	for (enum weir_reason why = 0; why < WEIR_REASON_COUNT; why++) {
		struct weir_answer *answer = &answers[why];

		if (!weir_reason_is_ambiguity(why, false)) {
			assert_int_equal(weir_rejection_make(why, answer), -EINVAL);
			assert_false(weir_reason_is_ambiguity(why, true));
			continue;
		}
		assert_int_equal(weir_rejection_make(why, answer), 0);
		assert_int_equal(header(answer->text, "\r\nContent-Length: "), answer->length - answer->head_length);
		for (enum weir_reason other = 0; other < why; other++)
			assert_string_not_equal(answer->text, answers[other].text);
	}
	assert_true(weir_reason_is_ambiguity(WEIR_BARE_LF, true));
	assert_true(weir_reason_is_ambiguity(WEIR_NOT_HTTP, true));
	assert_false(weir_reason_is_ambiguity(WEIR_TLS, true));
	assert_false(weir_reason_is_ambiguity(WEIR_HTTP2, false));
	assert_false(weir_reason_is_ambiguity(WEIR_CONNECT, false));
	assert_false(weir_reason_is_ambiguity(WEIR_UPGRADE, false));
}

static void test_retry_digits(void **state)
{
	char text[16];

	(void)state;
	assert_int_equal(weir_retry_digits(0), 0);
	for (__u32 n = 1; n < 10000; n++)
		assert_int_equal(weir_retry_digits(n), snprintf(text, sizeof(text), "%u", n));
	assert_int_equal(weir_retry_digits(WEIR_RETRY_MAX_S), WEIR_RETRY_DIGITS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_of_one),   cmocka_unit_test(test_a_limit_is_named),
		cmocka_unit_test(test_every_byte_of_a_403), cmocka_unit_test(test_names_have_room),
		cmocka_unit_test(test_close_says_so),	    cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_every_retry_after),   cmocka_unit_test(test_wild_offsets),
		cmocka_unit_test(test_retry_digits),	    cmocka_unit_test(test_every_byte_of_a_400),
		cmocka_unit_test(test_every_ambiguity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
