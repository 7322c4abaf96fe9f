# SPDX-License-Identifier: GPL-2.0
"""
`attach --cgroup` and listening sockets of another cgroup, as those that a service manager makes and hands over. A connection belongs to the
cgroup in which its listener was made, whoever serves it: on the server's own cgroup nothing would be held.
"""
from pathlib import Path

import pytest

from lib.handed import listener_of
from lib.held import Held
from lib.process import eventually
from lib.server import EchoServer

REQUESTS, ALLOWED = 10, 2

pytestmark = [pytest.mark.together,
              pytest.mark.skipif("cgroup2" not in Path("/proc/mounts").read_text(), reason="no cgroup2 is mounted")]


class Cgroups:
    """Of a service manager, and of the server that it has started."""

    def __init__(self, world):
        self.world = world
        self.place = world.loopback()
        self.manager, self.service = world.cgroup("manager"), world.cgroup("service")
        self.root = self.service.parent

    def listener(self, cgroup, port):
        return listener_of(cgroup, self.place.server_ns, self.place.address, port)

    def tls(self, cgroup):
        port = self.world.port()
        return Held(self.world, self.place, port, self.listener(cgroup, port))

    def http(self, cgroup):
        port = self.world.port()
        server = EchoServer(self.place.server_ns, self.place.address, port, self.listener(cgroup, port))
        self.world.at_end(server.close)
        return self.world.site(self.place, server)

    def warning(self, port):
        return (f"the socket that listens on port {port} was made in cgroup {self.manager}, outside {self.service}: "
                f"weir holds what it cannot read at {self.root} instead")

    def attach(self, weir, *ports):
        words = [word for port in ports for word in ("--port", port)]
        done = weir.run("attach", "web", *words, "--netns", self.place.server_ns.path, "--hold", "drop", "--cgroup",
                        self.service, "--trusted-proxy", self.place.client_address)
        self.world.attached()
        return done.returncode, done.stderr


@pytest.fixture
def cgroups(world):
    return Cgroups(world)


def told(weir):
    return weir.server("web")["hold"]["elsewhere"]


def held_at(world):
    """The inodes of the cgroups with the program."""
    return {int(pin.name.rsplit("-", 1)[1]) for pin in world.pins.glob("net-*/link-cgroup-*")}


def ask_too_often(held):
    """No more than what is allowed is served."""
    held.limit(burst=ALLOWED)
    client = held.client()
    for i in range(REQUESTS):
        client.ask(f"/{i}")
    eventually(lambda: held.packets("held_record") >= 3 or held.server.served() > ALLOWED, "it is sent again and again")
    eventually(lambda: held.server.served() >= ALLOWED, "the server has come to what is allowed")
    assert held.server.served() == ALLOWED
    assert held.records()[0] == ALLOWED


def test_tls_of_a_socket_that_was_handed_over(world, cgroups):
    held = cgroups.tls(cgroups.manager)
    assert cgroups.attach(held.weir, held.server.port) == (0, f"weir: warning: {cgroups.warning(held.server.port)}\n")
    assert told(held.weir) == cgroups.warning(held.server.port)
    assert f"web: warning: {told(held.weir)}\n" in held.weir("status")
    assert held.weir.log().count(told(held.weir)) == 1
    assert held_at(world) == {cgroups.root.stat().st_ino}
    ask_too_often(held)


def test_tls_of_a_socket_of_its_own(world, cgroups):
    """Nothing is said, and the rest of the machine is left alone."""
    held = cgroups.tls(cgroups.service)
    assert cgroups.attach(held.weir, held.server.port) == (0, "")
    assert told(held.weir) is None and "outside" not in held.weir("status")
    assert held_at(world) == {cgroups.service.stat().st_ino}
    ask_too_often(held)


def test_a_socket_of_a_cgroup_below(world, cgroups):
    below = cgroups.service / "worker"
    below.mkdir()
    world.at_end(below.rmdir)
    held = cgroups.tls(below)
    assert cgroups.attach(held.weir, held.server.port) == (0, "")
    assert held_at(world) == {cgroups.service.stat().st_ino}
    ask_too_often(held)


THROTTLE = """\
apiVersion: weir/v1
kind: Throttle
metadata: {{name: {name}}}
spec: {{listen: ['*:{port}'], netns: {netns}, hold: drop, cgroup: '{cgroup}'}}
"""


def test_each_cgroup_has_the_program_once(world, cgroups, tmp_path):
    """A connection would be held and counted twice otherwise: however its cgroup, or the one above, is written."""
    below = cgroups.service / "worker"
    below.mkdir()
    world.at_end(below.rmdir)
    link = tmp_path / "service"
    link.symlink_to(cgroups.service)
    world.agent()

    def attach(name, cgroup):
        policy = tmp_path / "policy.yaml"
        policy.write_text(THROTTLE.format(name=name, port=world.port(), netns=cgroups.place.server_ns.path, cgroup=cgroup))
        done = world.weir.run("apply", "-f", policy)
        assert done.returncode == 0, done
        world.attached()

    for worker in below, f"{link}/worker/":
        attach("worker", worker)
        for service in cgroups.service, f"{cgroups.service}/", f"{cgroups.root}//{cgroups.service.name}/./", link:
            attach("service", service)
            assert held_at(world) == {cgroups.service.stat().st_ino}, (worker, service)
            world.weir("detach", "service")
            assert held_at(world) == {below.stat().st_ino}
        world.weir("detach", "worker")


def test_http_of_a_socket_that_was_handed_over(cgroups):
    """What can be read is limited as ever, and what cannot is held."""
    site = cgroups.http(cgroups.manager)
    assert cgroups.attach(site.weir, site.server.port) == (0, f"weir: warning: {cgroups.warning(site.server.port)}\n")
    site.limit("user", burst=ALLOWED)
    assert site.client("alice").drive(REQUESTS) == [200] * ALLOWED + [429] * (REQUESTS - ALLOWED)
    client = site.client("bob")
    client.send(b"\x17\x03\x03\x00\x20" + bytes(32))
    eventually(lambda: site.status()["unread"], "it cannot be read")
    assert site.server.served() == ALLOWED


def test_one_of_two_sockets(world, cgroups):
    """A server is held where all of its connections are."""
    own, handed_over = cgroups.tls(cgroups.service), cgroups.tls(cgroups.manager)
    ports = own.server.port, handed_over.server.port
    assert cgroups.attach(own.weir, *ports) == (0, f"weir: warning: {cgroups.warning(ports[1])}\n")
    assert held_at(world) == {cgroups.root.stat().st_ino}
    ask_too_often(handed_over)


def test_the_socket_comes_later(world, cgroups):
    """As at boot, when the agent comes first. It is back where it was asked for when the server has a socket of its own."""
    world.agent()
    port = world.port()
    status, said = cgroups.attach(world.weir, port)
    assert status == 0 and "nobody listens" in said and str(cgroups.manager) not in said
    assert held_at(world) == {cgroups.service.stat().st_ino}
    held = Held(world, cgroups.place, port, cgroups.listener(cgroups.manager, port))
    eventually(lambda: told(world.weir) == cgroups.warning(port), "it is seen")
    ask_too_often(held)
    held.server.close()
    eventually(lambda: told(world.weir) is None, "its socket is gone")
    listener = cgroups.listener(cgroups.service, port)
    with listener:
        assert held_at(world) == {cgroups.service.stat().st_ino}
        assert told(world.weir) is None


def test_over_a_restart_of_the_agent(world, cgroups):
    held = cgroups.tls(cgroups.manager)
    cgroups.attach(held.weir, held.server.port)
    held.weir.start(*held.weir.usual)
    assert told(held.weir) == cgroups.warning(held.server.port)
    assert held_at(world) == {cgroups.root.stat().st_ino}
    ask_too_often(held)


def test_a_service_that_is_started_again(world, cgroups):
    """It has another cgroup then, of the same name."""
    held = cgroups.tls(cgroups.service)
    cgroups.attach(held.weir, held.server.port)
    before = held_at(world)
    held.server.close()
    cgroups.service.rmdir()
    gone = f"cgroup {cgroups.service}: No such file or directory: weir holds what it cannot read at {cgroups.root} instead"
    eventually(lambda: told(held.weir) == gone, "its cgroup is gone")
    assert held_at(world) == {cgroups.root.stat().st_ino}
    cgroups.service.mkdir()
    world.at_end(lambda: cgroups.service.exists() and cgroups.service.rmdir())
    eventually(lambda: told(held.weir) is None, "there is a new one")
    assert held_at(world) == {cgroups.service.stat().st_ino} != before
