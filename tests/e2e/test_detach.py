# SPDX-License-Identifier: GPL-2.0
"""Servers are attached and let go under load: nothing is lost, no connection breaks."""
import threading

import pytest

from lib.process import PATIENCE_S, eventually

pytestmark = pytest.mark.together

CLIENTS = 12
BURST = 5


class Load:
    """Clients that go on asking until they are told to stop, each on one connection."""

    def __init__(self, site, users):
        self.site = site
        self.clients = [site.client(user) for user in users]
        self.heard = [[] for _ in self.clients]
        self.failures = []
        self.stopping = False
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(len(self.clients))]
        for thread in self.threads:
            thread.start()

    def run(self, i):
        try:
            while not self.stopping:
                n = len(self.heard[i])
                self.heard[i].append(self.clients[i].get(f"/{i}/{n}?size={n % 7 * 3000 + 40}"))
        except BaseException as failure:
            self.failures.append((i, len(self.heard[i]), failure))
            raise

    def more(self, n):
        """Waits until every client has had n more answers."""
        wanted = [len(heard) + n for heard in self.heard]
        eventually(lambda: self.failures or all(len(h) >= w for h, w in zip(self.heard, wanted)), "answers")
        assert not self.failures

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert not self.failures

    def count(self, status):
        return sum(heard.count(status) for heard in self.heard)


@pytest.fixture(params=["loopback", "veth"])
def place(request, world):
    return world.place(request.param)


USERS = ["noisy"] * (CLIENTS // 2) + ["quiet"] * (CLIENTS // 2)


def test_detach_under_load(world, place):
    site = world.site(place)
    site.attach()
    site.limit("user", "noisy", burst=BURST)
    load = Load(site, USERS)
    load.more(20)
    shed = load.count(429)
    site.weir("detach", "web")
    (status,) = site.weir.servers()
    assert (status["mode"], status["draining"], status["translated"]) == ("draining", True, CLIENTS // 2)
    load.more(1)  # what was answered just before
    shed = load.count(429)
    assert shed >= CLIENTS // 2
    load.more(20)
    load.stop()
    assert load.count(429) == shed
    assert load.count(200) == site.server.served()
    assert len(site.server.connections) == CLIENTS
    assert site.weir.counts()["shed"] == shed


def test_detach_under_load_with_force(world, place):
    """Resets the translated connections, counts them, and touches no other."""
    site = world.site(place)
    site.attach()
    site.limit("user", "noisy", burst=BURST)
    quiet = Load(site, ["quiet"] * 6)
    noisy = [site.client("noisy") for _ in range(4)]
    for i, client in enumerate(noisy):
        assert client.drive(10, f"/{i}")[-1] == 429
    quiet.more(20)
    assert site.weir.json("detach", "web", "--force") == {"servers": [{"name": "web", "reset": 4, "draining": 0}]}
    assert site.weir.servers() == []
    for client in noisy:
        with pytest.raises(ConnectionError):
            client.send(client.head("/more"))
            client.read()
    quiet.more(20)
    quiet.stop()
    assert quiet.count(429) == 0
    assert quiet.count(200) + BURST == site.server.served()
    assert site.client("noisy").drive(BURST + 1) == [200] * (BURST + 1)


@pytest.mark.alone
def test_nothing_is_attached(world):
    """What would be done to all servers is done to none: that is said, and a failure unless it was to end with none."""
    world.weir.start()
    assert world.weir("detach", "--all") == "no server is attached\n"
    assert world.weir.json("detach", "--all") == {"servers": []}
    for command in "pause", "resume", "reload":
        assert world.weir.refused(command) == "weir: no server is attached"


def test_detach_without_translated_connections(site):
    client = site.client()
    assert client.get("/1") == 200
    assert site.weir.json("detach", "web") == {"servers": [{"name": "web", "reset": 0, "draining": 0}]}
    assert site.weir.servers() == []
    assert client.get("/2") == 200


def test_attach_under_load(world, place):
    """Connections that are there already are answered once one whole exchange was seen."""
    site = world.site(place)
    load = Load(site, USERS)
    load.more(10)
    before = site.server.served()
    site.attach()
    load.more(3)  # over the limit before a whole exchange was seen, a request would wait
    site.limit("user", "noisy", burst=BURST)
    load.more(30)
    load.stop()
    assert before < load.count(200) == site.server.served()
    for heard, user in zip(load.heard, USERS):
        assert (429 in heard) == (user == "noisy")
    counts = site.weir.counts()
    assert counts["shed"] == load.count(429)
    assert len(site.server.connections) == CLIENTS
    assert site.unread() == {"mid_stream": CLIENTS}


def test_attach_to_an_idle_connection(world, place):
    """Exact: what passes, what is refused."""
    site = world.site(place)
    client = site.client()
    assert client.drive(3) == [200] * 3
    site.attach()
    site.limit("user", burst=2)
    assert client.drive(2, "/within") == [200] * 2
    assert client.drive(3, "/refused") == [429] * 3
    assert client.get("/livez?size=100000") == 200
    assert site.weir.counts()["shed"] == 3


def test_attach_in_the_middle_of_an_answer(world, place):
    site = world.site(place)
    client = site.client()
    client.ask("/slow?delay_ms=500&size=300000")
    site.attach()
    site.limit("user", burst=2)
    client.check(client.read(), "/slow?delay_ms=500&size=300000")
    assert client.drive(4) == [200, 200, 429, 429]


def test_attach_again_after_force(world, place):
    site = world.site(place)
    for _ in range(3):
        site.attach()
        site.limit("user", burst=1)
        assert site.client().drive(3) == [200, 429, 429]
        site.weir("detach", "--all", "--force")
