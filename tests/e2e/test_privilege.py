# SPDX-License-Identifier: GPL-2.0
"""What a running agent may do: little, and most of it only for the length of a step."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.process import eventually

DAC_READ_SEARCH, NET_ADMIN, SYS_PTRACE, SYS_ADMIN, PERFMON, BPF = 2, 12, 19, 21, 38, 39
KEPT = sum(1 << capability for capability in (DAC_READ_SEARCH, NET_ADMIN, SYS_PTRACE, SYS_ADMIN, PERFMON, BPF))
NOBODY = 65534


def statuses(weir):
    """What /proc says of each of the agent's threads."""
    for task in Path(f"/proc/{weir.process.pid}/task").iterdir():
        yield dict(re.findall(r"(\w+):\s*(.*)", (task / "status").read_text()))


def at_rest(weir):
    """Each second it looks whether servers listen with other sockets, which takes a step in their namespace."""
    return all(int(status["CapEff"], 16) == 0 for status in statuses(weir))


def check(weir):
    eventually(lambda: at_rest(weir), "no step is being made")
    for status in statuses(weir):
        sets = {name: int(value, 16) for name, value in status.items() if name.startswith("Cap") and name != "CapEff"}
        assert sets == {"CapPrm": KEPT, "CapInh": 0, "CapBnd": 0, "CapAmb": 0}
        assert status["NoNewPrivs"] == "1"
        assert status["Umask"] == "0077"
    (core,) = re.findall(r"Max core file size +(\w+) +(\w+)", Path(f"/proc/{weir.process.pid}/limits").read_text())
    assert core == ("0", "0")


@pytest.mark.together
def test_running_agent(site):
    check(site.weir)
    site.limit("user", burst=1)
    assert site.client("a").drive(2) == [200, 429]
    site.weir("explain", "GET", "/")
    check(site.weir)


@pytest.mark.together
def test_other_users_files_and_namespaces(world, tmp_path):
    """A token file that is another user's alone, and a namespace that is found by a process in it."""
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("sesame,alice,1\n")
    tokens.chmod(0o600)
    os.chown(tokens, NOBODY, NOBODY)
    place = world.loopback()
    site = world.site(place)
    there = subprocess.Popen(place.server_ns.command("sleep", 600))
    world.at_end(there.wait)
    world.at_end(there.kill)
    path = f"/proc/{there.pid}/ns/net"
    eventually(lambda: os.path.samefile(path, place.server_ns.path), "it is in the namespace")
    site.weir("attach", "web", "--port", site.server.port, "--netns", path, "--token-file", tokens)
    world.attached()
    assert site.weir.json("reload")["servers"] == [{"name": "web", "tokens": 1, "addresses": 0}]
    check(site.weir)


def test_other_users_policy_files(world, tmp_path):
    directory = tmp_path / "policies"
    directory.mkdir(mode=0o700)
    path = directory / "web.yaml"
    limit = "apiVersion: weir/v1\nkind: Throttle\nmetadata: {{name: web}}\nspec: {{limits: [{{name: user, qps: {}, burst: 5}}]}}\n"
    path.write_text(limit.format(1))
    path.chmod(0o600)
    for owned in path, directory:
        os.chown(owned, NOBODY, NOBODY)
    place = world.loopback()
    server = world.echo(place)
    world.weir.start("off")
    site = world.site(place, server)
    site.attach()
    site.weir.stop()
    site.weir.start("off", "--policy", directory)
    rates = lambda: [limit["qps"] for limit in site.weir.json("limit", "list")["limits"]]
    eventually(lambda: rates() == [1], "the file is in force")
    path.write_text(limit.format(2))
    eventually(lambda: rates() == [2], "its change is seen")
    check(site.weir)


def test_low_port(world):
    """What only the start needs is there at the start."""
    namespace = world.namespace("agent")
    world.weir.namespace = namespace
    world.weir.start(metrics="127.0.0.1:79")
    text = namespace.run("curl", "-sS", "http://127.0.0.1:79/metrics")
    assert "weir_build_info" in text
    check(world.weir)


@pytest.mark.parametrize("how, lacks", [
    (["setpriv", "--reuid", str(NOBODY), "--clear-groups"], "the agent lacks CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN, CAP_SYS_ADMIN: run it as root"),
    (["setpriv", "--bounding-set", "-perfmon"], "the agent lacks CAP_PERFMON: run it as root"),
    (["unshare", "--user", "--map-root-user"], "the kernel refuses bpf() to the agent"),
], ids=["nobody", "one is missing", "user namespace"])
def test_an_agent_that_may_do_nothing(world, how, lacks):
    """It says so when it is started, rather than with the first server. A start that fails touches nothing."""
    if not shutil.which(how[0]):
        pytest.skip(f"there is no {how[0]}")
    if subprocess.run([*how, "true"], capture_output=True).returncode:
        pytest.skip(f"no {' '.join(how)} here")
    done = subprocess.run([*how, *world.weir.command("agent", "--metrics", "off")], env=world.weir.environment(), text=True,
                          capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"weir: {lacks}") and done.stderr.count("\n") == 1
    assert not world.weir.state_dir.exists() and not world.weir.pins.exists()
