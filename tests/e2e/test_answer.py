# SPDX-License-Identifier: GPL-2.0
"""What a refused client reads, what becomes of its connection, and what the server sees of it: nothing."""
import json
import random
import time

import pytest

from lib.client import check_shed
from lib.process import eventually

pytestmark = pytest.mark.together

SWALLOWED = 60_000  # a body that is swallowed to keep the connection
TOO_LONG = 200_000  # a body that costs it


@pytest.fixture
def refusing(site):
    """Serves /first, then refuses everything but health."""
    site.limit("user", burst=1)
    client = site.client()
    assert client.get("/first") == 200
    site.refused_client = client
    return site


def check_closed(site, client, target="/again"):
    """The client reads a clean end, the server sees its connection go, and the next connection works."""
    client.expect_end()
    eventually(lambda: site.server.connections[0].ending, "the server's end of the connection is closed, too")
    site.weir("pause")
    assert site.client().get(target) == 200


def test_bytes(refusing):
    client = refusing.refused_client
    client.ask("/second")
    answer = client.read()
    assert (answer.line, answer.status) == ("HTTP/1.1 429 Too Many Requests", 429)
    assert set(answer.fields) == {"content-type", "retry-after", "content-length", "weir-limit"}
    assert answer.fields["weir-limit"] == "user"
    assert check_shed(answer) == 3600
    assert refusing.server.targets() == ["/first"]


def ask(site, target, user=None):
    client = site.client(user)
    client.ask(target)
    return client.read()


def test_denied(site):
    """A subject that is denied gets a 403, and explain, metrics and the list of limits say so."""
    site.limit("user", qps=100, burst=100)
    site.weir("limit", "set", "user", "mallory", "--deny")
    assert site.client("alice").get("/1") == 200
    answer = ask(site, "/2", "mallory")
    assert (answer.line, answer.fields["weir-limit"]) == ("HTTP/1.1 403 Forbidden", "user")
    assert "retry-after" not in answer.fields
    status = json.loads(answer.body)
    assert (status["code"], status["reason"], status["message"]) == (
        403, "Forbidden", "weir: limit user: this request is denied")
    assert site.server.targets() == ["/1"]
    assert site.weir.metrics()["weir_shed_total"]["denied", "denied", "web"] == 1
    explained = site.weir.json("explain", "--user", "mallory", "GET", "/2")
    assert (explained["decision"], explained["status"], explained["limits"][0]["says"]) == ("shed", 403, "denies")
    assert "denied" in site.weir("limit", "list")
    site.weir("limit", "delete", "user", "mallory")
    assert site.client("mallory").get("/3") == 200


def test_events(site):
    """The latest refusals are kept without a trace: who, what, by which limit; and those that come are followed."""
    site.limit("user", burst=1)
    site.weir("limit", "set", "user", "mallory", "--deny")
    assert [site.client("alice").get(f"/{i}") for i in range(3)] == [200, 429, 429]
    assert ask(site, "/m", "mallory").status == 403
    events = [json.loads(line) for line in site.weir("events", "--json").splitlines()][-3:]
    assert [(event["user"], event["target"], event["limit"], event["status"]) for event in events] == [
        ("alice", "/1", "user", 429), ("alice", "/2", "user", 429), ("mallory", "/m", "user", 403)]
    assert [line.split()[3:6] for line in site.weir("events", "web").splitlines()[-3:]] == [
        ["alice", "user", "429"], ["alice", "user", "429"], ["mallory", "user", "403"]]
    (latest,) = site.weir("events", "--json", "--count", 1).splitlines()  # not the oldest of what is kept
    assert json.loads(latest)["target"] == "/m"
    followed = site.weir.run("events", "--follow", "--count", "2", "--json")
    assert followed.stderr == "weir: following refusals of web; ^C ends\n"
    assert len(followed.stdout.splitlines()) == 2
    assert "there is no server" in site.weir.refused("events", "other")


def test_plain_and_capped(world):
    site = world.site()
    site.attach("--refusals", "plain", "--max-retry-after", "7s")
    site.limit("user", burst=0)
    answer = ask(site, "/")
    assert (answer.status, answer.fields["retry-after"]) == (429, "7")
    assert "weir-limit" not in answer.fields and b"weir" not in answer.body


@pytest.mark.parametrize("qps", [0.1, 0.01, 0.001])
def test_retry_after_is_exact(site, qps):
    site.limit("user", qps=qps, burst=1)
    client = site.client()
    while True:
        asked = time.monotonic()
        answer = client.exchange("/r")
        answered = time.monotonic()
        if answer.status == 429:
            break
        taken_after, taken_before = asked, answered
    # One token's time from the moment the token was taken, rounded up.
    assert 1 / qps - (answered - taken_after) <= check_shed(answer) < 1 / qps - (asked - taken_before) + 1


def test_retry_after_is_the_longest(site):
    site.limit("total", qps=0.002, burst=1)
    site.limit("user", qps=0.01, burst=1)
    client = site.client()
    assert client.get("/1") == 200
    assert 100 < check_shed(client.exchange("/2")) <= 500


def test_head(refusing):
    client = refusing.refused_client
    for i in range(5):
        assert client.exchange(f"/head/{i}", "HEAD").status == 429
        assert client.get(f"/get/{i}") == 429
        assert client.exchange(f"/healthz/{i}", "HEAD").status == 200
        assert client.get(f"/healthz/{i}") == 200
    refusing.check(passed=1, shed=10, exempt=10)
    assert refusing.status()["connections"] == 1


def test_many_on_one_connection(site):
    """Passes and sheds in every order, bodies up to 1 MB both ways."""
    dice = random.Random(2)
    site.limit("user", burst=0)
    client = site.client()
    sheds = exempt = 0
    for i in range(400):
        path = dice.choice(["/shed", "/livez"])
        size = dice.choice([0, 10, 5000, 50_000, 1_000_000 if path == "/livez" else 1])
        if dice.random() < 0.5:
            status = client.exchange(f"{path}/{i}?size={size}").status
        else:
            status = client.exchange(f"{path}/{i}?echo=1", "POST", dice.randbytes(size)).status
        assert status == (429 if path == "/shed" else 200)
        sheds += path == "/shed"
        exempt += path == "/livez"
    site.check(passed=0, shed=sheds, exempt=exempt)
    assert site.status()["translated"] == 1
    assert len(site.server.connections) == 1


@pytest.mark.parametrize("size", [1, 1000, 20_000, SWALLOWED])
def test_body_is_swallowed(refusing, size):
    """The body looks like requests, and is none."""
    client = refusing.refused_client
    body = (b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n" * (size // 36 + 1))[:size]
    for i in range(3):
        assert client.exchange(f"/post/{i}", "POST", body).status == 429
        assert client.exchange(f"/healthz/{i}?echo=1", "POST", body).status == 200
    refusing.check(passed=1, shed=3, exempt=3)
    assert len(refusing.server.connections) == 1


def test_body_comes_later(refusing):
    """Head and body in packets of their own: the answer comes when the body has."""
    client = refusing.refused_client
    client.send(client.head("/post", "POST", Content_Length=30))
    for part in (b"a" * 10, b"GET /x HTT", b"c" * 10):
        client.send(part)
    assert client.read().status == 429
    assert client.get("/healthz") == 200
    refusing.check(passed=1, shed=1, exempt=1)


def test_long_body_closes(refusing):
    client = refusing.refused_client
    client.send(client.head("/post", "POST", Content_Length=TOO_LONG))
    answer = client.read()
    assert answer.fields["connection"] == "close"
    check_shed(answer)
    check_closed(refusing, client)
    assert refusing.packets("answered_close") == 1
    assert refusing.server.targets() == ["/first", "/again"]


def test_long_body_under_way(refusing):
    """The client is still sending when the answer comes."""
    client = refusing.refused_client
    answer = client.exchange("/post", "POST", b"x" * TOO_LONG)
    assert (answer.status, answer.fields["connection"]) == (429, "close")
    check_closed(refusing, client)


def test_chunked_body_in_one_packet(refusing):
    client = refusing.refused_client
    for i in range(3):
        assert client.exchange(f"/post/{i}", "POST", chunks=[b"one", b"GET / HTTP/1.1\r\n\r\n"]).status == 429
        assert client.exchange(f"/healthz/{i}?echo=1", "POST", chunks=[b"one", b"two"]).status == 200
    refusing.check(passed=1, shed=3, exempt=3)


def test_chunked_body_without_end_closes(refusing):
    client = refusing.refused_client
    client.send(client.head("/post", "POST", Transfer_Encoding="chunked") + b"3\r\none\r\n")
    answer = client.read()
    assert (check_shed(answer), answer.fields["connection"]) == (3600, "close")
    check_closed(refusing, client)


def test_expect_continue_closes(refusing):
    client = refusing.refused_client
    client.send(client.head("/post", "POST", Content_Length=10, Expect="100-continue"))
    answer = client.read()
    assert (check_shed(answer), answer.fields["connection"]) == (3600, "close")
    check_closed(refusing, client)


def test_expect_continue_passes(site):
    client = site.client()
    client.send(client.head("/post?echo=1", "POST", Content_Length=10, Expect="100-continue"))
    assert client.stream.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue"
    client.send(b"0123456789")
    assert client.read().body == b"0123456789"
    assert client.get("/next") == 200
    site.check(passed=2, shed=0)
    assert not site.unread()


def test_connection_close(refusing):
    client = refusing.refused_client
    answer = client.exchange("/last", Connection="close")
    assert (answer.status, answer.fields["connection"]) == (429, "close")
    check_closed(refusing, client)


def test_http10_kept_alive(refusing):
    """A client of HTTP/1.0 waits for the end of what does not say that the connection goes on."""
    client = refusing.client()
    client.send(client.head("/old", version="HTTP/1.0", Connection="Keep-Alive"))
    assert client.check(client.read(), "/old") == 429
    client.expect_end()


def test_http10(refusing):
    client = refusing.refused_client
    client.send(client.head("/old", version="HTTP/1.0"))
    answer = client.read()
    assert (check_shed(answer), answer.fields["connection"]) == (3600, "close")
    check_closed(refusing, client)


def test_first_request_of_a_connection(site):
    site.limit("user", burst=0)
    client = site.client()
    assert client.drive(3) == [429] * 3
    assert client.get("/livez") == 200
    site.check(passed=0, shed=3, exempt=1)


def test_client_goes_after_429(refusing):
    """The server sees a clean end of the stream."""
    client = refusing.refused_client
    assert client.get("/second") == 429
    client.close()
    eventually(lambda: refusing.server.connections[0].ending == "eof", "the server has read the end of the stream")


def test_half_close_after_429(refusing):
    client = refusing.refused_client
    assert client.get("/second") == 429
    client.end_of_requests()
    client.expect_end()
    eventually(lambda: refusing.server.connections[0].ending == "eof", "the server has read the end of the stream")


def curl(site, *options):
    """[(status, number of connections made)] of each transfer, by curl."""
    output = site.place.client_ns.run(
        "curl", "--silent", "--show-error", "--max-time", "30", "--output", "/dev/null", "--write-out",
        "%{http_code} %{num_connects}\\n", *options)
    return [tuple(int(word) for word in line.split()) for line in output.splitlines()]


def test_curl_keeps_its_connection(site):
    site.limit("user", burst=2)
    url = f"http://127.0.0.1:{site.server.port}/c/"
    seen = curl(site, *(word for i in range(5) for word in (url + str(i), "--output", "/dev/null")))
    assert seen == [(200, 1), (200, 0), (429, 0), (429, 0), (429, 0)]
    site.check(passed=2, shed=3)


def test_curl_uploads(site, tmp_path):
    """curl asks to continue before it sends 2 MB, and reads the 429 instead."""
    upload = tmp_path / "upload"
    upload.write_bytes(b"u" * 2_000_000)
    url = f"http://127.0.0.1:{site.server.port}/u?echo=1"
    site.limit("user", burst=1)
    assert curl(site, "--data-binary", f"@{upload}", url) == [(200, 1)]
    assert curl(site, "--data-binary", f"@{upload}", url) == [(429, 1)]
    assert curl(site, "--data-binary", f"@{upload}", "--header", "Expect:", url) == [(429, 1)]
    site.check(passed=1, shed=2)
    assert site.packets("answered_close") == 2


def test_curl_http10(site):
    site.limit("user", burst=1)
    url = f"http://127.0.0.1:{site.server.port}/old"
    assert curl(site, "--http1.0", url) == [(200, 1)]
    assert curl(site, "--http1.0", url) == [(429, 1)]
    site.check(passed=1, shed=1)
