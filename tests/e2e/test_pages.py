# SPDX-License-Identifier: GPL-2.0
"""
A client on the server's own host sends pages that it can still write to, by sendfile(), splice() or MSG_ZEROCOPY, and changes
them when weir has read them. The server reads what weir has read.
"""
import contextlib
import re
import time

import pytest

from lib.pages import Pages, Patient, Turncoat, filled, many, retransmissions
from lib.process import eventually
from lib.ring import RingSender

pytestmark = pytest.mark.together

SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
TARGET = re.compile(rb"GET (\S+)")
PAGE = 4096
PAYLOAD = 1 << 20
TIMES = 300
ROUNDS, TRIES, SOON_S = 100, 200, 0.01
FEW = 200  # segments of 3 MiB that come again, for whatever reason: a packet of 64 KiB that is lost is 45
BODY = 40 * 1024
LAST_READ = {
    "a body that is not believed": (["--bodies", "unread"], b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % BODY),
    "an ambiguous head": (["--framing", "pass"], b"GET / HTTP/1.1\nHost: x\n\n"),
    "CONNECT": ([], b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"),
    "what begins like HTTP2": ([], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "what begins like TLS": ([], bytes.fromhex("16030140000100004603035b")),
}


@pytest.fixture(params=[("loopback", 4), ("veth", 4), ("veth", 6)], ids=["loopback", "veth", "veth6"])
def place(world, request):
    return world.place(*request.param)


@pytest.fixture
def site(world, place):
    """A patient server, not attached yet."""
    server = Patient(place, world.port())
    world.at_end(server.close)
    return world.site(place, server)


def turncoat(site):
    client = Turncoat(site.place, site.server)
    site.world.at_end(client.close)
    return client


@pytest.mark.parametrize("how", ["sendfile", "splice", "zerocopy"])
def test_request(site, how):
    """MSG_ZEROCOPY alone does not do it: the kernel makes a copy behind tc at the latest."""
    site.attach()
    client = turncoat(site)
    for i in range(2):
        shown = filled(f"/shown/{i}", 1000)
        assert client.show(shown, many(len(shown)), how) == shown
        client.hear()
    site.check(passed=2, shed=0)


def behind_body():
    body = 60 * 1024
    shown = filled("/body", 200, "POST", f"Content-Length: {body}\r\n") + b"b" * body
    return shown + filled("/shown", 1000), shown + many(1000), 2


def behind_page():
    """The first page is as it was."""
    shown = filled("/shown", 3 * PAGE)
    return shown, shown[:PAGE] + b"\r\n\r\n" + many(2 * PAGE - 4), 1


def long_head():
    shown = filled("/shown", 6000)
    return shown, many(len(shown)), 1


def long_lines():
    shown = filled("/shown", 6000, more="".join(f"X-Line-{i}: {'l' * 1000}\r\n" for i in range(4)))
    return shown, many(len(shown)), 1


def pipelined():
    shown = b"".join(filled(f"/shown/{i}", 1500) for i in range(4))
    return shown, many(len(shown)), 4


def other_targets():
    """As many, as long: others."""
    shown = b"".join(filled(f"/shown/{i}", 1500) for i in range(4))
    return shown, shown.replace(b"/shown", b"/other"), 4


@pytest.mark.parametrize("shape", [long_head, long_lines, behind_page, pipelined, other_targets, behind_body])
def test_long(site, shape):
    site.attach()
    client = turncoat(site)
    shown, hidden, n = shape()
    assert client.show(shown, hidden) == shown
    client.hear(n)
    site.check(passed=n, shed=0)


def test_head_in_parts(site):
    """The first part is changed when weir has read the second one, too."""
    site.attach()
    client = turncoat(site)
    shown = filled("/shown", 2 * PAGE)
    client.pages.write(shown)
    client.pages.send(client.socket, PAGE)
    client.settle()
    client.send(shown[PAGE:])
    client.settle()
    client.pages.write(many(PAGE))
    assert client.server.take(2 * PAGE) == shown
    client.hear()
    site.check(passed=1, shed=0)


def test_switched_protocols(site):
    """Held by lines: a packet without one costs a token, and others a token for each request."""
    site.attach("--hold", "drop")
    client = turncoat(site)
    client.ask("/switch", Connection="Upgrade", Upgrade="x")
    client.server.take(len(client.head("/switch", Connection="Upgrade", Upgrade="x")))
    client.server.answer(what=SWITCHING)
    assert client.stream.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    eventually(lambda: site.unread() == {"upgrade": 1}, "it is not read on")
    shown = b"x" * 1000
    assert client.show(shown, many(len(shown))) == shown
    assert site.status()["records_passed"] == 1


@pytest.mark.parametrize("options, head", LAST_READ.values(), ids=LAST_READ)
def test_rest_of_the_packet_that_is_read_last(site, options, head):
    """It is read up to where the connection is not read any more. What stands behind that is held."""
    site.attach("--hold", "drop", *options)
    shown, hidden = head + b"x" * BODY, head + many(BODY)
    assert turncoat(site).show(shown, hidden) == shown


def record(kind, length):
    """Of TLS."""
    return bytes([kind, 3, 3]) + length.to_bytes(2, "big") + b"r" * length


def frame(kind, payload=b"", stream=0):
    """Of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + stream.to_bytes(4, "big") + payload


SETTINGS, WINDOW_UPDATE, HEADERS = 4, 8, 1
HANDSHAKE, APPLICATION = 22, 23
HELD = {  # how it begins, how the server answers, what is shown, and what for
    "tls": (record(HANDSHAKE, 200), record(HANDSHAKE, 100), record(HANDSHAKE, 995), record(APPLICATION, 995)),
    "http2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS), frame(SETTINGS), frame(WINDOW_UPDATE, b"\0\0\1\0") * 19,
              frame(HEADERS, b"\x82\x84\x86\x41", 1) * 19),
}


@pytest.mark.parametrize("kind", HELD)
def test_held(site, kind):
    """Its heads say what it costs: a record of a handshake costs nothing, and one of application data is a request."""
    begin, answer, shown, hidden = HELD[kind]
    site.attach("--hold", "drop")
    client = turncoat(site)
    client.send(begin)
    client.server.take(len(begin))
    client.server.answer(what=answer)
    eventually(lambda: site.unread() == {kind: 1}, "it is held")
    assert client.show(shown, hidden) == shown


def test_open_before_attach(site):
    client = turncoat(site)
    shown = filled("/before", 1000)
    client.send(shown)
    client.server.take(len(shown))
    client.hear()
    client.server.forget()
    site.attach()
    for i in range(2):
        shown = filled(f"/shown/{i}", 1000)
        assert client.show(shown, many(len(shown))) == shown
        client.hear()
    assert site.unread() == {"mid_stream": 1}
    site.check(passed=2, shed=0)


@pytest.mark.parametrize("how", ["sendfile", "zerocopy"])
def test_flipped_all_the_time(site, how):
    """Also while weir reads it: one of two targets is charged, and the server gets that one."""
    site.attach()
    client, trace, length = turncoat(site), site.world.trace(), 1000
    pages = client.pages
    pages.write(filled("/a/0000", length))
    with pages.flipped(len("GET /")):
        for i in range(TIMES):
            pages.write(b"%04d" % i, len("GET /a/"))
            pages.send(client.socket, length, how)
            time.sleep(0.001)
            client.server.take(length)
            client.hear()
    seen = [told["target"].encode() for told in trace.end()]
    got = TARGET.findall(client.server.taken)
    assert len(seen) == len(got) == TIMES
    assert sum(one != other for one, other in zip(seen, got)) == 0
    site.check(passed=TIMES, shed=0)


@pytest.mark.parametrize("how", ["sendfile", "zerocopy", "send"])
def test_uploads_are_whole(world, place, how):
    """And nothing of them comes again and again."""
    site = world.site(place)
    site.attach()
    client, pages = site.client(), Pages(2 * PAYLOAD)
    world.at_end(pages.close)
    body = bytes(range(251)) * (PAYLOAD // 251)
    whole = client.head("/upload", "POST", Content_Length=len(body)) + body
    pages.write(whole)
    for _ in range(3):
        if how == "send":
            client.send(whole)
        else:
            pages.send(client.socket, len(whole), how)
        assert client.check(client.read(), "/upload") == 200
    assert [asked.body == body for asked in site.server.requests] == [True] * 3
    assert retransmissions(client.socket) <= FEW
    site.check(passed=3, shed=0)


def got_by_insisting(client, server, data):
    """Sends it until the server has it, whose number is another one half of the time."""
    for _ in range(TRIES):
        client.show(data)
        with contextlib.suppress(TimeoutError):
            return server.take(len(data), SOON_S)
    return None


def test_headers_in_a_ring(world):
    """
    Who may send raw frames changes their headers, too: a segment has the number of old bytes, of which nothing is read, or that of
    new ones, 65,535 apart, so that the checksum is the same. weir takes no new one for an old one.
    """
    place = world.place("veth", 4)
    server = Patient(place, world.port())
    world.at_end(server.close)
    site = world.site(place, server)
    site.attach()
    for device in ("all", "lo"):
        world.setting(place.server_ns, f"net.ipv4.conf.{device}.rp_filter", 0)
    client = RingSender(place, server.port)
    world.at_end(client.close)
    client.open()
    old = filled("/old", 1000, "POST", "Content-Length: 70000\r\n") + b"b" * 70000
    for at in range(0, len(old), 1000):
        client.show(old[at:at + 1000])
        client.next += len(server.take(len(old[at:at + 1000])))
    server.answer()
    client.listen()
    trace = world.trace()
    with client.flipping():
        for i in range(ROUNDS):
            new = filled(f"/new/{i}", 1000)
            client.flip(client.next, client.next - 0xffff)
            assert got_by_insisting(client, server, new) == new
            client.next += len(new)
            server.answer()
            client.listen(SOON_S)
    seen = {told["target"] for told in trace.end()}
    assert [i for i in range(ROUNDS) if f"/new/{i}" not in seen] == []
