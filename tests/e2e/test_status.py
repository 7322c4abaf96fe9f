# SPDX-License-Identifier: GPL-2.0
"""`weir status`: one screen, in which nothing is said twice."""
import os
import pty
import re
import socket
import subprocess

import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

CLEAR = "\033[H\033[2J"
HEADS = ["SERVER", "PORTS", "LANE", "MODE", "REQ/S", "429/S", "TLS", "CONNECTIONS", "HEALTH"]


@pytest.fixture
def site(world):
    site = world.site()
    site.attach()
    return site


def lines(text):
    return [line.split() for line in text.splitlines()]


def on_terminal(world, *words, **variables):
    """What is printed where standard output is a terminal."""
    master, slave = pty.openpty()
    environment = {**world.weir.environment(), **variables}
    done = subprocess.run(world.weir.command(*words), env=environment, stdout=slave, timeout=60, check=False)
    os.close(slave)
    text = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0
    return text


def test_one_screen(world, site):
    """A line a server, and each remark once, whomever it is about."""
    text = world.weir("status")
    heads, web = lines(text)[:2]
    assert heads == HEADS and web[:4] == ["web", str(site.server.port), "wire", "limiting"]
    assert "web: warning: it has no limits: nothing is refused\n" in text
    home = () if world.weir.namespace else ("--netns", site.place.server_ns.path)
    assert world.weir.run("attach", "second", "--port", 9, *home).returncode == 0  # where nobody listens
    text = world.weir("status")
    assert "second: warning: nobody listens on port 9 in" in text
    assert text.count("it has no limits") == 1 and "second, web: warning: it has no limits" in text
    assert "INTERFACE" not in text
    assert [row[0] for row in lines(text)[1:3]] == ["second", "web"]  # by name
    wide = world.weir("status", "--wide")
    assert "INTERFACE" in wide and "second" in wide
    one = world.weir("status", "web")
    assert "INTERFACE" in one and "second" not in one
    assert '"wbe"' in world.weir.refused("status", "wbe") and [s["name"] for s in world.weir.json("status", "web")[
        "servers"]] == ["web"]


def test_nobody_listens(world):
    """As `attach` has warned, until somebody does, whichever agent tells of it."""
    home, port, weir = world.loopback().server_ns, world.port(), world.agent()
    warning = f"nobody listens on port {port} in the server's network namespace yet: requests are limited once a server does"
    done = weir.run("attach", "web", "--port", port, "--netns", home.path)
    assert (done.returncode, done.stderr) == (0, f"weir: warning: {warning}\n")
    world.attached()
    assert weir.server()["nobody_listens"] == warning and f"web: warning: {warning}\n" in weir("status")
    weir.stop()
    weir.start("off")
    eventually(lambda: weir.server()["nobody_listens"] == warning, "the next agent has looked")
    with home.entered():
        listener = socket.create_server(("127.0.0.1", port))
    with listener:
        eventually(lambda: weir.server()["nobody_listens"] is None, "that somebody does is seen")
        assert "nobody listens" not in weir("status")


def test_udp(world):
    """A server may speak HTTP/3, which weir does not limit: that is said while it takes UDP on its port from anybody."""
    home, port, weir = world.loopback().server_ns, world.port(), world.agent()
    warning = (f"weir does not limit UDP, such as HTTP/3, and somebody takes it on port {port}: turn HTTP/3 off in the server, or have a "
               "firewall drop it")
    with home.entered():
        listener = socket.create_server(("127.0.0.1", port))
        udp, client = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        udp.bind(("127.0.0.1", port))
    with listener, udp, client:
        done = weir.run("attach", "web", "--port", port, "--netns", home.path)
        assert (done.returncode, done.stderr) == (0, f"weir: warning: {warning}\n")
        world.attached()
        assert weir.server()["takes_udp"] == warning and f"web: warning: {warning}\n" in weir("status")
        client.bind(("127.0.0.1", 0))
        udp.connect(client.getsockname())  # now it takes nothing from anybody else
        eventually(lambda: weir.server()["takes_udp"] is None, "that UDP is not taken any more is seen")
        assert "UDP" not in weir("status")


def test_rates(world, site):
    """Of the last ten to twenty seconds; nothing where that is not known yet."""
    site.client("carol").drive(6)
    eventually(lambda: site.status()["rates"], "the agent has looked")
    world.keep()
    world.weir("detach", "web", "--force")
    site.attach()  # what was counted of another server in its place says nothing
    site.limit("user", burst=2)
    eventually(lambda: site.status()["rates"], "the agent has looked")
    before = site.status()
    site.client("alice").drive(6)
    rates, passed = site.status()["rates"], before["passed"]
    assert passed == 0 and rates["requests"] * rates["seconds"] == pytest.approx(6)
    assert rates["refused"] * rates["seconds"] == pytest.approx(4)
    row = dict(zip(HEADS, lines(world.weir("status"))[1]))
    assert float(row["REQ/S"]) > 0 and float(row["429/S"]) > 0 and row["TLS"] == "0%"


def test_colour(world, site):
    assert "\033[32mok" not in world.weir("status")
    world.weir("pause", "web")
    text = on_terminal(world, "status", NO_COLOR="")
    assert re.search("\033\\[33mpaused\033\\[0m", text) and "\033[33mweb: warning" in text
    assert "\033" not in on_terminal(world, "status", NO_COLOR="1")


def test_watch(world, site):
    """In a pipe one after the other, until it is ended."""
    process = subprocess.Popen(world.weir.command("status", "--watch=100ms"), env=world.weir.environment(),
                               stdout=subprocess.PIPE, text=True)
    seen = [process.stdout.readline() for _ in range(12)]
    process.terminate()
    process.communicate()
    assert len([line for line in seen if line.split() == HEADS]) >= 2
    assert "at least 100ms" in world.weir.refused("status", "--watch=1ms", status=2)


def test_watch_on_a_terminal(world, site):
    """What is seen stays until there is something new, and an agent that is gone is waited for, unless it was never there."""
    master, slave = pty.openpty()
    process = subprocess.Popen(world.weir.command("status", "--watch=100ms"), env=world.weir.environment(), stdout=slave,
                               stderr=slave)
    seen = [""]

    def shows(text):
        seen[0] += os.read(master, 65536).decode()
        return text in seen[0].rpartition(CLEAR)[2]

    try:
        eventually(lambda: shows("SERVER"), "the servers are there")
        world.weir.kill()
        eventually(lambda: shows("no agent answers"), "the agent is missed")
        world.weir.start()
        eventually(lambda: shows("SERVER"), "the servers are there again")
    finally:
        process.kill()
        process.wait()
    assert CLEAR * 2 not in seen[0]
    world.weir.kill()
    assert subprocess.run(world.weir.command("status", "--watch"), env=world.weir.environment(), stdout=slave, stderr=slave,
                          timeout=60, check=False).returncode == 1
    os.close(slave)
    assert b"no agent answers" in os.read(master, 65536)
    os.close(master)
    world.weir.start()


def test_who_is_exempt(world):
    """The rules stand beside the count of the requests that they let by."""
    site = world.site()
    site.attach("--exempt-path", "/livez", "--exempt-path", "/readyz", "--exempt-user", "root-of-all")
    site.limit("user", burst=0)
    assert site.client("alice").get("/livez") == 200
    told = site.status()
    assert told["exempt"] == 1
    assert told["exempt_rules"] == [{"paths": ["/livez", "/readyz"]}]
    assert told["identity"]["exempt_users"] == ["root-of-all"]
