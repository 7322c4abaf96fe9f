/* SPDX-License-Identifier: GPL-2.0 */
/* Ambiguous requests, packet by packet: the 400 to the client, the RST to the server, and when neither is due. */
#include "attached.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "weir/http/ambiguity.h"

static const char bad[] = "GET / HTTP/1.1\r\nHost : x\r\n\r\n";
static const char chunked[] = "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char bad_chunk[] = "5\r\nhello\r\nZZ\r\n";

static struct spec request(__u32 at, const char *text)
{
	return (struct spec){ .seq = CLIENT_NEXT + at, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = text };
}

static void passes(__u32 at, const char *text)
{
	const struct spec spec = request(at, text);

	assert_untouched(ingress, &spec);
}

static void server_says(__u32 at, __u32 acked, const char *text)
{
	assert_untouched(egress, &(struct spec){ .from_server = true,
						 .seq = SERVER_NEXT + at,
						 .ack = CLIENT_NEXT + acked,
						 .flags = ACK,
						 .text = text });
}

/* What goes on to the server is a RST behind what it has got. */
static void assert_reset(__u32 at)
{
	struct seen seen;

	packet_see(&packet, &seen);
	assert_false(seen.from_server);
	assert_int_equal(seen.flags, WEIR_TCP_RST);
	assert_int_equal(seen.seq, CLIENT_NEXT + at);
	assert_int_equal(seen.n_text, 0);
	assert_int_equal(counter(WEIR_REJECTED), 1);
	assert_int_equal(counter(WEIR_ANSWERED_CLOSE), 1);
}

/* The client asks for the answer again, which had gone out as a copy. */
static void see_answer(__u32 at, const char *text, struct seen *seen)
{
	const struct spec spec = request(at, text);

	assert_int_equal(run(ingress, &spec), PASS);
	packet_see(&packet, seen);
	assert_true(seen->from_server);
	assert_int_equal(seen->flags & (WEIR_TCP_FIN | WEIR_TCP_ACK), FIN_ACK);
	assert_int_equal(seen->ack, CLIENT_NEXT + at + strlen(text));
}

static void assert_400(const struct seen *seen, const char *words, bool body)
{
	assert_memory_equal(seen->text, "HTTP/1.1 400 Bad Request\r\n", 26);
	assert_non_null(memmem(seen->text, seen->n_text, "\r\nConnection: close\r\n", 21));
	if (body) {
		assert_non_null(memmem(seen->text, seen->n_text, words, strlen(words)));
		assert_memory_equal(seen->text + seen->n_text - 12, "\"code\":400}\n", 12);
	} else {
		assert_memory_equal(seen->text + seen->n_text - 4, "\r\n\r\n", 4);
	}
}

struct ambiguous {
	const char *text;
	size_t n_text;
	enum weir_reason why;
	const char *words;
};

/* Charged to nobody, exempt from nothing, answered with its own 400. */
static void test_each_ambiguity(void **state)
{
	static const struct ambiguous cases[] = {
		{ "\xef\xbb\xbfGET / HTTP/1.1\r\n\r\n", 0, WEIR_NOT_HTTP, "no method" }, /* a byte order mark */
		{ " GET / HTTP/1.1\r\n\r\n", 0, WEIR_NOT_HTTP, "no method" },
		{ "\x01\x02\x03", 0, WEIR_NOT_HTTP, "no method" },
		{ "GET\r\n\r\n", 0, WEIR_BAD_REQUEST_LINE, "malformed request line" },
		{ "GET /healthz HTTP/1.2\r\n\r\n", 0, WEIR_BAD_VERSION, "neither" },
		{ "GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n", 0, WEIR_BAD_HEADER, "malformed header" },
		{ "GET / HTTP/1.1\r\nX: 1\rY: 2\r\n\r\n", 0, WEIR_BARE_CR, "CR without LF" },
		{ "GET / HTTP/1.1\nHost: x\n\n", 0, WEIR_BARE_LF, "LF without CR" },
		{ "\nGET / HTTP/1.1\r\n\r\n", 0, WEIR_BARE_LF, "LF without CR" },
		{ "GET / HTTP/1.1\r\nX: \0\r\n\r\n", 24, WEIR_NUL_BYTE, "NUL" },
		{ "GET / HTTP/1.1\r\nX: 1\r\n 2\r\n\r\n", 0, WEIR_FOLDED_HEADER, "second line" },
		{ "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 0, WEIR_BAD_CONTENT_LENGTH, "not a number" },
		{ "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 0, WEIR_LENGTH_CONFLICT,
		  "told twice" },
		{ "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 0, WEIR_BAD_TRANSFER_ENCODING,
		  "but for chunked" },
		{ "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 0, WEIR_BAD_CHUNK, "malformed chunk" },
	};

	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "0", 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ambiguous *c = &cases[i];
		struct spec spec = request(0, c->text);
		__u64 before = counter(c->why);
		struct seen seen;

		spec.n_text = c->n_text;
		connect_ends(i % 2);
		spec.ipv6 = i % 2;
		assert_int_equal(run(ingress, &spec), PASS);
		packet_see(&packet, &seen);
		assert_int_equal(seen.flags, WEIR_TCP_RST);
		assert_int_equal(counter(c->why), before + 1);
		assert_int_equal(counter(WEIR_REJECTED), i + 1);
		assert_int_equal(run(ingress, &spec), PASS);
		packet_see(&packet, &seen);
		assert_400(&seen, c->words, true);
	}
	assert_int_equal(counter(WEIR_PASSED) + counter(WEIR_SHED) + counter(WEIR_EXEMPT), 0);
	connect_ends(false);
	passes(0, get_a); /* the token is still there */
}

static void test_head_gets_no_body(void **state)
{
	static const char head[] = "HEAD / HTTP/1.1\r\nHost : x\r\n\r\n";
	const struct spec spec = request(0, head);
	struct seen seen;

	(void)state;
	connect_ends(false);
	assert_int_equal(run(ingress, &spec), PASS);
	assert_reset(0);
	see_answer(0, head, &seen);
	assert_400(&seen, NULL, false);
}

/* What begins like another protocol is let be at the very start, and nowhere else. */
static void test_other_protocols(void **state)
{
	static const char tls[] = "\x16\x03\x01\x02";
	const struct spec spec = request(strlen(get_a), tls);

	(void)state;
	connect_ends(false);
	passes(0, tls);
	connect_ends(false);
	passes(0, get_a);
	assert_int_equal(run(ingress, &spec), DROP); /* its turn has not come */
	assert_int_equal(counter(WEIR_PIPELINED), 1);
	assert_int_equal(counter(WEIR_TLS), 1);
	connect_ends(false);
	passes(0, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	assert_int_equal(counter(WEIR_HTTP2), 1);
	assert_int_equal(counter(WEIR_REJECTED), 0);
}

/* The good one before it goes on alone; the ambiguous one is answered when it has had its answer. */
static void test_behind_another(void **state)
{
	struct spec spec;
	struct seen seen;
	char both[256];

	(void)state;
	snprintf(both, sizeof(both), "%s%s", get_a, bad);
	connect_ends(false);
	spec = request(0, both);
	assert_int_equal(run(ingress, &spec), PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.n_text, strlen(get_a));
	assert_memory_equal(seen.text, get_a, strlen(get_a));
	assert_int_equal(counter(WEIR_PIPELINED), 1);
	server_says(0, strlen(get_a), ok);
	spec = request(strlen(get_a), bad);
	spec.ack += strlen(ok);
	assert_int_equal(run(ingress, &spec), PASS);
	assert_reset(strlen(get_a));
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(counter(WEIR_BAD_HEADER), 1);
}

/* The server has the first part: it gets no more of it. */
static void test_split_head(void **state)
{
	const struct spec rest = request(18, bad + 18), again = request(0, bad);
	struct seen seen;
	char part[32];

	(void)state;
	snprintf(part, sizeof(part), "%.18s", bad);
	connect_ends(false);
	passes(0, part);
	assert_int_equal(run(ingress, &rest), DROP); /* before the server has acknowledged the first part */
	assert_int_equal(run(ingress, &again), PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.n_text, 18); /* the server may have acknowledged it in vain */
	server_says(0, 18, NULL);
	assert_int_equal(run(ingress, &rest), PASS);
	assert_reset(18);
	see_answer(18, bad + 18, &seen);
	assert_400(&seen, "malformed header", true);
}

/* Head and bad chunk in one packet: nothing of it goes on, and nothing is charged. */
static void test_bad_chunk_with_its_head(void **state)
{
	struct spec spec;
	char text[256];

	(void)state;
	limit(WEIR_BUILTIN_USER, "0", 1);
	snprintf(text, sizeof(text), "%s%s", chunked, bad_chunk);
	connect_ends(false);
	spec = request(0, text);
	assert_int_equal(run(ingress, &spec), PASS);
	assert_reset(0);
	assert_int_equal(counter(WEIR_PASSED), 0);
	connect_ends(false);
	passes(0, get_a);
}

static void begin_body(void)
{
	connect_ends(false);
	passes(0, chunked);
	server_says(0, strlen(chunked), NULL);
}

/* The server has not begun to answer: the 400 is said in its stead. */
static void test_bad_chunk_later(void **state)
{
	const struct spec spec = request(strlen(chunked), bad_chunk);
	struct seen seen;

	(void)state;
	begin_body();
	server_says(0, strlen(chunked), "HTTP/1.1 100 Continue\r\n\r\n");
	assert_int_equal(run(ingress, &spec), DROP); /* the client has not acknowledged the interim answer */
	begin_body();
	assert_int_equal(run(ingress, &spec), PASS);
	assert_reset(strlen(chunked));
	see_answer(strlen(chunked), bad_chunk, &seen);
	assert_400(&seen, "malformed chunk", true);
	assert_int_equal(counter(WEIR_PASSED), 2);
}

/* Its answer has begun: no second one is put into it, and nobody waits for its end. */
static void answer_has_begun(const char *answer)
{
	struct spec spec = request(strlen(chunked), bad_chunk);
	struct seen seen;

	begin_body();
	server_says(0, strlen(chunked), answer);
	spec.ack += strlen(answer);
	assert_int_equal(run(ingress, &spec), PASS);
	assert_reset(strlen(chunked));
	see_answer(strlen(chunked), bad_chunk, &seen);
	assert_int_equal(seen.n_text, 0);
	assert_int_equal(seen.seq, SERVER_NEXT + strlen(answer));
}

static void test_bad_chunk_in_an_answer(void **state)
{
	(void)state;
	answer_has_begun("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
}

/* The server has answered before the body's end, and may take the rest for something else: it is not read any more. */
static void test_bad_chunk_behind_its_answer(void **state)
{
	(void)state;
	begin_body();
	server_says(0, strlen(chunked), "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
	passes(strlen(chunked), bad_chunk);
	assert_int_equal(counter(WEIR_ANSWERED_EARLY), 1);
	assert_int_equal(counter(WEIR_REJECTED), 0);
}

static void answered(const char *body, __u32 acked, bool early)
{
	static const char post[] = "POST /x HTTP/1.1\r\nContent-Length: 10\r\n\r\n";
	__u64 before = counter(WEIR_ANSWERED_EARLY);
	char text[128];

	snprintf(text, sizeof(text), "%s%s", post, body);
	connect_ends(false);
	passes(0, text);
	server_says(0, strlen(post) + acked, ok);
	assert_int_equal(counter(WEIR_ANSWERED_EARLY) - before, early);
}

/* What the server has not acknowledged, it had not got when it answered: up to the last byte. */
static void test_answers_before_the_end(void **state)
{
	(void)state;
	answered("", 0, true);
	answered("123456789", 9, true);
	answered("1234567890", 0, true);
	answered("1234567890", 9, true);
	answered("1234567890", 10, false);
	answered("1234567890GET /y HTTP/1.1\r\n", 10, false);
}

static void with_flags(__u32 flags)
{
	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | flags, &error));
	connect_ends(false);
	passes(0, bad);
	passes(strlen(bad), get_a); /* and what follows is not read */
	assert_int_equal(counter(WEIR_REJECTED), 0);
	assert_int_equal(counter(WEIR_PASSED), 0);
	assert_int_equal(counter(WEIR_BAD_HEADER), 1);
}

static void test_pass_mode(void **state)
{
	(void)state;
	with_flags(WEIR_SERVER_PASS_AMBIGUOUS);
}

static void test_paused(void **state)
{
	(void)state;
	with_flags(WEIR_SERVER_PAUSED);
}

static void test_dry_run(void **state)
{
	(void)state;
	with_flags(WEIR_SERVER_DRY_RUN);
	assert_int_equal(counter(WEIR_DRY_RUN_REJECTED), 1);
}

static struct spec fin(__u32 at, const char *text)
{
	struct spec spec = request(at, text);

	spec.flags |= WEIR_TCP_FIN;
	return spec;
}

/* Nobody serves it, and nobody is charged; the client reads why. */
static void test_head_that_the_end_cuts(void **state)
{
	static const char head[] = "GET /api/v1/namespaces/a/pods HTTP/1.1\r\nHost: x\r\n";
	const struct spec whole = fin(0, head), bare = fin(strlen(head), "");
	struct seen seen;

	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "0", 1);
	connect_ends(false);
	assert_int_equal(run(ingress, &whole), PASS);
	assert_reset(0);

	connect_ends(false);
	passes(0, head);
	assert_int_equal(run(ingress, &bare), DROP); /* before the server has acknowledged the first part */
	server_says(0, strlen(head), NULL);
	assert_int_equal(run(ingress, &bare), PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.flags, WEIR_TCP_RST);
	assert_int_equal(seen.seq, CLIENT_NEXT + strlen(head));
	assert_int_equal(run(ingress, &bare), PASS);
	packet_see(&packet, &seen);
	assert_400(&seen, "head that ends with the connection", true);
	assert_int_equal(counter(WEIR_HEAD_CUT), 2);
	assert_int_equal(counter(WEIR_REJECTED), 2);
	connect_ends(false);
	passes(0, get_a); /* the token is still there */
}

/* The server may have acknowledged what comes again with the FIN, in vain: it gets that once more, and no FIN. */
static void test_end_with_what_was_passed(void **state)
{
	const struct spec part = fin(0, "GET /x");
	struct seen seen;

	(void)state;
	connect_ends(false);
	passes(0, "GET /x");
	assert_int_equal(run(ingress, &part), PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.n_text, 6);
	assert_int_equal(seen.flags & WEIR_TCP_FIN, 0);
}

/* A client that ends between two requests, or in a body, or behind empty lines, ends as it likes. */
static void test_other_ends(void **state)
{
	static const char *const texts[] = { "",
					     "\r\n",
					     "\r",
					     "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
					     "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhell",
					     "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe" };
	struct spec spec;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		for (int apart = 0; apart < 2; apart++) {
			connect_ends(false);
			if (apart && texts[i][0])
				passes(0, texts[i]);
			spec = apart ? fin(strlen(texts[i]), "") : fin(0, texts[i]);
			assert_untouched(ingress, &spec);
		}
	}
	assert_int_equal(counter(WEIR_HEAD_CUT), 0);
}

/* Bytes that are passed and never come to the server do not stand between it and a FIN in their place. */
static void test_end_in_what_was_read(void **state)
{
	const struct spec spec = fin(16, "");

	(void)state;
	connect_ends(false);
	passes(0, get_a);
	server_says(0, 16, NULL);
	assert_int_equal(run(ingress, &spec), DROP);
	assert_int_equal(counter(WEIR_UNACCEPTABLE), 1);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(each_ambiguity),
		TEST(head_gets_no_body),
		TEST(other_protocols),
		TEST(behind_another),
		TEST(split_head),
		TEST(bad_chunk_with_its_head),
		TEST(bad_chunk_later),
		TEST(bad_chunk_in_an_answer),
		TEST(bad_chunk_behind_its_answer),
		TEST(answers_before_the_end),
		TEST(head_that_the_end_cuts),
		TEST(end_with_what_was_passed),
		TEST(other_ends),
		TEST(end_in_what_was_read),
		TEST(pass_mode),
		TEST(paused),
		TEST(dry_run),
	};

	return cmocka_run_group_tests_name("reject", tests, attached_open, attached_close);
}
