# SPDX-License-Identifier: GPL-2.0
"""A server that closes a connection which is busy being refused: the client reads its answers, then a clean end."""
import socket
import time

import pytest

from lib.process import eventually
from lib.server import EchoServer

pytestmark = pytest.mark.together

IDLE_S = 1
CLOSE_WAIT = 8  # first byte of TCP_INFO


def drive_to_the_end(client, pause):
    """Asks until the stream ends; returns how often. An answer is whole or does not come, and nothing is reset."""
    asked = 0
    while True:
        client.ask(f"/r/{asked}")
        asked += 1
        if not client.stream.fill():
            return asked
        client.check(client.read(), f"/r/{asked - 1}")
        pause()


@pytest.fixture(params=["loopback", "veth"])
def refusing(request, world):
    site = world.site(world.place(request.param))
    site.attach()
    site.limit("user", burst=1)
    return site


@pytest.mark.parametrize("program, pause_s", [("nginx", 0), ("nginx", 0.03), ("nginx", 0.3), ("haproxy", 0.03),
                                              ("node", 0.03)])
def test_idle_time_of_a_real_server(world, program, pause_s):
    """The server has heard nothing for a second, while the client has asked all the time."""
    place = world.veth()
    site = world.site(place, world.real_server(program, place, idle_s=IDLE_S))
    site.attach()
    site.limit("user", burst=1)
    client = site.client()
    assert client.get("/first") == 200
    asked = drive_to_the_end(client, lambda: time.sleep(pause_s))
    shed = site.weir.counts()["shed"]
    assert asked - 1 == shed > 0
    site.check(passed=1, shed=shed)
    assert site.client().get("/next") == 429


def test_close_after_429(refusing):
    client = refusing.client()
    assert client.drive(3) == [200, 429, 429]
    refusing.server.hang_up(0)
    client.expect_end()
    eventually(lambda: refusing.server.connections[0].ending == "closed", "the server has closed")
    client.close()
    assert refusing.client().get("/next") == 429


def wait_for_fin(client):
    """Until the server's FIN is there, unread."""
    eventually(lambda: client.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == CLOSE_WAIT,
               "the FIN has come")


def test_request_crosses_the_close(refusing):
    """A request that the server will never read is no reason for a reset."""
    client = refusing.client()
    assert client.drive(3) == [200, 429, 429]
    refusing.server.hang_up(0)
    wait_for_fin(client)
    client.ask("/too/late")
    client.settle()
    client.expect_end()
    client.ask("/later/still")
    client.settle()
    client.close()
    refusing.check(passed=1, shed=2)
    assert refusing.client().get("/next") == 429


def test_close_without_any_pass(refusing):
    refusing.limit("total", burst=0)
    client = refusing.client()
    assert client.drive(3) == [429] * 3
    refusing.server.hang_up(0)
    client.expect_end()


def test_close_by_the_server_with_its_answer(refusing):
    """Connection: close of the server's own, behind sheds."""
    client = refusing.client()
    assert client.drive(3) == [200, 429, 429]
    assert client.get("/livez?close=1") == 200
    client.expect_end()
    refusing.check(passed=1, shed=2, exempt=1)


def test_reset_by_the_client(refusing):
    """The server's socket goes with it, although the numbers were translated."""
    client = refusing.client()
    assert client.drive(3) == [200, 429, 429]
    client.reset()
    eventually(lambda: refusing.server.connections[0].ending == "reset", "the server's socket is reset")


def test_untranslated_connections_are_forgotten(site):
    for i in range(5):
        client = site.client()
        assert client.get(f"/{i}") == 200
        client.close()
    eventually(lambda: site.status()["connections"] == 0, "closed connections are forgotten")
    metrics = site.weir.metrics()
    assert metrics["weir_connections_opened_total"]["web",] == metrics["weir_connections_closed_total"]["web",] == 5


class HalfClosing(EchoServer):
    """Ends its side with its first answer, and still takes requests."""

    def answer(self, connection, request):
        if len(self.requests) > 1:
            return True
        keep = super().answer(connection, request)
        connection.socket.shutdown(socket.SHUT_WR)
        return keep


@pytest.mark.parametrize("burst", [1, 2, 3])
@pytest.mark.parametrize("at_once", [1, 4])
def test_requests_to_a_server_that_has_ended_its_side(world, burst, at_once):
    """No answer would fit any more. What is over the limit does not come to the server."""
    place = world.veth()
    server = HalfClosing(place.server_ns, place.address, world.port())
    world.at_end(server.close)
    site = world.site(place, server)
    site.attach()
    site.limit("user", burst=burst)
    client = site.client()
    assert client.get("/first") == 200
    client.expect_end()
    for _ in range(4):
        client.send(client.head("/more") * at_once)
    eventually(lambda: site.unanswered().get("server_closed", 0) > 0, "one of them waits")
    eventually(lambda: server.served() >= burst, "what is within the limit is served")
    assert server.served() == burst
    site.limit("user", qps=100, burst=100)
    eventually(lambda: server.served() == 1 + 4 * at_once, "the others come when they may")
    client.close()


class EndsHeadsByFin(HalfClosing):
    """And takes the end of the client's stream for the end of a head, as Python's http.server does."""

    def serve_one(self, connection):
        stream = connection.stream
        while b"\r\n\r\n" not in stream.buffer:
            if not stream.fill():
                stream.buffer += b"\r\n" if stream.buffer else b""
                break
        return bool(stream.buffer) and super().serve_one(connection)


@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_head_that_ends_with_the_connection_behind_the_servers_end(world, apart):
    """No 400 would fit any more: the client's FIN is charged like a request, and waits over the limit."""
    place = world.veth()
    server = EndsHeadsByFin(place.server_ns, place.address, world.port())
    world.at_end(server.close)
    site = world.site(place, server)
    site.attach()
    site.limit("user", burst=1)
    client = site.client()
    assert client.get("/first") == 200
    client.expect_end()
    client.send(client.head("/second").removesuffix(b"\r\n"))
    if apart:
        client.settle()
    client.end_of_requests()
    eventually(lambda: site.packets("held_record") > 0, "the end waits")
    assert server.served() == 1
    assert site.unread() == {"head_cut": 1}
    site.limit("user", qps=100, burst=1)
    eventually(lambda: server.served() == 2, "it comes when it may")
