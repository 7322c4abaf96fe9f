# SPDX-License-Identifier: GPL-2.0
"""weir probe: what can be done here, who else is here, and nothing is left behind."""
import json
import os
import shutil
import subprocess

import pytest

from lib.bpf import clsact_filter, passing_program, tcx_link
from lib.netns import Netns
from lib.process import run

LANES = ["answer", "translate", "hold", "reset", "survive"]


def probe(weir, *words):
    done = weir.run("probe", "--json", *words)
    assert done.stderr == ""
    said = json.loads(done.stdout)
    full = all(lane["mode"] == "full" for lane in said["lanes"])
    assert done.returncode == (0 if full else 1)
    return said


def lanes(said):
    return {lane["lane"]: lane for lane in said["lanes"]}


def facts(said):
    return {fact["probe"]: fact["result"] for fact in said["facts"]}


def device(said, name):
    (found,) = [device for device in said["devices"] if device["name"] == name]
    return found


def order(owners):
    return [owner["program"] for owner in owners]


def test_what_works(world):
    place = world.veth()
    place.server_ns.run("ethtool", "-K", "eth0", "tso", "off", "gro", "on")
    said = probe(world.weir, "--netns", place.server_ns.path)
    found = facts(said)
    assert [lane["lane"] for lane in said["lanes"]] == LANES
    assert "unknown" not in found.values()
    assert found["kernel"] == found["btf"] == found["programs"] == "yes"
    answer = lanes(said)["answer"]
    assert (answer["mode"], answer["how"]) == ("full", "tcx" if found["tcx"] == "yes" else "clsact")
    paces = all(found[what] == "yes" for what in ("tcx", "ifb", "fq"))
    assert lanes(said)["hold"]["how"] == ("pace" if paces else "drop" if found["cgroup2"] == "yes" else None)
    assert lanes(said)["reset"]["how"] is None
    assert {each["name"] for each in said["devices"]} == {"lo", "eth0"}
    assert order(device(said, "eth0")["ingress"]) == ["weir_ingress"]
    assert device(said, "eth0")["ingress"][0]["planned"]
    assert "gso" in device(said, "lo")["offloads"]
    offloads = device(said, "eth0")["offloads"]
    assert "tso" not in offloads and "gro" in offloads
    assert place.server_ns.leftovers() == []
    assert not world.pins.exists() and not world.weir.state_dir.exists()


@pytest.mark.together
def test_agrees_with_the_agent(site):
    """The agent has found the same, and its metrics tell it."""
    path = site.place.server_ns.path
    said, metrics = probe(site.weir, "--netns", path), site.weir.metrics()
    netns = {key[0] for key in metrics["weir_probe"]}
    assert len(netns) == 1
    assert {(fact, result) for _, fact, result in metrics["weir_probe"]} == set(facts(said).items())
    assert {(lane, mode, reason) for _, lane, mode, _, reason in
            ((key[3], key[1], key[2], key[0], key[4]) for key in metrics["weir_lane"])} == \
        {(lane["lane"], lane["mode"], lane["reason"] or "") for lane in said["lanes"]}
    loopback = device(said, "lo")["ingress"]
    assert order(loopback) == ["weir_ingress"] and "planned" not in loopback[0]


def test_others_are_shown_in_their_order(world):
    place = world.loopback()
    namespace = place.server_ns
    first, last = passing_program("others_tcx"), passing_program("others_filter")
    world.at_end(os.close, first)
    world.at_end(os.close, last)
    world.pins.parent.mkdir(exist_ok=True)
    clsact_filter(namespace, "lo", last, world.pins.with_name(world.pins.name + "-other"), 7)
    with namespace.entered():
        link = tcx_link(first, 1)
    before = ["others_tcx"] if link is not None else []
    expected = [*before, "weir_ingress", "others_filter"]
    planned = device(probe(world.weir, "--netns", namespace.path), "lo")["ingress"]
    assert order(planned) == expected
    assert [owner["weir"] for owner in planned] == [name == "weir_ingress" for name in expected]
    assert planned[-1]["priority"] == 7
    text = world.weir.run("probe", "--netns", namespace.path).stdout
    assert " > ".join("[weir_ingress]" if name == "weir_ingress" else name for name in expected) in text
    site = world.site(place)
    site.attach()
    assert order(device(probe(world.weir, "--netns", namespace.path), "lo")["ingress"]) == expected
    site.limit("user", burst=1)
    assert site.client().drive(2) == [200, 429]
    if link is not None:
        os.close(link)
    world.weir("detach", "--all", "--force")
    assert "clsact" in namespace.run("tc", "qdisc", "show", "dev", "lo")
    namespace.run("tc", "qdisc", "del", "dev", "lo", "clsact")


def test_conntrack_on_loopback(world):
    place = world.loopback()
    try:
        place.server_ns.run("nft", "-f", "-", input="table inet t { chain c { type filter hook input priority 0; "
                                                    "ct state invalid counter drop; } }")
    except AssertionError as why:
        pytest.skip(f"no conntrack here: {why}")
    translate = lanes(probe(world.weir, "--netns", place.server_ns.path))["translate"]
    assert translate == {"lane": "translate", "mode": "lesser", "how": "close", "reason": "loopback_tracked"}


def test_below_ip_netns_exec(world):
    """It has a /sys of its own: what is pinned ends with it, which both the probe and the agent say."""
    name = f"{world.name}-x"
    namespace = Netns(name)
    world.namespaces.append(namespace)
    words = ["ip", "netns", "exec", name, world.weir.command()[0], "--state-dir", str(world.directory / "own"),
             "--pin-dir", "/sys/fs/bpf/weir"]
    done = subprocess.run([*words, "probe", "--json"], capture_output=True, text=True)
    survive = lanes(json.loads(done.stdout))["survive"]
    assert (done.returncode, survive["mode"], survive["reason"]) == (1, "none", "no_shared_bpffs")
    agent = subprocess.Popen([*words, "agent", "--metrics", "off"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True)
    try:
        line = agent.stderr.readline()
        assert "warning" in line and "mount namespace" in line and "ip netns exec" in line
    finally:
        agent.terminate()
        agent.communicate()


def test_without_root(world):
    """What can be found out without root is told, and of the rest that it takes root."""
    if not shutil.which("setpriv"):
        pytest.skip("there is no setpriv")
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", *world.weir.command("probe", "--json")],
                          capture_output=True, text=True)
    said = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, "")
    assert facts(said)["programs"] == facts(said)["fq"] == "unknown"
    assert facts(said)["kernel"] == "yes"
    assert "root" in [fact["why"] for fact in said["facts"] if fact["probe"] == "programs"][0]


def test_a_slow_kernel(world):
    """Whoever waits for longer than two seconds is told for what, on stderr alone."""
    world.weir.preload("refuse.c", WEIR_TEST_SLOW="4")
    done = subprocess.run(world.weir.command("probe", "--json"), env=world.weir.environment(), capture_output=True, text=True)
    assert done.stderr == "weir: trying programs in the kernel ...\n"
    assert facts(json.loads(done.stdout))["programs"] == "yes"


def test_usage(world):
    assert world.weir.run("probe", "web").returncode == 2
    assert "no-such-namespace" in world.weir.refused("probe", "--netns", "no-such-namespace")
    assert run(*world.weir.command("help", "probe")).startswith("Usage: weir probe")


@pytest.mark.together
def test_what_is_no_binary_is_not_waited_for(world, tmp_path):
    """As a FIFO that nobody writes to: `--binary <(...)` is a pipe, too."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, tmp_path):
        assert world.weir.refused("probe", "--binary", path) == f"weir: {path}: not a regular file"
