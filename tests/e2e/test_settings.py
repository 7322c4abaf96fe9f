# SPDX-License-Identifier: GPL-2.0
"""What attach sets is changed by one apply: under load nothing is lost, and nothing gets past its limit meanwhile."""
import threading

import pytest

from lib.client import Client
from lib.process import eventually

pytestmark = pytest.mark.together

BURST = 400
SETTINGS = [
    "framing: pass", "bodies: unread", "bodies: read", "hold: drop", "whenFull: open", "paths: raw", "namespaceFrom: 'segment=1'", "maxRetryAfter: 7",
    "xdp: generic", "synCookies: xdp", "xdp: 'off'", "identity: {exemptGroups: [ops, system:masters, dev]}",
    "identity: {exemptUsers: [carol], addresses: ['192.0.2.0/24,nodes']}", "identity: {newSubjects: '5:5'}",
]


class Hammer:
    """One user's requests on one connection, one after the other, until it is told to stop."""

    def __init__(self, site, user):
        self.client = site.client(user)
        self.stopping = threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            while not self.stopping.is_set():
                self.client.get("/r")
        except Exception as failure:  # the test's own thread says so
            self.failure = failure

    def heard(self):
        return sum(self.client.heard.values())

    def go_on(self, n=20):
        before = self.heard()
        eventually(lambda: self.failure or self.heard() >= before + n, "requests are answered")

    def stop(self):
        self.stopping.set()
        self.thread.join()
        assert not self.failure, repr(self.failure)


class Throttle:
    """A policy file for the site's server, with one setting more or less."""

    def __init__(self, site, directory, listen=None):
        self.site = site
        self.path = directory / "policy.yaml"
        self.listen = [f"*:{site.server.port}"] if listen is None else listen

    def text(self, setting=""):
        line = f"  {setting}\n" if setting else ""
        proxies = "" if setting.startswith("trustedProxies") else "  trustedProxies: ['0.0.0.0/0']\n"
        return (f"apiVersion: weir/v1\nkind: Throttle\nmetadata: {{name: web}}\nspec:\n  listen: {self.listen}\n"
                f"  netns: {self.site.place.server_ns.path}\n{proxies}{line}"
                f"  limits:\n  - {{name: user, qps: 0, burst: {BURST}}}\n")

    def apply(self, setting=""):
        self.path.write_text(self.text(setting))
        return self.site.weir("apply", "-f", self.path)

    def refused(self, setting=""):
        self.path.write_text(self.text(setting))
        return self.site.weir.refused("apply", "-f", self.path)


@pytest.fixture
def throttle(world, tmp_path):
    return Throttle(world.site(), tmp_path)


def test_each_setting_under_load(throttle):
    """Of each: it is said, comes into force, and its default comes back; the bucket is the same all the time."""
    site = throttle.site
    throttle.apply()
    hammer = Hammer(site, "alice")
    try:
        for setting in SETTINGS:
            hammer.go_on()
            assert throttle.apply(setting) == 'server "web": Throttle web configured\n', setting
            assert throttle.apply(setting) == 'server "web": Throttle web unchanged\n', setting
            assert setting.split(":")[0] in site.weir("export")
            hammer.go_on()
            throttle.apply()
    finally:
        hammer.stop()
    assert hammer.client.heard[200] == BURST and hammer.client.heard[429] > 0
    assert site.server.served() == BURST


def test_who_is_exempt_changes(throttle):
    site = throttle.site
    throttle.apply()
    alice = site.client("alice")
    assert alice.drive(BURST + 1).count(429) == 1
    throttle.apply("identity: {exemptUsers: [alice]}")
    assert alice.get("/r") == 200
    throttle.apply("identity: {exemptGroups: [dev, ops]}")
    assert alice.get("/r") == 429
    assert alice.get("/r", X_Remote_Group="ops") == 200
    throttle.apply("identity: {exemptGroups: [dev]}")
    assert alice.get("/r", X_Remote_Group="ops") == 429
    throttle.apply("trustedProxies: [192.0.2.1/32]")  # nobody's word is taken: the address counts
    assert alice.get("/r") == 200


def test_an_address_becomes_a_port(throttle):
    """From one to the other no request passes unseen; back it must wait for those that were refused."""
    site, port = throttle.site, throttle.site.server.port
    throttle.listen = [f"{site.place.address}:{port}"]
    throttle.apply()
    hammer = Hammer(site, "alice")
    try:
        eventually(lambda: hammer.failure or hammer.client.heard[429], "a request is refused")
        for listen in [f"*:{port}"], [f"*:{port}", "*:7999"]:
            hammer.go_on()
            throttle.listen = listen
            throttle.apply()
        hammer.go_on()
        throttle.listen = [f"{site.place.address}:{port}"]
        assert "cannot lose a port" in throttle.refused()
        hammer.go_on()
    finally:
        hammer.stop()
    assert hammer.client.heard[200] == BURST


def test_what_is_translated_keeps_its_port(throttle):
    site, port = throttle.site, throttle.site.server.port
    throttle.apply()
    client = Client(site.place, port, "alice")
    assert client.drive(BURST + 1).count(429) == 1
    throttle.listen = ["*:7999"]
    assert "1 connection on which requests were refused has to end first" in throttle.refused()
    assert client.get("/r") == 429
    client.close()

    def applied():
        throttle.path.write_text(throttle.text())
        return site.weir.run("apply", "-f", throttle.path).returncode == 0

    eventually(applied, "the connection has ended")
    assert site.client("alice").get("/r") == 200  # nobody limits this port any more


def test_what_cannot_change(world, throttle):
    site = throttle.site
    throttle.apply()
    assert "its keys cannot be changed" in throttle.refused("keys: 10")
    assert "no interface" in throttle.refused("interfaces: [none0]")
    assert site.client("alice").get("/r") == 200


def test_beside_a_command(world, tmp_path):
    """A server that a command has attached gets back what the command said."""
    site = world.site()
    site.attach("--hold", "drop", "--max-retry-after", "9")
    throttle = Throttle(site, tmp_path)
    throttle.apply("maxRetryAfter: 3")
    assert "maxRetryAfter: 3" in site.weir("export") and "hold: drop" in site.weir("export")
    site.weir("delete", "-f", throttle.path)
    assert "maxRetryAfter: 9" in site.weir("export")
