# SPDX-License-Identifier: GPL-2.0
"""Ambiguous requests get a 400 from the kernel, in their turn, and the server gets none of them."""
import json

import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

STREAMS = {
    "not_http": b"\xef\xbb\xbfGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "bad_request_line": b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "bad_version": b"GET / HTTP/1.2\r\nHost: x\r\n\r\n",
    "bad_header": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "bare_cr": b"GET / HTTP/1.1\r\nHost: x\rX-Y: z\r\n\r\n",
    "bare_lf": b"GET / HTTP/1.1\nHost: x\n\n",
    "nul_byte": b"GET / HTTP/1.1\r\nHost: x\0\r\n\r\n",
    "folded_header": b"GET / HTTP/1.1\r\nHost: x\r\nX-Fold: a\r\n b\r\n\r\n",
    "bad_content_length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\nx",
    "length_conflict": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad_transfer_encoding": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "bad_chunk": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
}

BAD = b"GET /bad HTTP/1.1\r\nHost : x\r\n\r\n"
CHUNKED = {"Transfer_Encoding": "chunked"}


def expect_400(client, words=None, method="GET"):
    """A whole 400 and the end of the connection; words: what is wrong."""
    answer = client.read(method)
    assert answer.line == "HTTP/1.1 400 Bad Request"
    assert set(answer.fields) == {"content-type", "content-length", "connection"}
    assert (answer.fields["content-type"], answer.fields["connection"]) == ("application/json", "close")
    if method == "HEAD":
        assert answer.body == b""
    else:
        status = json.loads(answer.body)
        assert status.pop("message").startswith(f"The request is ambiguous: {words or ''}")
        assert status == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                          "reason": "BadRequest", "code": 400}
    client.expect_end()


def test_of_one_who_is_exempt(world):
    """He was let off before it was seen that his request's body is wrong: it is counted as rejected alone."""
    site = world.site()
    site.attach("--exempt-user", "boss")
    client = site.client("boss")
    client.send(client.head("/", "POST", **CHUNKED) + b"0x1\r\nx\r\n0\r\n\r\n")
    expect_400(client)
    site.check(passed=0, shed=0, rejected=1)


@pytest.mark.parametrize("program", ["nginx", "haproxy"])
def test_each_kind(world, program):
    """No request of it is in a real server's log; who comes afterwards is served."""
    place = world.loopback()
    site = world.site(place, world.real_server(program, place))
    site.attach()
    site.limit("user", burst=1)
    for data in STREAMS.values():
        client = site.client()
        client.send(data)
        expect_400(client)
    assert site.unread() == {reason: 1 for reason in STREAMS}
    good = site.client()
    good.ask("/good")
    assert good.read().body == b"/good\n"
    eventually(lambda: "/good" in site.server.targets(), "the good one is logged")
    # HAProxy logs connections that bring nothing, too.
    assert [target for _, method, target in site.server.requests() if method != "<BADREQ>"] == ["/good"]
    counts = site.weir.counts()
    assert (counts["passed"], counts["rejected"]) == (1, len(STREAMS))


@pytest.mark.parametrize("family", [4, 6])
def test_over_a_network(world, family):
    site = world.site(world.veth(family))
    site.attach()
    for method in ("GET", "HEAD"):
        client = site.client()
        client.send(client.head("/bad", method)[:-2] + b" folded\r\n\r\n")
        expect_400(client, "header continued on a second line", method)
    assert site.client().get("/good") == 200
    site.check(passed=1, shed=0, rejected=2)


def test_behind_good_ones(site):
    """In one packet: those before it are served, those behind it are not even looked at."""
    client = site.client()
    client.send(client.head("/1") + client.head("/2?delay_ms=300") + BAD + client.head("/3"))
    client.check(client.read(), "/1", last=False)
    client.check(client.read(), "/2?delay_ms=300", last=False)
    expect_400(client, "malformed header")
    assert site.server.targets() == ["/1", "/2?delay_ms=300"]
    site.check(passed=2, shed=0, rejected=1)


def test_behind_a_shed_one(site):
    site.limit("user", burst=1)
    client = site.client()
    assert client.drive(3) == [200, 429, 429]
    client.send(BAD)
    expect_400(client)
    site.check(passed=1, shed=2, rejected=1)


def test_split_head(site):
    """The server has the first part: its connection is reset."""
    client = site.client()
    client.send(BAD[:22])
    client.settle()
    client.send(BAD[22:])
    expect_400(client)
    site.check(passed=0, shed=0, rejected=1)
    assert site.client().get("/good") == 200


def test_long_head(site):
    """64 KiB of it are at the server by then."""
    client = site.client()
    client.send(client.head("/long", X_Long="l" * 70000))
    expect_400(client, "head of more than 64 KiB")
    site.check(passed=0, shed=0, rejected=1)


def test_bad_chunk_of_a_waiting_server(site):
    """The head has passed and was charged; the server waits for the rest of the body, and never gets it."""
    client = site.client()
    client.send(client.head("/upload", "POST", **CHUNKED) + b"5\r\nhello\r\n")
    client.settle()
    client.send(b"0 \r\n\r\n")
    expect_400(client, "malformed chunk")
    assert site.weir.counts()["rejected"] == 1
    assert not site.server.targets()


def test_bad_chunk_behind_its_answer(site):
    """The server has answered before it has read the body: the rest is between it and its client, and held."""
    client = site.client()
    client.ask("/early?early_ms=1000", "POST", **CHUNKED)
    client.check(client.read(), "/early?early_ms=1000")
    client.send(b"zz\r\n")
    assert client.read().status == 400
    client.expect_end()
    assert site.unread() == {"answered_early": 1}
    assert site.weir.counts()["rejected"] == 0


def test_trailers_and_extensions(world):
    """What is unusual and not ambiguous goes on as ever."""
    place = world.loopback()
    site = world.site(place, world.real_server("nginx", place))
    site.attach()
    client = site.client()
    client.send(client.head("/t", "POST", **CHUNKED) + b'5;name="a b"\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n')
    assert client.read().body == b"/t\n"
    client.ask("/after")
    assert client.read().body == b"/after\n"
    assert not site.unread()
    site.check(passed=2, shed=0)


def test_pass_mode(world):
    """The server gets what it asked for, and answers it itself."""
    place = world.loopback()
    site = world.site(place, world.real_server("nginx", place))
    site.weir.start_without_cgroup2()
    site.attach("--framing", "pass")
    client = site.client()
    client.send(STREAMS["bare_lf"])
    assert client.read().body == b"/\n"
    assert site.unread() == {"bare_lf": 1}
    assert site.weir.counts()["rejected"] == 0
    assert site.status()["framing"] == "pass"


def test_dry_run(world):
    place = world.loopback()
    site = world.site(place, world.real_server("nginx", place))
    site.weir.start_without_cgroup2()
    site.attach("--dry-run")
    client = site.client()
    client.send(STREAMS["bare_lf"])
    assert client.read().body == b"/\n"
    assert site.weir.counts()["dry_run_rejected"] == 1
    assert site.unread() == {"bare_lf": 1}


def test_after_a_restart(site):
    """The mode outlives the agent."""
    site.world.keep()
    site.weir("detach", "web")
    site.attach("--framing", "pass")
    site.weir.stop()
    site.weir.start()
    assert site.status()["framing"] == "pass"
