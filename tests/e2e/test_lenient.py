# SPDX-License-Identifier: GPL-2.0
"""A server that is lenient about where requests end: Python's http.server, which keeps no count of bodies."""
import contextlib
import http.server
import socket
import threading

import pytest

from lib.process import eventually
from lib.tun import answered_by_tunnel

pytestmark = pytest.mark.together

NO = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.targets.append(self.path)
        body = self.path.encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if self.path == "/no":
            self.wfile.write(NO)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def attached(world, place):
    """A lenient server there."""
    with place.server_ns.entered():
        server = http.server.ThreadingHTTPServer((place.address, world.port()), Handler)
    server.daemon_threads = True
    server.targets = []
    server.port = server.server_address[1]
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = world.site(place, server)
    site.attach()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def site(world):
    with attached(world, world.loopback()) as made:
        yield made


def test_head_that_ends_with_the_connection(site):
    """Without weir it is served."""
    site.limit("user", burst=0)
    for end in (b"", b"\r\n"):
        client = site.client("alice")
        client.send(client.head("/cut").removesuffix(b"\r\n\r\n") + end)
        client.end_of_requests()
        assert client.read().status == 400
        client.expect_end()
    assert site.server.targets == []
    assert site.unread() == {"head_cut": 2}
    assert site.weir.counts()["rejected"] == 2


def test_the_end_comes_later(site):
    site.limit("user", burst=0)
    client = site.client("alice")
    client.send(client.head("/cut").removesuffix(b"\r\n"))
    client.settle()
    client.end_of_requests()
    assert client.read().status == 400
    client.expect_end()
    assert site.server.targets == []


def given_up(site):
    """A client of whose request the server has left the body unread, under limits that it has used up."""
    site.limit("user", burst=1)
    site.limit("total", burst=1)
    client = site.client("alice")
    client.ask("/outer", Content_Length=10**8)
    assert client.read().status == 200
    eventually(lambda: site.unread() == {"answered_early": 1}, "the connection is given up")
    return client


def test_body_that_is_left_unread(site):
    """It is given up before any more of the body comes to the server: that is held, and waits for a limit of 0."""
    client = given_up(site)
    client.send(b"GET /inner HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
    eventually(lambda: site.packets("held_record"), "what follows is held")
    client.socket.settimeout(1)
    with contextlib.suppress(socket.timeout):
        assert not client.socket.recv(1)
    assert site.server.targets == ["/outer"]


def test_head_in_a_body_that_is_left_unread(site):
    """It ends with the connection, without an empty line: it waits, too."""
    client = given_up(site)
    client.send(b"GET /inner HTTP/1.1\r\nHost: x\r\n")
    client.settle()
    client.end_of_requests()
    eventually(lambda: site.packets("held_record"), "the end is held")
    assert site.server.targets == ["/outer"]
    site.weir("pause")
    eventually(lambda: site.server.targets == ["/outer", "/inner"], "it is served when nothing is held any more")


def test_head_that_was_begun_before(site):
    """On a connection that is open before the server is attached."""
    site.world.keep()
    site.weir("detach", "web", "--force")
    client = site.client("alice")
    assert client.get("/before") == 200
    site.attach()
    site.limit("user", burst=0)
    site.limit("total", burst=0)
    client.send(client.head("/cut").removesuffix(b"\r\n"))
    client.settle()
    client.end_of_requests()
    eventually(lambda: site.packets("held_record") or len(site.server.targets) > 1, "the end is held")
    assert site.server.targets == ["/before"]


def test_body_of_a_request_whose_answer_is_not_seen(world):
    """Nobody sees that it is an early one, but that its client has one. What comes then is held."""
    with attached(world, answered_by_tunnel(world)) as site:
        site.limit("user", burst=1)
        site.limit("total", burst=1)
        client = site.client("alice")
        client.ask("/outer", Content_Length=10**8)
        assert client.read().status == 200
        client.send(INNER * 100)
        eventually(lambda: site.packets("held_record"), "what follows is held")
        assert site.unread() == {"unseen": 1}
        assert site.server.targets == ["/outer"]


INNER = b"GET /inner HTTP/1.1\r\nHost: x\r\n\r\n"


def send_with_body(site, target, body):
    """Head and body come at once, so the server has all of it when it answers."""
    client = site.client("alice")
    client.send(client.head(target, Content_Length=len(body)) + body)
    return client


def learnt(site, burst, qps=0):
    """The server has served the body of a request as five others, under limits that have room for `burst` - 1 requests more."""
    site.limit("user", burst=burst, qps=qps)
    site.limit("total", burst=burst, qps=qps)
    assert send_with_body(site, "/outer", INNER * 5).read().status == 200
    eventually(lambda: site.server.targets == ["/outer"] + ["/inner"] * 5, "the body is served")
    eventually(lambda: site.unread() == {"body_served": 1}, "it is noticed")
    site.server.targets.clear()


def test_server_that_serves_a_body(site):
    """From then on bodies are held, and what may be a request in them waits for a token."""
    learnt(site, burst=2)
    client = send_with_body(site, "/again", INNER * 100)
    eventually(lambda: site.packets("held_record"), "the body is held")
    client.socket.settimeout(1)
    with contextlib.suppress(socket.timeout):
        assert not client.socket.recv(1)
    assert site.server.targets == []
    assert site.unread() == {"body_served": 2}
    assert "warning: it may read bodies as requests" in site.weir("status")


def test_requests_in_a_body_are_owed(site):
    """One token lets a packet in, however many requests there may be in it. All of them are charged."""
    learnt(site, burst=3, qps=0.1)
    send_with_body(site, "/again", INNER * 20)
    eventually(lambda: site.server.targets == ["/again"] + ["/inner"] * 20, "the packet goes on")
    client = site.client("bob")
    client.ask("/")
    answer = client.read()
    assert answer.status == 429
    assert int(answer.fields["retry-after"]) > 100  # for 18 tokens, at a tenth a second


def test_body_without_requests(site):
    """It goes on, and so does what comes behind it, as far as there are tokens."""
    learnt(site, burst=100)
    client = send_with_body(site, "/again", b"x" * 299 + b"\n")
    assert client.read().status == 200
    assert not site.packets("held_record")


def test_no_says_nothing_of_bodies(site):
    """Servers say it to a request that does not come to its end."""
    send_with_body(site, "/no", b"x" * 10)
    eventually(lambda: site.unread() == {"bad_response": 1}, "it is noticed")
    send_with_body(site, "/outer", INNER * 5)
    eventually(lambda: site.server.targets == ["/no", "/outer"] + ["/inner"] * 5, "the body is believed")


def test_requests_without_bodies_are_read_all_the_same(site):
    learnt(site, burst=2)
    client = site.client("bob")
    assert [client.get("/1"), client.get("/2")] == [200, 429]
    assert site.unread() == {"body_served": 1}


def test_detached_server_is_not_known_any_more(site):
    learnt(site, burst=2)
    site.world.keep()
    site.weir("detach", "web", "--force")
    site.attach()
    send_with_body(site, "/other", INNER * 5)
    eventually(lambda: site.server.targets == ["/other"] + ["/inner"] * 5, "the body is believed")


def choose(site, tmp_path, word):
    """By a policy file beside what commands have set."""
    path = tmp_path / "bodies.yaml"
    path.write_text(f"apiVersion: weir/v1\nkind: Throttle\nmetadata: {{name: web}}\nspec: {{{word}}}\n")
    site.weir("apply", "-f", path)


def forget(site, *options):
    """The server is attached anew."""
    site.world.keep()
    site.weir("detach", "web", "--force")
    site.attach(*options)


def expect_held(site):
    """A body full of requests does not come to the server, nor does any of them."""
    before = site.packets("held_record")
    send_with_body(site, "/again", INNER * 100)
    eventually(lambda: site.packets("held_record") > before, "the body is held")
    assert "/inner" not in site.server.targets


def expect_believed(site, target):
    send_with_body(site, target, INNER * 5)
    eventually(lambda: site.server.targets[-6:] == [target] + ["/inner"] * 5, "the body is believed")


def test_said_to_leave_bodies_unread(site):
    """The very first body is held, after each of an agent's ends, too."""
    forget(site, "--bodies", "unread")
    site.limit("user", burst=1)
    site.limit("total", burst=1)
    expect_held(site)
    site.weir.kill()
    send_with_body(site, "/killed", INNER * 100)
    site.weir.start()
    expect_held(site)
    assert site.status()["bodies"] == "unread" and site.status()["serves_bodies"] is False
    status = site.weir("status")
    assert "bodies: unread: connections are held from the first body on" in status and "warning" not in status
    assert site.server.targets == []


def test_said_to_read_bodies(site, tmp_path):
    """What was found is not believed, and is forgotten when it is to be found out again."""
    learnt(site, burst=100)
    choose(site, tmp_path, "bodies: read")
    expect_believed(site, "/read")
    status = site.weir("status")
    assert "with bodies: read such requests are not charged" in status
    assert site.status()["serves_bodies"] is True
    choose(site, tmp_path, "bodies: auto")
    assert site.status()["serves_bodies"] is False
    assert "warning: it may read bodies" not in site.weir("status")
    expect_believed(site, "/auto")
    eventually(lambda: site.status()["serves_bodies"], "it is found out again")


def test_what_is_found_outlives_a_policy_that_does_not_speak_of_bodies(site, tmp_path):
    learnt(site, burst=2)
    for word in "maxRetryAfter: 7", "bodies: unread", "maxRetryAfter: 8":
        choose(site, tmp_path, word)
        assert site.status()["serves_bodies"] is True
        expect_held(site)
    site.weir.start()
    assert site.status()["bodies"] == "auto"
    expect_held(site)
