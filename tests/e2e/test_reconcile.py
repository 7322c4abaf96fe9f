# SPDX-License-Identifier: GPL-2.0
"""What others change in the kernel is found, repaired, counted and told; and nothing else is touched."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from lib import netns
from lib.maps import Maps
from lib.process import eventually, run

pytestmark = pytest.mark.together  # but those that know the server's number, or take the programs away

HASHES = ["listeners", "proxies", "balancers", "groups", "tokens", "addresses", "rules", "vectors", "sources",
          "limits", "overrides"]
SERVERS_MAX = 64


@pytest.fixture
def whole(world):
    """A server that has something in each of the maps, behind an agent that looks at them every second."""
    if not shutil.which("bpftool"):
        pytest.skip("there is no bpftool")
    tokens = world.directory / "tokens.csv"
    tokens.write_text("secret,alice,1,dev\nother,bob,2\n")
    world.weir.start("off", "--resync", 1)
    site = world.site()
    site.attach("--listen", "10.0.0.1:81", "--listen", "10.0.0.2:81", "--trusted-proxy", site.place.client_address,
                "--proxy-protocol", "10.1.0.0/16", "--token-file", tokens, "--address", "10.2.0.0/16,carol",
                "--exempt-group", "system:masters", warning="nobody listens on port 81")
    site.limit("user", burst=5)
    site.limit("user", "alice", burst=2)
    site.limit("user", "bob", burst=3)
    site.weir("limit", "set", "secrets", "--key", "user", "--qps", 0, "--burst", 7, "--verb", "list", "--resource", "secrets",
              "--source", "10.3.0.0/16")
    return site, Maps(world.pins)


def repaired(site, what):
    return site.weir.metrics()["weir_drift_repaired_total"]["web", what]


def keys_of(maps, name):
    """Rules have a generation in their keys, which is another one after they were repaired."""
    keys = maps.entries(name)
    return len(keys) if name in ("rules", "vectors", "sources") else set(keys)


def shapes(maps):
    return {name: keys_of(maps, name) for name in HASHES}


def looked_at_again(weir):
    """Of two looks at the server that have ended, one has begun after this was called."""
    def looks():
        return weir.metrics()["workqueue_work_duration_seconds_count"]["servers",]
    before = looks()
    eventually(lambda: looks() >= before + 2, "the server is looked at")


def test_nothing_is_repaired_that_is_right(whole):
    site, _ = whole
    looked_at_again(site.weir)
    assert set(site.weir.metrics()["weir_drift_repaired_total"].values()) == {0}
    written = site.weir.metrics()["weir_written_total"]
    looked_at_again(site.weir)
    assert site.weir.metrics()["weir_written_total"] == written
    assert site.status()["problem"] is None


def spoil_until_repaired(site, maps, spoil):
    """
    Each of the maps, by spoil(name, key, value). Rules are written anew together: what was spoiled just then is right again
    before it was seen, and is spoiled again.
    """
    before = shapes(maps)
    assert all(before.values()), before

    def all_repaired():
        if shapes(maps) != before:
            return False
        unseen = [name for name in HASHES if not repaired(site, name)]
        for name in unseen:
            spoil(name, *next(iter(maps.entries(name).items())))
        return not unseen

    eventually(all_repaired, "all is as it was")
    assert site.status()["problem"] is None


def test_entries_that_are_gone(whole):
    site, maps = whole
    spoil_until_repaired(site, maps, lambda name, key, _value: maps.delete_if_there(name, key))
    assert "missing" in site.weir.log()


def test_entries_that_are_changed(whole):
    """The value of a listed network, proxy or balancer says nothing but that it is there."""
    site, maps = whole
    before = {name: maps.entries(name) for name in HASHES}

    def change(name, key, value):
        maps.put(name, key, bytes(len(value) - 1) + b"\x07" if name != "listeners" else b"\x09" + value[1:])

    spoil_until_repaired(site, maps, change)
    for name in set(HASHES) - {"rules", "vectors", "sources", "limits", "overrides"}:
        eventually(lambda name=name: maps.entries(name) == before[name], f"{name} is as it was")
    assert "changed" in site.weir.log()


def test_entries_of_nobody(whole):
    """Some that look like the server's, and some of a server that there is not."""
    site, maps = whole
    stranger = (SERVERS_MAX - 1).to_bytes(4, "little")

    def add(name, key, value):
        if name == "listeners":
            maps.put(name, bytes([key[0] ^ 1]) + key[1:], value)
            maps.put(name, bytes([key[0] ^ 2]) + key[1:], stranger)
        elif name in ("proxies", "balancers", "addresses"):
            maps.put(name, key[:-1] + bytes([key[-1] ^ 1]) if key[0] == 160 else b"\xa0" + key[1:], value)
            maps.put(name, key[:4] + stranger + key[8:], value)
        elif name == "limits":
            maps.put(name, (200).to_bytes(4, "little"), value)
            maps.put(name, (60 * 256).to_bytes(4, "little"), value)
        else:
            maps.put(name, key[:-1] + bytes([key[-1] ^ 1]), value)

    spoil_until_repaired(site, maps, add)
    assert "not weir's" in site.weir.log()


@pytest.mark.alone
def test_arrays(whole):
    site, maps = whole
    names = ["settings", "servers", "answers"]
    before = {name: maps.entries(name) for name in names}
    zero = bytes(4)
    for name in names:
        maps.put(name, zero, bytes(len(before[name][zero])))
    eventually(lambda: all(repaired(site, name) for name in names), "they are repaired")
    for name in "settings", "answers":
        assert maps.entries(name)[zero] == before[name][zero]
    # The rules were told anew, under a generation of their own; so the server has everything but that as before.
    assert maps.entries("servers")[zero][:8] == before["servers"][zero][:8]


def test_ports(whole):
    """One that is taken from the server, one that is given to it, one of a server that there is not."""
    site, maps = whole
    used = {key: value for key, value in maps.entries("ports").items() if any(value)}
    assert set(used) == {port.to_bytes(4, "little") for port in (81, site.server.port)}
    for key, value in used.items():
        maps.put("ports", key, bytes(len(value)))
    maps.put("ports", (4444).to_bytes(4, "little"), bytes([1]) + bytes(len(value) - 1))
    maps.put("ports", (4445).to_bytes(4, "little"), bytes([SERVERS_MAX]) + bytes(len(value) - 1))
    eventually(lambda: repaired(site, "ports") == 4, "they are repaired")
    assert {key: value for key, value in maps.entries("ports").items() if any(value)} == used


@pytest.mark.alone
def test_buckets_are_made_again(whole):
    site, maps = whole
    user = (2).to_bytes(4, "little")
    assert user in maps.entries("buckets")
    maps.delete("buckets", user)
    # What is repaired is counted when the repair of the server has ended: later than it can be seen in the kernel.
    eventually(lambda: repaired(site, "buckets") == 1, "they are repaired")
    assert user in maps.entries("buckets")


def test_what_programs_write_is_left_alone(site):
    """Limits and overrides that were taken away are there again, and no one has a second burst."""
    site.weir.stop()
    site.weir.start("off", "--resync", 1)
    maps = Maps(site.world.pins)
    site.limit("user", burst=3)
    site.limit("user", "alice", burst=2)
    client, alice = site.client("bob"), site.client("alice")
    assert client.drive(4) == [200] * 3 + [429]
    assert alice.drive(3) == [200] * 2 + [429]
    for name in "limits", "overrides":
        for key in maps.entries(name):
            maps.delete(name, key)
    eventually(lambda: repaired(site, "limits") == 1 and repaired(site, "overrides") == 1, "they are there again")
    assert client.drive(2) == [429] * 2
    assert alice.drive(2) == [429] * 2
    assert site.client("carol").drive(4) == [200] * 3 + [429]
    assert site.status()["translated"] == 3


@contextlib.contextmanager
def agent_asleep(weir):
    """It finds all that was done meanwhile at once, and repairs nothing in the middle of it."""
    weir.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        weir.process.send_signal(signal.SIGCONT)


def links_on(site):
    with site.place.server_ns.entered():
        return netns.tcx_programs(socket.if_nametoindex("lo"))


def links_come_off(site, maps, how):
    if how == {"clsact"}:
        run("ip", "netns", "exec", site.place.server_ns.name, "tc", "qdisc", "del", "dev", "lo", "clsact")
        return
    for direction in "ingress", "egress":
        maps.bpftool("link", "detach", "pinned", maps.directory / f"link-1-{direction}")


def pins_go(_site, maps, _how):
    for pin in list(maps.directory.glob("link-*")):
        pin.unlink() if pin.is_file() else pin.rmdir()


@pytest.mark.alone
def test_links(site):
    site.weir.stop()
    site.weir.start("off", "--resync", 1)
    maps = Maps(site.world.pins)
    how = {link["how"] for link in site.status()["links"] if link["attached"]}
    site.limit("user", burst=1)
    assert site.client("alice").drive(2) == [200, 429]
    for user, break_links in ("bob", links_come_off), ("carol", pins_go):
        before = repaired(site, "links")
        with agent_asleep(site.weir):
            break_links(site, maps, how)
            eventually(lambda: not links_on(site), "the programs are off the device")
        eventually(lambda: repaired(site, "links") > before, "the programs are on the device again")
        assert site.client(user).drive(2) == [200, 429]
    assert site.status()["problem"] is None


@pytest.mark.alone
def test_pins(site):
    site.weir.stop()
    site.weir.start("off", "--resync", 1)
    maps = Maps(site.world.pins)
    pins = {path.name for path in maps.directory.iterdir()}
    (maps.directory / "limits").unlink()
    (maps.directory / "prog-egress").unlink()
    eventually(lambda: {path.name for path in maps.directory.iterdir()} == pins, "they are pinned again")
    eventually(lambda: repaired(site, "pins") == 2, "and counted")
    site.limit("user", burst=1)
    with agent_asleep(site.weir):
        for path in list(maps.directory.iterdir()):
            path.unlink() if path.is_file() else path.rmdir()
        maps.directory.rmdir()
    eventually(lambda: maps.directory.exists() and {path.name for path in maps.directory.iterdir()} == pins, "all of them")
    # The next agent takes over what the pins hold.
    site.weir.kill()
    site.weir.start("off", "--resync", 1)
    assert site.client("alice").drive(2) == [200, 429]


@pytest.mark.alone
def test_given_up_and_come_back(world):
    """
    A server whose namespace is not there is tried for a while, told of, and in force when it is there again. Each resync is a
    try, too: without them fifteen tries take 50 s.
    """
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=1)
    world.weir.stop()
    name = site.place.server_ns.name
    hidden = world.directory / "netns"
    path = site.place.server_ns.path
    hidden.touch()
    run("mount", "--bind", hidden, path)
    try:
        world.weir.start("off", "--resync", "2s")
        assert site.status()["mode"] == "failed"
        reconcile = eventually(lambda: world.weir.json("status")["agent"]["reconcile"]["given_up"], "it is given up")
        assert list(reconcile) == ["server/web"]
        assert reconcile["server/web"]["tries"] == 15 and name in reconcile["server/web"]["error"]
        assert "server/web: given up after 15 tries" in world.weir("status")
        # More than once where commands are slow, and told once.
        assert world.weir.metrics()["weir_reconcile_given_up_total"][()] >= 1
        assert world.weir.log().count("server/web is given up until the next resync after 15 tries") == 1
    finally:
        run("umount", path)
    eventually(lambda: site.status()["mode"] == "limiting", "it is in force")
    # The worker forgets its tries behind the repair.
    eventually(lambda: world.weir.json("status")["agent"]["reconcile"]["given_up"] == {}, "nothing is given up")
    assert site.client("alice").drive(2) == [200, 429]


def test_resync_is_strict(world):
    for word in "0", "x", "1.5", "-1", "86401", "24h1s", "1500ms", "":
        assert "--resync" in world.weir.refused("agent", "--resync", word, status=2)


def test_queue_metrics(site):
    metrics = site.weir.metrics()
    assert metrics["workqueue_depth"] == {("servers",): 0}
    for name in ("workqueue_adds_total", "workqueue_retries_total", "workqueue_unfinished_work_seconds",
                 "workqueue_longest_running_processor_seconds", "workqueue_queue_duration_seconds_count",
                 "workqueue_work_duration_seconds_count"):
        assert set(metrics[name]) == {("servers",)}, name


# --- one of many

OVERRIDES = 10_000


def throttle(changed=None):
    overrides = [{"subject": f"user-{i}", "qps": 0, "burst": 2 if i != changed else 5} for i in range(OVERRIDES)]
    return json.dumps({"apiVersion": "weir/v1", "kind": "Throttle", "metadata": {"name": "web"},
                       "spec": {"limits": [{"name": "user", "qps": 0, "burst": 1, "overrides": overrides}]}})


def cpu_s(process):
    """What it has had of CPUs."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def apply(site, name, text):
    """The agent's CPU seconds for it."""
    path = site.world.directory / name
    path.write_text(text)
    before = cpu_s(site.weir.process)
    site.weir("apply", "-f", path)
    return cpu_s(site.weir.process) - before


def written(site):
    return site.weir.metrics()["weir_written_total"]["overrides",]


def test_one_override_of_ten_thousand(site):
    """One entry is written, at once, and no bucket but its own has another burst: nor that, which goes on as it was."""
    before = written(site)
    print(f"{OVERRIDES} overrides: {apply(site, 'all.yaml', throttle()):.2f} s of CPU")
    assert written(site) == before + OVERRIDES
    users = [f"user-{i}" for i in range(0, OVERRIDES, 1000)]
    clients = {user: site.client(user) for user in users}
    for client in clients.values():
        assert client.drive(3) == [200, 200, 429]
    background = subprocess.Popen(
        site.place.client_ns.command("sh", "-c", "while :; do curl -s -o /dev/null -H 'X-Remote-User: user-5' "
                                     f"'http://{site.place.authority}:{site.server.port}/?[1-100]'; done"))
    try:
        took = apply(site, "one.yaml", throttle(changed=3000))
        print(f"one of them, under load: {took:.2f} s of CPU")
        assert written(site) == before + OVERRIDES + 1
        assert took < 10
        for user, client in clients.items():
            # From a burst of 2 to one of 5, the bucket of one that has used up its tokens has no more than it had.
            assert client.drive(2) == [429, 429], user
        assert site.client("user-3001").drive(3) == [200, 200, 429]
    finally:
        background.kill()
        background.wait()


@pytest.fixture
def home(world):
    """An agent that looks often, a server of a namespace, and a process that stays in there; it ends with who calls it."""
    world.weir.start("off", "--resync", 1)
    namespace = world.namespace("home")
    done = world.weir.run("attach", "web", "--port", 8080, "--netns", namespace.name)
    assert (done.returncode, "nobody listens on port 8080" in done.stderr) == (0, True)
    process = subprocess.Popen(namespace.command("sleep", "600"))
    world.at_end(process.wait)
    world.at_end(process.kill)
    eventually(lambda: os.path.samefile(f"/proc/{process.pid}/ns/net", namespace.path), "it is in there")
    return namespace, process


def looks(weir):
    return weir.metrics()["workqueue_adds_total"]["servers",]


def look(weir, times):
    seen = looks(weir)
    eventually(lambda: looks(weir) >= seen + times, "the server is looked at")


def peer(world, namespace):
    """A device that is there as long as the namespace is."""
    other = world.namespace("other")
    namespace.ip("link", "add", "one", "type", "veth", "peer", "name", "two", "netns", other.name)
    return lambda: "two" in other.devices()


@pytest.mark.alone
def test_a_namespace_that_was_made_anew(world, home):
    """As long as something runs in the one that the agent holds, that one is limited, and people are told. Then it is the new one."""
    (namespace, process), weir = home, world.weir
    look(weir, 2)
    assert weir.server()["problem"] is None
    is_there = peer(world, namespace)
    namespace.delete()
    run("ip", "netns", "add", namespace.name)
    recreated = f"its network namespace, {namespace.name}, was recreated: detach and attach"
    eventually(lambda: recreated in (weir.server()["problem"] or ""), "that it is another one is seen")
    look(weir, 4)
    assert weir.log().count("was recreated") == 1 and weir.server()["mode"] == "limiting" and is_there()
    process.kill()
    process.wait()
    eventually(lambda: not is_there(), "the old one has ended")
    eventually(lambda: weir.server()["mode"] == "limiting" and weir.server()["problem"] is None, "the new one is limited")
    assert weir.log().count("is gone, and was let go") == 1
    weir("detach", "web")


@pytest.mark.alone
def test_a_namespace_that_was_deleted(world, home):
    """One in which a process still runs, or a socket listens, is limited as before. The agent does not keep the others."""
    (namespace, process), weir = home, world.weir
    is_there = peer(world, namespace)
    with namespace.entered():
        listener = socket.create_server(("127.0.0.1", 0))
    world.namespaces.remove(namespace)
    namespace.delete()
    look(weir, 4)
    assert weir.server()["problem"] is None and weir.server()["mode"] == "limiting"
    process.kill()
    process.wait()
    look(weir, 4)
    assert weir.server()["problem"] is None and is_there()
    listener.close()
    eventually(lambda: not is_there(), "it has ended")
    gone = f"its network namespace, {namespace.name}, is gone: it is limited once there is one of that name"
    eventually(lambda: weir.server()["problem"] == gone, "that it is not limited is told")
    assert weir.server()["mode"] == "failed" and list(world.pins.glob("net-*")) == []
    log = weir.log()
    assert log.count("no process or name leads to it: the agent lets go of it soon") == 1
    assert log.count(f'server "web": its network namespace, {namespace.name}, is gone, and was let go') == 1
    run("ip", "netns", "add", namespace.name)
    world.namespaces.append(namespace)
    eventually(lambda: weir.server()["mode"] == "limiting" and weir.server()["problem"] is None, "the new one is limited")
    weir("detach", "web")


@pytest.mark.alone
def test_the_namespace_of_another_process(world):
    """The number of a process that has ended is given again: whose namespace that one has was never to be limited."""
    weir = world.weir
    weir.start("off", "--resync", 1)
    namespace = world.namespace("away")
    path = f"/proc/{os.getpid()}/task/{threading.get_native_id()}/ns/net"
    with namespace.entered():
        assert weir.run("attach", "web", "--port", 8080, "--netns", path).returncode == 0
    world.namespaces.remove(namespace)
    namespace.delete()
    other = f"its network namespace, {path}, is that of another process now: detach the server, and attach it by the new one"
    eventually(lambda: weir.server()["problem"] == other, "that it is another one is told")
    assert weir.server()["mode"] == "failed" and list(world.pins.glob("net-*")) == []
    weir("detach", "web", "--force")
