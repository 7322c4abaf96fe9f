# SPDX-License-Identifier: GPL-2.0
"""What cannot be read waits for its time where the kernel can have it wait: nothing is dropped, each has its turn."""
import re
import time

import pytest

from lib.held import Held
from lib.process import eventually
from lib.tls import drive_together

pytestmark = pytest.mark.together

DEVICE = "weir-hold"


def devices(namespace):
    return re.findall(r"^\d+: ([^:@]+)", namespace.ip("link"), re.MULTILINE)


@pytest.fixture
def attached(world):
    """attached(place) is a server there; the test is skipped where the kernel cannot pace."""
    def attach(place=None):
        held = Held(world, place or world.loopback())
        held.attach(hold="auto")
        hold = held.weir.server("web")["hold"]
        if hold["mode"] != "pace":
            pytest.skip(hold["no_pace"])
        return held
    return attach


def test_where_it_cannot_wait_it_is_dropped(world):
    """And it is said why; who insists is refused."""
    held = Held(world, world.loopback())
    held.attach(hold="auto")
    hold = held.weir.server("web")["hold"]
    if hold["mode"] == "pace":
        pytest.skip("it can wait here")
    assert f"web: TLS and other unreadable traffic is held by dropping: {hold['no_pace']}\n" in held.weir("status")
    assert held.weir.metrics()["weir_hold_paced"]["web",] == 0
    assert DEVICE not in devices(held.place.server_ns)
    held.weir("detach", "web")
    refused = held.weir.refused("attach", "web", "--port", held.server.port, "--netns", held.place.server_ns.path,
                              "--hold", "pace")
    assert hold["no_pace"] in refused
    assert held.weir.servers() == []


@pytest.mark.parametrize("kind", ["user", "total"])
@pytest.mark.parametrize("where,family", [("loopback", 4), ("loopback", 6), ("veth", 4), ("veth", 6)])
def test_all_succeed_and_none_before_its_time(world, attached, where, family, kind):
    qps, burst, clients, each = 8, 2, 3, 5
    held = attached(world.place(where, family))
    assert held.weir.metrics()["weir_hold_paced"]["web",] == 1
    held.limit(kind, qps=qps, burst=burst)
    before = time.monotonic()
    drive_together([held.client() for _ in range(clients)], each)
    elapsed_s = time.monotonic() - before
    passed, waited, _ = held.records()
    assert passed == held.server.served() == clients * each
    assert passed <= burst + qps * elapsed_s
    assert 0 < waited <= passed - burst
    assert held.packets("paced") >= waited
    assert held.packets("held_record") == 0
    assert 0 < held.held_s() <= clients * elapsed_s


def test_each_has_its_turn(world, attached):
    """Requests that wait together are served in the order in which they came."""
    held = attached(world.veth())
    held.limit(qps=5, burst=1)
    clients = [held.client() for _ in range(10)]
    for i, client in enumerate(clients):
        client.ask(f"/{i}")
    assert [client.read() for client in clients] == [f"/{i}" for i in range(10)]
    assert held.server.targets == [f"/{i}" for i in range(10)]
    passed, waited, _ = held.records()
    assert passed == 10
    assert waited > 0


def test_long_records_go_in_order(attached):
    """The bytes of an upload stay behind the record that waits, and what comes behind it too."""
    held = attached()
    held.limit(qps=50, burst=2)
    client = held.client()
    for size in (6000, 10, 60000, 1):
        client.get("/" + "x" * size)
    assert held.packets("held_record") == 0


def test_too_long_to_wait(attached):
    """Then it is dropped, and comes again."""
    held = attached()
    held.limit(qps=0, burst=1)
    client = held.client()
    client.drive(1)
    client.ask("/second")
    eventually(lambda: held.packets("held_record") > 1, "it has come again")
    assert held.packets("paced") == 0
    held.limit(qps=10, burst=1)
    assert client.read() == "/second"
    assert held.records() == (2, 1, 0)


def test_survives_the_agent(attached):
    held = attached()
    held.limit(qps=5, burst=1)
    client = held.client()
    held.weir.kill()
    client.drive(3)
    held.weir.start()
    assert held.weir.server("web")["hold"]["mode"] == "pace"
    client.drive(3)
    passed, waited, _ = held.records()
    assert passed == 6
    assert waited > 0


def test_detach_leaves_nothing(attached):
    """What waits is lost with the device, and its client's TCP brings it again."""
    held = attached()
    held.limit(qps=0.25, burst=1)
    client = held.client()
    client.drive(1)
    client.ask("/waits")
    eventually(lambda: held.packets("paced"), "it waits")
    assert DEVICE in devices(held.place.server_ns)
    held.weir("detach", "web")
    assert DEVICE not in devices(held.place.server_ns)
    assert client.read() == "/waits"


def test_a_device_that_went_away_comes_back(attached):
    held = attached()
    held.limit(qps=10, burst=1)
    client = held.client()
    client.drive(3)
    held.place.server_ns.ip("link", "del", DEVICE)
    client.drive(3)
    eventually(lambda: DEVICE in devices(held.place.server_ns), "the agent makes it anew")
    client.drive(3)
    assert held.records()[0] == held.server.served() == 9
