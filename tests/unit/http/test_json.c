/* SPDX-License-Identifier: GPL-2.0 */
#include "weir/http/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../array_size.h"

#define TEXT_MAX 512

static void name_text(const struct weir_json *j, char *out)
{
	if (j->name_length == WEIR_JSON_NAME_NONE) {
		strcpy(out, "?");
		return;
	}
	for (unsigned int i = 0; i < j->name_length; i++)
		out[i] = j->name[(j->name_length - 1 - i) / 8] >> ((j->name_length - 1 - i) % 8 * 8);
	out[j->name_length] = 0;
}

static void note(char *transcript, const struct weir_json *j, enum weir_json_event event)
{
	char *end = transcript + strlen(transcript);

	switch (event) {
	case WEIR_JSON_NAME:
		name_text(j, end);
		strcat(end, ":");
		return;
	case WEIR_JSON_OPEN:
		strcpy(end, weir_json_in_array(j) ? "[" : "{");
		return;
	case WEIR_JSON_CHARACTER:
		sprintf(end, j->code >= ' ' && j->code < 0x7f ? "%c" : "<%x>", j->code);
		return;
	case WEIR_JSON_CLOSE:
		strcpy(end, ")");
		return;
	case WEIR_JSON_STRING:
	case WEIR_JSON_STRING_END:
		strcpy(end, "'");
		return;
	case WEIR_JSON_NULL:
		strcpy(end, "0");
		return;
	case WEIR_JSON_OTHER:
		strcpy(end, "#");
		return;
	case WEIR_JSON_END:
		strcpy(end, ".");
		return;
	default:
		return;
	}
}

/* Reads until the end, or a byte that may not be there; the bytes taken are in *used. What is read from is spoilt. */
static enum weir_json_event read_text(const char *text, size_t length, char transcript[TEXT_MAX], size_t *used)
{
	enum weir_json_event event = WEIR_JSON_MORE;
	struct weir_json j, old;

	weir_json_start(&old);
	transcript[0] = 0;
	for (*used = 0; *used < length && event != WEIR_JSON_END && event != WEIR_JSON_BAD; ++*used) {
		j = old;
		memset(&old, 0xa5, sizeof(old));
		event = weir_json_byte(&j, text[*used]);
		note(transcript, &j, event);
		old = j;
	}
	return event;
}

static void test_what_is_told(void **state)
{
	static const struct {
		const char *text, *transcript;
	} cases[] = {
		{ "{}", "{." },
		{ "[]", "[." },
		{ " \t\r\n{ \t\r\n} ", "{." },
		{ "[[],{},[[]]]", "[[){)[[))." },
		{ "{\"a\":1,\"b\":\"x\"}", "{a:#b:'x'." },
		{ "{ \"a\" : 1 , \"b\" : \"x\" }", "{a:#b:'x'." },
		{ "{\"a\":{\"b\":[1,2,{\"c\":null}],\"d\":true}}", "{a:{b:[##{c:0))d:#)." },
		{ "[null,true,false,0,-1,1e+5,-0.5E-7]", "[0######." },
		{ "[1 ,2 ]", "[##." },
		{ "{\"\":\"\"}", "{:''." },
		{ "{\"0123456789abcdef\":0}", "{0123456789abcdef:#." },
		{ "{\"0123456789abcdefg\":0,\"g\":0}", "{?:#g:#." },
		{ "{\"\\u0061\\/\\\"\":0}", "{a/\":#." },
		{ "{\"\xc3\xa9\":0}", "{?:#." },
		{ "{\"\\u00e9\":0}", "{?:#." },
		{ "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "['\"\\/<8><c><a><d><9>'." },
		{ "[\"\\u0041\\u00e9\\u20AC\\u20ac\\ud83D\\ude00\\u0000\"]", "['A<e9><20ac><20ac><1f600><0>'." },
		{ "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"]", "['<e9><20ac><1f600><7f>'." },
		{ "[\"{[]}:,\"]", "['{[]}:,'." },
		{ "{} trailing", "{." },
	};
	char transcript[TEXT_MAX];
	size_t used;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(read_text(cases[i].text, strlen(cases[i].text), transcript, &used), WEIR_JSON_END);
		assert_string_equal(transcript, cases[i].transcript);
	}
}

/* The last byte of each is the first one that may not be there. */
static void test_what_is_bad(void **state)
{
	static const char *const texts[] = {
		"1",
		"\"",
		"n",
		"}",
		"]",
		",",
		"k",
		"{,",
		"{1",
		"{]",
		"[}",
		"[,",
		"[1,]",
		"[1,}",
		"[1:",
		"[1}",
		"[\"\"}",
		"{\"a\"1",
		"{\"a\",",
		"{\"a\"}",
		"{\"a\"::",
		"{\"a\":}",
		"{\"a\":,",
		"{\"a\":1]",
		"{\"a\":1,}",
		"{\"a\":1,,",
		"{\"a\":1\"",
		"{\"a\":1 1",
		"{\"a\":\"\"\"",
		"{'",
		"[x",
		"[+",
		"[.",
		"[true\"",
		"[\"\x01",
		"[\"\n",
		"{\"\x1f",
		"[\"\\x",
		"[\"\\'",
		"[\"\\\n",
		"[\"\\u00g",
		"[\"\\u\"",
		"[\"\\u00e\"",
		/* half a pair: a second one alone, a first one alone, two first ones */
		"[\"\\udc00",
		"[\"\\udfff",
		"[\"\\ud800\"",
		"[\"\\ud800x",
		"[\"\\udbff\\n",
		"[\"\\ud800\\u0041",
		"[\"\\ud800\\ud800",
		"[\"\\ud800\\ue000",
		/* not UTF-8: no first byte, no second one, too long, half a pair, too great */
		"[\"\x80",
		"[\"\xbf",
		"[\"\xf8",
		"[\"\xff",
		"[\"\xc3\"",
		"[\"\xc3\xc3",
		"[\"\xe2\x82\"",
		"[\"\xc0\x80",
		"[\"\xc1\xbf",
		"[\"\xe0\x80\x80",
		"[\"\xe0\x9f\xbf",
		"[\"\xf0\x8f\xbf\xbf",
		"[\"\xed\xa0\x80",
		"[\"\xed\xbf\xbf",
		"[\"\xf4\x90\x80\x80",
		"[\"\xf7\xbf\xbf\xbf",
	};
	char transcript[TEXT_MAX];
	size_t used;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(read_text(texts[i], strlen(texts[i]), transcript, &used), WEIR_JSON_BAD);
		assert_int_equal(used, strlen(texts[i]));
	}
}

static void test_nothing_after_the_end(void **state)
{
	struct weir_json j;

	(void)state;
	weir_json_start(&j);
	assert_int_equal(weir_json_byte(&j, '{'), WEIR_JSON_OPEN);
	assert_int_equal(weir_json_byte(&j, '}'), WEIR_JSON_END);
	assert_int_equal(weir_json_byte(&j, '\n'), WEIR_JSON_MORE);
	assert_int_equal(weir_json_byte(&j, '{'), WEIR_JSON_BAD);
}

/* Objects and arrays in turn: each is told from the other on the way down and up. */
static void test_depth(void **state)
{
	struct weir_json j, other;

	(void)state;
	weir_json_start(&j);
	for (int depth = 1; depth <= WEIR_JSON_DEPTH; depth++) {
		assert_int_equal(weir_json_byte(&j, depth % 3 ? '[' : '{'), WEIR_JSON_OPEN);
		assert_int_equal(j.depth, depth);
		for (const char *name = "\"a\":"; !(depth % 3) && *name; name++)
			weir_json_byte(&j, *name);
	}
	other = j;
	assert_int_equal(weir_json_byte(&other, '['), WEIR_JSON_BAD);
	weir_json_byte(&j, '1');
	for (int depth = WEIR_JSON_DEPTH; depth > 0; depth--) {
		other = j;
		assert_int_equal(weir_json_byte(&other, depth % 3 ? '}' : ']'), WEIR_JSON_BAD);
		assert_int_equal(weir_json_byte(&j, depth % 3 ? ']' : '}'),
				 depth > 1 ? WEIR_JSON_CLOSE : WEIR_JSON_END);
		assert_int_equal(j.depth, depth - 1);
	}
}

static size_t utf8(__u32 code, char out[5])
{
	if (code < 0x80)
		return sprintf(out, "%c", code);
	if (code < 0x800)
		return sprintf(out, "%c%c", 0xc0 | code >> 6, 0x80 | (code & 0x3f));
	if (code < 0x10000)
		return sprintf(out, "%c%c%c", 0xe0 | code >> 12, 0x80 | (code >> 6 & 0x3f), 0x80 | (code & 0x3f));
	return sprintf(out, "%c%c%c%c", 0xf0 | code >> 18, 0x80 | (code >> 12 & 0x3f), 0x80 | (code >> 6 & 0x3f),
		       0x80 | (code & 0x3f));
}

static void check_character(const char *text, size_t length, __u32 code)
{
	struct weir_json j;

	weir_json_start(&j);
	weir_json_byte(&j, '[');
	weir_json_byte(&j, '"');
	for (size_t i = 0; i + 1 < length; i++)
		assert_int_equal(weir_json_byte(&j, text[i]), WEIR_JSON_MORE);
	assert_int_equal(weir_json_byte(&j, text[length - 1]), WEIR_JSON_CHARACTER);
	assert_int_equal(j.code, code);
	assert_int_equal(weir_json_byte(&j, '"'), WEIR_JSON_STRING_END);
}

/* Each character that there is, as it is and escaped. */
static void test_every_character(void **state)
{
	char text[16];

	(void)state;
	for (__u32 code = 0; code <= 0x10ffff; code++) {
		if (code >= 0xd800 && code < 0xe000)
			continue;
		if (code >= ' ' && code != '"' && code != '\\')
			check_character(text, utf8(code, text), code);
		if (code < 0x10000)
			sprintf(text, "\\u%04x", code);
		else
			sprintf(text, "\\u%04X\\u%04X", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
		check_character(text, strlen(text), code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_told),	      cmocka_unit_test(test_what_is_bad),
		cmocka_unit_test(test_nothing_after_the_end), cmocka_unit_test(test_depth),
		cmocka_unit_test(test_every_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
