# SPDX-License-Identifier: GPL-2.0
"""`weir top` says who makes the load, without any limit."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading

import pytest

from lib.process import PATIENCE_S, eventually

pytestmark = pytest.mark.together


def rows_by(world, what, *words):
    return world.weir.json("top", "--once", "--interval", "100ms", "--by", what, *words)["rows"]


def counts(rows, *names):
    return {tuple(row[name] for name in names): (row["requests"], row["refused"], row["dry_run"]) for row in rows}


@pytest.fixture
def site(world):
    site = world.site()
    site.attach()
    return site


def test_who_asks_for_what(world, site):
    """No limit is set; every count is exact."""
    alice, bob, nobody = site.client("alice"), site.client("bob"), site.client()
    assert [alice.get("/api/v1/namespaces/dev/pods") for _ in range(7)] == [200] * 7
    assert alice.drive(3, "/api/v1/namespaces/prod/secrets") == [200] * 3
    assert bob.exchange("/apis/apps/v1/namespaces/dev/deployments", "POST", b"{}").status == 200
    assert nobody.drive(2, "/static/logo.png") == [200] * 2
    assert nobody.get("/livez") == 200
    address = site.place.client_address
    assert counts(rows_by(world, "user"), "user") == {("alice",): (10, 0, 0), ("bob",): (1, 0, 0), (address,): (3, 0, 0)}
    assert counts(rows_by(world, "namespace"), "namespace") == {("dev",): (8, 0, 0), ("prod",): (3, 0, 0)}
    assert counts(rows_by(world, "verb"), "verb") == {("list",): (7, 0, 0), ("get",): (6, 0, 0), ("create",): (1, 0, 0)}
    assert counts(rows_by(world, "resource"), "resource") == {
        ("pods",): (7, 0, 0), ("secrets",): (3, 0, 0), ("deployments",): (1, 0, 0), ("/static",): (2, 0, 0),
        ("/livez",): (1, 0, 0)}
    assert counts(rows_by(world, "source"), "source") == {(address,): (14, 0, 0)}
    assert counts(rows_by(world, "request"), "user", "verb", "namespace", "resource")[
        "alice", "get", "prod", "secrets"] == (3, 0, 0)
    assert rows_by(world, "limit") == rows_by(world, "refusal") == []


def test_names_that_are_cut(world, site):
    """They look the same and are two: none is lost, and neither gets the other's rate."""
    site.client("n" * 300).drive(3)
    site.client("n" * 299 + "m").drive(5)
    assert sorted((row["user"], row["requests"], row["requests_per_second"]) for row in rows_by(world, "user")) == \
        [("n" * 120 + "...", 3, 0), ("n" * 120 + "...", 5, 0)]
    assert "id" not in rows_by(world, "user")[0]


def test_who_is_refused(world, site):
    site.limit("user", burst=4)
    site.limit("namespace", "busy", burst=0)
    site.weir("limit", "set", "total", "--qps", 0, "--burst", 8, "--dry-run")
    assert site.client("alice").drive(6) == [200] * 4 + [429] * 2
    assert site.client("bob").get("/api/v1/namespaces/busy/pods") == 429
    assert site.client("carol").drive(5, "/c") == [200] * 4 + [429]
    assert site.client("dave").drive(2) == [200] * 2
    by_user = counts(rows_by(world, "user"), "user")
    assert by_user["alice",] == (6, 2, 0)
    assert by_user["bob",] == (1, 1, 0)
    assert by_user["dave",] == (2, 0, 2)
    refusals = counts(rows_by(world, "refusal"), "limit", "user")
    assert refusals["user", "alice"] == (2, 2, 0)
    assert refusals["namespace", "bob"] == (1, 1, 0)
    assert refusals["total", "dave"] == (2, 0, 2)
    limits = {row["limit"]: row for row in rows_by(world, "limit")}
    assert limits["user"]["refused"] == 3
    assert limits["namespace"]["refused"] == 1


def why_empty(world, *words):
    """What is said beside a table without rows."""
    done = world.weir.run("top", "--once", "--interval", "100ms", *words)
    assert len(done.stdout.splitlines()) == 1
    return done.stderr


def test_no_rows(world, site):
    assert why_empty(world) == "weir: no rows: no requests were seen\n"
    assert "limits on connections" in why_empty(world, "--by", "connection")
    assert "there is no limit" in why_empty(world, "--by", "limit")
    site.client("alice").get("/")
    assert "nothing was refused" in why_empty(world, "--by", "refusal")
    assert "text of the filter" in why_empty(world, "--filter", "bob")


def test_rates_and_what_is_left_out(world, site):
    """While somebody asks all the time, there is a rate, and it is all of the load."""
    client, stop = site.client("busy"), threading.Event()

    def ask():
        while not stop.is_set():
            client.get("/r")

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        row = eventually(lambda: next((row for row in rows_by(world, "user", "web") if row["requests_per_second"]), None),
                         "somebody asks")
        assert row["refused_per_second"] == 0
        assert row["share"] == pytest.approx(1, abs=0.3)
        assert row["last_seen_seconds_ago"] <= row["first_seen_seconds_ago"]
    finally:
        stop.set()
        thread.join()
    assert rows_by(world, "user", "--filter", "nobody") == []
    assert len(rows_by(world, "user", "--filter", "BUS")) == 1
    assert rows_by(world, "user", "--rows", 0 + 1)[0]["user"] == "busy"


def test_pipelined_and_split(world, site):
    """Each once, however it comes."""
    client = site.client("alice")
    client.send(b"".join(client.head(f"/r/{i}") for i in range(9)))
    assert [client.read().status for _ in range(9)] == [200] * 9
    for byte in client.head("/split"):
        client.send(bytes([byte]))
    assert client.read().status == 200
    assert counts(rows_by(world, "user"), "user") == {("alice",): (10, 0, 0)}


def test_lines_in_a_pipe(world, site):
    site.client("alice").drive(3)
    process = subprocess.Popen(world.weir.command("top", "web", "--interval", "100ms"), env=world.weir.environment(),
                               stdout=subprocess.PIPE, text=True)
    try:
        heads, first, second = (process.stdout.readline() for _ in range(3))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert heads.split()[:3] == ["TIME", "USER", "REQ/S"]
    for line in (first, second):
        assert re.match(r"\d\d:\d\d:\d\d  alice  ", line), line


def test_json_lines(world, site):
    site.client("alice").drive(3)
    process = subprocess.Popen(world.weir.command("top", "--interval", "100ms", "--json"),
                               env=world.weir.environment(), stdout=subprocess.PIPE, text=True)
    try:
        samples = [json.loads(process.stdout.readline()) for _ in range(2)]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert [[row["user"] for row in sample["rows"]] for sample in samples] == [["alice"]] * 2


def test_over_restarts(world, site):
    """The kernel counts on without an agent; who detaches forgets."""
    client = site.client("alice")
    client.drive(2)
    world.weir.kill()
    client.drive(3)
    world.weir.start()
    assert counts(rows_by(world, "user"), "user") == {("alice",): (5, 0, 0)}
    world.keep()
    world.weir("detach", "web")
    site.attach()
    assert rows_by(world, "user") == []


def test_words_that_are_wrong(world, site):
    refused = world.weir.refused
    assert '"who" is not one of user, namespace' in refused("top", "--by", "who", status=2)
    assert '"most" is not one of requests' in refused("top", "--sort", "most", status=2)
    assert "must be from 100ms to 1h" in refused("top", "--interval", "99ms", status=2)
    assert 'there is no server "other"' in refused("top", "other", "--once")


class Screen:
    """The command on a terminal of its own."""

    def __init__(self, world, *words, rows=24, columns=160):
        self.fd, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(terminal)
        self.process = subprocess.Popen(world.weir.command("top", "--interval", "100ms", *words), stdin=terminal,
                                        stdout=terminal, stderr=terminal, env=world.weir.environment())
        self.terminal, self.said = terminal, ""

    def expect(self, text):
        """What is drawn after this call has the text in it."""
        self.said = ""

        def drawn():
            if select.select([self.fd], [], [], 0)[0]:
                self.said += os.read(self.fd, 65536).decode(errors="replace")
            return text in self.said

        eventually(drawn, f"the screen shows {text!r}")

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self):
        """Its exit status, and whether the terminal is as it was."""
        self.press("q")
        status = self.process.wait(timeout=30)
        same = termios.tcgetattr(self.terminal)[:4] == self.before[:4]
        return status, same

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)
        os.close(self.terminal)


def test_on_a_terminal(world, site):
    site.limit("user", "bob", burst=0)
    site.client("alice").drive(3, "/api/v1/namespaces/dev/pods")
    site.client("bob").drive(2, "/api/v1/namespaces/prod/secrets")
    screen = Screen(world)
    world.at_end(screen.close)
    screen.expect("alice")
    screen.expect("bob")
    screen.press("n")
    screen.expect("by namespace")
    screen.expect("prod")
    screen.press("s")
    screen.expect(site.place.client_address)
    screen.press("x")
    screen.expect("bob")
    screen.press("u/alic\r")
    screen.expect('by user, with "alic"')
    screen.press("\r")
    screen.expect('by request, with "alice"')
    screen.expect("pods")
    screen.press("\x1b")
    screen.expect("by user\x1b")
    screen.press("o")
    screen.expect("by refused")
    screen.press("p")
    screen.expect("paused")
    assert screen.end() == (0, True)


def test_on_a_terminal_over_restarts(world, site):
    """Who looks on goes on looking: the agent is asked again until it is back, and its rows begin anew."""
    site.client("alice").get("/")
    screen = Screen(world)
    world.at_end(screen.close)
    screen.expect("alice")
    world.weir.kill()
    screen.expect("no agent answers")
    world.weir.start()
    screen.expect("alice")
    screen.expect("q quit")
    screen.expect("q quit")
    assert "no agent answers" not in screen.said
    assert screen.end() == (0, True)


@pytest.mark.alone
def test_on_a_terminal_while_the_agent_hangs(world):
    """What is waited for is said, and nobody has to sit it out."""
    world.weir.start()
    screen = Screen(world)
    world.at_end(screen.close)
    screen.expect("q quit")
    world.weir.process.send_signal(signal.SIGSTOP)
    try:
        screen.expect("waiting for the agent. ^C ends")
        screen.process.send_signal(signal.SIGINT)
        assert (screen.process.wait(timeout=2 * PATIENCE_S), screen.end()[1]) == (0, True)
    finally:
        world.weir.process.send_signal(signal.SIGCONT)


def test_a_narrow_terminal(world, site):
    """The columns that matter are whole, and all keys are there."""
    site.client("system:serviceaccount:ci:builder").get("/")
    screen = Screen(world, "web", rows=24, columns=80)
    world.at_end(screen.close)
    screen.expect("q quit")
    screen.expect("q quit")  # one whole screen
    for text in "DRY-RUN/S  HELD/S", "SHARE", "x refusal", "/ filter", "esc back", "+- interval":
        assert text in screen.said
    assert "FIRST SEEN" not in screen.said
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", line) for line in re.split(r"\r\n|\x1b\[\d+;1H", screen.said)]
    assert max(map(len, lines)) <= 80
    assert screen.end() == (0, True)


def test_a_small_terminal(world, site):
    """Lines are cut, and nothing is drawn below the last row."""
    for i in range(9):
        site.client(f"user-{i}").get("/")
    screen = Screen(world, rows=8, columns=30)
    world.at_end(screen.close)
    screen.expect("USER")
    assert screen.said.count("user-") <= 6
    assert screen.end() == (0, True)
