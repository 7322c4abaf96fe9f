# SPDX-License-Identifier: GPL-2.0
"""PROXY protocol preambles in front of requests: whom they name is charged, where their sender may say so."""
import collections

import pytest

from lib.balancer import SIGNATURE, Balanced, PatientServer, PatientTlsServer, binary, haproxy, line
from lib.client import Client
from lib.process import eventually
from lib.tls import TlsClient
from test_identity import counted

pytestmark = pytest.mark.together


def subject(address):
    return f"{address.removesuffix('1')}/64" if ":" in address else address


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("mode,send", [("http", "send-proxy"), ("http", "send-proxy-v2"), ("tcp", "send-proxy"),
                                       ("tcp", "send-proxy-v2 proxy-v2-options unique-id")])
def test_each_client_has_its_own_limit(world, family, mode, send):
    balanced = Balanced(world, family, mode, send)
    balanced.attach()
    site = balanced.site
    site.limit("user", burst=5)
    noisy, quiet = balanced.client_address(2), balanced.client_address(3)
    answers = collections.defaultdict(list)
    for _ in range(2):
        for address, n in (noisy, 8), (quiet, 2):
            client = Client(balanced.front, balanced.balancer.port, source=(address, 0))
            answers[address] += client.drive(n)
            client.close()
    assert answers == {noisy: [200] * 5 + [429] * 11, quiet: [200] * 4}
    site.check(passed=9, shed=11)
    assert balanced.addresses() == [noisy] * 5 + [quiet] * 2 + [quiet] * 2
    top = {row["subject"]: (row["passed"], row["shed"]) for row in site.status()["top"]}
    assert top == {subject(noisy): (5, 11)}
    assert counted(site, anonymous=20) == {}


@pytest.fixture
def balanced(world):
    balanced = Balanced(world)
    balanced.attach()
    return balanced


def connect(balanced, preamble):
    """The balancer's own connection."""
    client = balanced.site.client()
    client.send(preamble)
    return client


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1"])
@pytest.mark.parametrize("version", [line, binary])
def test_a_byte_at_a_time(world, version, address):
    """Both preamble and request."""
    place = world.veth()
    server = PatientServer(place.server_ns, place.address)
    world.at_end(server.close)
    site = world.site(place, server)
    site.attach("--trusted-proxy", "192.0.2.99", "--proxy-protocol", place.client_address)
    site.limit("user", burst=1)
    client = site.client()
    for byte in version(address) + client.head("/first"):
        client.send(bytes([byte]))
        client.settle()
    assert client.check(client.read(), "/first") == 200
    assert client.drive(3) == [429] * 3
    (row,) = site.status()["top"]
    assert (row["subject"], row["passed"], row["shed"]) == (subject(address), 1, 3)
    site.check(passed=1, shed=3)


def test_a_refused_request_behind_its_preamble(balanced):
    """The server gets the preamble, and never the request."""
    balanced.site.limit("user", burst=0)
    client = connect(balanced, line("192.0.2.1") + b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
    assert client.check(client.read(), "/a") == 429
    assert client.drive(3) == [429] * 3
    assert balanced.site.packets("cut_short") >= 1
    assert balanced.site.unanswered()["unacked"] >= 1
    balanced.site.weir("limit", "delete", "user")
    assert client.drive(2) == [200] * 2
    balanced.site.check(passed=2, shed=4)
    assert balanced.addresses() == ["192.0.2.1"] * 2


@pytest.mark.parametrize("bad,cut", [(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0), (b"\x16\x03\x01\x02\0", 0),
                                     (b"PROXY TCP4 1.2.3 4.5.6.7 1 2\r\n", 0),
                                     (SIGNATURE + b"\x31\x11\0\x0c" + bytes(12), 0)])
def test_without_a_preamble_nothing_is_served(balanced, bad, cut):
    client = balanced.site.client()
    client.send(bad[:cut])
    client.settle()
    client.send(bad[cut:])
    answer = client.read()
    assert (answer.status, b"PROXY protocol preamble" in answer.body) == (400, True)
    client.expect_end()
    assert balanced.site.unread() == {"bad_preamble": 1}
    assert balanced.site.weir.counts()["rejected"] == 1
    assert balanced.server.served() == 0


def test_a_bad_preamble_that_its_server_is_to_get(world):
    """nginx closes such a connection; a server that did not would be held to the peer's limit."""
    balanced = Balanced(world)
    balanced.attach("--framing", "pass")
    client = connect(balanced, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    client.expect_end()
    assert balanced.site.unread() == {"bad_preamble": 1}
    assert balanced.site.status()["records_passed"] == 1
    assert balanced.server.served() == 0


def test_only_balancers_are_believed(world):
    balanced = Balanced(world)
    site = balanced.site
    site.attach("--trusted-proxy", balanced.place.client_address, "--proxy-protocol", "192.0.2.0/24")
    assert site.status()["proxy_protocol"] == ["192.0.2.0/24"]
    site.limit("user", burst=2)
    for n, status in enumerate([200, 200, 429]):
        assert connect(balanced, line(f"192.0.2.{n + 1}")).get("/r") == status
    (row,) = site.status()["top"]
    assert row["subject"] == balanced.place.client_address
    assert counted(site, anonymous=3) == {"untrusted_identity": 3}


def test_a_preamble_lends_no_trust(world):
    """What the balancer says of its client's address it may say; a header that its client sent says nothing."""
    balanced = Balanced(world)
    balanced.attach("--address", "192.0.2.0/25,tenant,,shop")
    site = balanced.site
    site.limit("user", "tenant", burst=2)
    client = connect(balanced, binary("192.0.2.1"))
    assert [client.get("/r", X_Remote_User="eve") for _ in range(3)] == [200, 200, 429]
    assert connect(balanced, binary("192.0.2.129")).get("/r") == 200
    assert counted(site, address_table=3, anonymous=1) == {"untrusted_identity": 3}


@pytest.mark.parametrize("preamble", [b"PROXY UNKNOWN\r\n", SIGNATURE + b"\x20\0\0\0",
                                      SIGNATURE + b"\x21\0\0\3\4\0\0"])
def test_one_that_names_nobody(balanced, preamble):
    site = balanced.site
    site.limit("user", balanced.place.client_address, burst=1)
    client = connect(balanced, preamble)
    assert client.drive(2) == [200, 429]
    assert counted(site, anonymous=2) == {}


def test_the_trace_shows_the_client(balanced):
    trace = balanced.world.trace("--count", "1")
    assert connect(balanced, line("2001:db8::7")).get("/r") == 200
    (request,) = trace.end()
    assert request["client"] == "2001:db8::7"


def test_what_cannot_be_read_is_held_by_client(world):
    place = world.veth()
    server = PatientTlsServer(place.server_ns, place.address, world.directory)
    world.at_end(server.close)
    balancer, front = haproxy(world, place, server.port, "tcp", "send-proxy-v2")
    weir = world.agent()
    weir("attach", "web", "--port", server.port, "--netns", place.server_ns.path, "--hold", "drop",
         "--proxy-protocol", place.client_address)
    world.attached()
    weir("limit", "set", "user", "--qps", 0, "--burst", 2)
    weir("limit", "set", "user", "127.0.0.3", "--qps", 0, "--burst", 3)
    over, within = (TlsClient(front, balancer.port, source=(address, 0)) for address in ("127.0.0.2", "127.0.0.3"))
    world.at_end(over.close)
    world.at_end(within.close)
    over.drive(2)
    over.ask("/third")
    within.drive(3)
    eventually(lambda: weir.server("web")["records_held"] == 1, "the third is withheld")
    weir("limit", "set", "user", "--qps", 10, "--burst", 2)
    assert over.read() == "/third"
    status = weir.server("web")
    assert status["unread"] == {"tls": 2}
    assert [row["subject"] for row in status["top"]] == ["127.0.0.2"]
    assert status["records_passed"] == 6 and status["records_held"] == 1
