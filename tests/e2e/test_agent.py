# SPDX-License-Identifier: GPL-2.0
"""The agent may go, cleanly or not: what is in force stays in force, and the next agent takes it over."""
import contextlib
import fcntl
import json
import os
import resource
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from lib.process import PATIENCE_S, eventually, run
from lib.weir import Weir, parse_metrics
from test_detach import Load

pytestmark = pytest.mark.together


def end_of_agent(weir, how):
    weir.kill() if how == "killed" else weir.stop()


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_end_under_load(world, how):
    site = world.site(world.veth())
    site.attach()
    site.limit("user", burst=10)
    site.limit("user", "quiet", burst=1_000_000)
    load = Load(site, ["noisy"] * 3 + ["quiet"] * 3)
    load.more(20)
    links = site.status()["links"]
    end_of_agent(world.weir, how)
    load.more(50)
    assert site.client("another").drive(12) == [200] * 10 + [429] * 2
    world.weir.start()
    load.more(50)
    load.stop()
    # The buckets are those of before: nobody had a second burst.
    assert sum(heard.count(200) for heard in load.heard[:3]) == 10
    assert all(429 not in heard for heard in load.heard[3:])
    assert site.status()["links"] == links
    site.check(passed=load.count(200) + 10, shed=load.count(429) + 2)
    assert len(site.server.connections) == 7


def programs(world):
    """The numbers of those that are pinned."""
    return [json.loads(run("bpftool", "-j", "prog", "show", "pinned", pin))["id"] for pin in sorted(world.pins.glob("net-*/prog-*"))]


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_limits_after_restart(site, how):
    """The next agent loads no programs: verifying them takes half a second of CPU."""
    loaded = programs(site.world)
    site.limit("user", burst=3)
    site.limit("user", "alice", burst=5)
    limits = site.weir.json("limit", "list")
    assert site.client("alice").drive(2) == [200, 200]
    end_of_agent(site.weir, how)
    assert "no agent" in site.weir.refused("status")
    site.weir.start()
    assert loaded and programs(site.world) == loaded
    assert site.weir.json("limit", "list") == limits
    assert site.client("alice").drive(4) == [200] * 3 + [429]
    site.limit("user", "alice", burst=0)
    assert site.client("alice").drive(1) == [429]
    assert site.client("bob").drive(4) == [200] * 3 + [429]


def test_pause_survives(site):
    site.limit("user", burst=0)
    site.weir("pause", "web")
    site.weir.kill()
    site.weir.start()
    assert site.status()["mode"] == "paused"
    assert site.client().get("/") == 200


def test_second_agent_is_refused(site):
    line = site.weir.refused("agent", "--metrics", "off")
    assert f"another agent (pid {site.weir.process.pid}, since " in line
    site.limit("user", burst=0)
    assert site.client().get("/") == 429


def test_state_directory_deleted(site):
    """As by what cleans up /run: the agent makes it again, and is no second time there."""
    weir = site.weir
    site.limit("user", burst=0)
    lock = weir.state_dir / "lock"
    weir.log_begin()
    shutil.rmtree(weir.state_dir)
    eventually(lambda: lock.exists() and (weir.state_dir / "state.json").exists(), "the state is saved again")
    assert f"{lock} was deleted, and is made again" in weir.log()
    assert f"another agent (pid {weir.process.pid}, since " in weir.refused("agent", "--metrics", "off")
    site.limit("user", "alice", burst=1)
    limits = weir.json("limit", "list")
    weir.kill()
    weir.start()
    assert weir.json("limit", "list") == limits
    assert site.client("alice").drive(2) == [200, 429]


def test_socket_replaced(site):
    """Commands reach the agent all the same, and soon."""
    socket_path = site.weir.state_dir / "weir.sock"
    socket_path.unlink()
    socket_path.touch()
    eventually(lambda: site.weir.run("status").returncode == 0, "the agent has made its socket again")
    assert f"{socket_path} was replaced, and is made again" in site.weir.log()


def test_two_agents_on_one_pin_dir(world, tmp_path):
    """With a state directory of its own: it may not touch the namespace that the first one holds."""
    other = Weir(tmp_path / "other", world.pins)
    other.state_dir.parent.mkdir()
    site = world.site()
    site.attach()
    site.limit("user", burst=1)
    other.start()
    assert str(world.pins) in other.refused("attach", "api", "--port", 81, "--netns", site.place.server_ns.path)
    assert other.servers() == []
    other.stop()
    assert site.client().drive(2) == [200, 429]
    site.check(passed=1, shed=1)


def test_detach_after_kill(site):
    site.limit("user", burst=1)
    client = site.client()
    assert client.drive(3) == [200, 429, 429]
    site.weir.kill()
    site.weir.start()
    assert site.weir.json("detach", "web", "--force")["servers"] == [{"name": "web", "reset": 1, "draining": 0}]
    assert site.client().drive(3) == [200] * 3


def test_drain_goes_on_after_kill(site):
    site.limit("user", burst=1)
    client = site.client()
    assert client.drive(3) == [200, 429, 429]
    site.weir("detach", "web")
    site.weir.kill()
    assert client.drive(3) == [200] * 3
    site.weir.start()
    assert (site.status()["mode"], site.status()["translated"]) == ("draining", 1)
    assert client.drive(3) == [200] * 3


def test_pins_are_gone(site):
    """As after a reboot: the state is there and the kernel knows nothing."""
    site.limit("user", burst=1)
    assert site.client().drive(2) == [200, 429]
    site.weir.stop()
    for directory in site.weir.pins.iterdir():
        shutil.rmtree(directory)
    site.weir.start()
    assert site.client().drive(2) == [200, 429]
    assert site.weir.counts()["shed"] == 1


def site_on_a_bpffs_of_its_own(world):
    world.mount_bpffs()
    world.weir.start("off", "--resync", 1)
    site = world.site()
    site.attach()
    site.limit("user", burst=1)
    return site


@pytest.mark.alone
def test_bpffs_mounted_over(world):
    """What is wrong is told, limits stay in force, and all is in order when that is gone."""
    site = site_on_a_bpffs_of_its_own(world)
    run("mount", "-t", "bpf", "weir-test", world.bpffs)
    try:
        eventually(lambda: "its pin is hidden: unmount" in (site.status()["problem"] or ""), "it is told")
        assert site.client().drive(2) == [200, 429]
    finally:
        run("umount", "-l", world.bpffs)
    eventually(lambda: site.status()["problem"] is None, "all is in order")
    assert site.client().drive(1) == [429]


@pytest.mark.alone
def test_bpffs_read_only(world):
    """It is told as that. Limits stay in force, also while no agent begins for that reason."""
    site = site_on_a_bpffs_of_its_own(world)
    run("mount", "-o", "remount,ro", world.bpffs)
    try:
        eventually(lambda: "is mounted read-only" in (site.status()["problem"] or ""), "it is told")
        assert site.client().drive(2) == [200, 429]
        world.weir.kill()
        world.weir.launch()
        assert world.weir.process.wait(60) == 1
        assert "is mounted read-only" in world.weir.log().splitlines()[-1]
        assert site.client().drive(1) == [429]
    finally:
        run("mount", "-o", "remount,rw", world.bpffs)
    world.weir.start()
    assert site.status()["problem"] is None
    assert site.client().drive(1) == [429]


@pytest.mark.alone
def test_namespace_is_gone(world):
    site = world.site(world.veth())
    site.attach()
    world.weir.stop()
    gone = world.namespaces.pop(0)
    path = gone.path
    gone.delete()
    world.weir.start()
    (server,) = world.weir.servers()
    assert server["mode"] == "failed"
    assert path in server["problem"]
    assert "--force" in world.weir.refused("detach", "web")
    world.weir("detach", "web", "--force")
    for directory in world.pins.iterdir():
        shutil.rmtree(directory)


@pytest.fixture
def port():
    """One that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def fetch(port, path="/metrics", method="GET"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def test_metrics_over_http(world, port):
    world.weir.start(metrics=f"127.0.0.1:{port}")
    site = world.site()
    site.attach()
    site.limit("user", burst=1)
    assert site.client().drive(3) == [200, 429, 429]
    status, kind, text = fetch(port)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = parse_metrics(text)
    assert families["weir_requests_total"]["shed", "web"] == 2
    for name in "weir_requests_total", "weir_shed_total", "weir_connections", "weir_translated_connections":
        assert families[name] == site.weir.metrics()[name]
    assert [fetch(port, path)[0] for path in ("/livez", "/readyz")] == [200, 200]
    assert [fetch(port, "/healthz")[0], fetch(port, "/")[0], fetch(port, method="POST")[0]] == [200, 404, 405]


@pytest.mark.alone
def test_slow_and_endless_clients_of_the_metrics(world, port):
    """Others are answered meanwhile; who never ends his request is let go, and so is who never ends his head."""
    world.weir.start(metrics=f"127.0.0.1:{port}")
    slow = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(200)]
    try:
        for connection in slow:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        assert fetch(port)[0] == 200
        with socket.create_connection(("127.0.0.1", port), timeout=60) as endless:
            with contextlib.suppress(OSError):
                endless.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-Endless: " + b"x" * 1_000_000)
            with contextlib.suppress(ConnectionError):
                assert not endless.recv(65536).startswith(b"HTTP/1.1 200")
        assert [rest for connection in slow if (rest := connection.recv(65536)).startswith(b"HTTP/1.1 200")] == []
        assert fetch(port)[0] == 200
    finally:
        for connection in slow:
            connection.close()


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.alone
def test_many_clients_of_the_metrics(world, port):
    """They are taken as long as there is room; the others wait, and commands are answered."""
    world.weir.start(metrics=f"127.0.0.1:{port}")
    before = open_files(world.weir.process.pid)
    clients = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(300)]
    try:
        eventually(lambda: open_files(world.weir.process.pid) >= before + 256, "as many as there is room for are taken")
        assert world.weir.servers() == []
        assert open_files(world.weir.process.pid) <= before + 257  # the command's own, too
    finally:
        for client in clients:
            client.close()
    assert fetch(port)[0] == 200
    eventually(lambda: open_files(world.weir.process.pid) == before, "nothing is left of them")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.alone
def test_no_more_files_for_clients_of_the_metrics(world, port):
    """That is not tried again and again, and the log not filled with it. Commands are refused with a word, and served afterwards."""
    world.weir.start(metrics=f"127.0.0.1:{port}")
    pid = world.weir.process.pid
    most = open_files(pid) + 8
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
    clients = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(30)]
    eventually(lambda: open_files(pid) == most, "it has all the files that it may have")
    eventually(lambda: "no file descriptor is left" in world.weir.log(), "the agent says so")
    used = cpu_seconds(pid)
    assert world.weir.refused("status") == ("weir: the agent can take no more commands: Too many open files: end others, or give it more "
                                            "(LimitNOFILE= of its service)")
    time.sleep(2)
    assert cpu_seconds(pid) < used + 0.5
    for client in clients:
        client.close()
    assert fetch(port)[0] == 200
    assert world.weir.servers() == []
    eventually(lambda: "there are file descriptors to spare again" in world.weir.log(), "the agent says that it is over")
    log = world.weir.log()
    assert len(log.splitlines()) < 20 and log.count("no file descriptor is left") == 1


def test_metrics_are_clean(site):
    if not shutil.which("promtool"):
        pytest.skip("there is no promtool")
    site.limit("user", burst=1)
    assert site.client('q"uo\\te').drive(3) == [200, 429, 429]
    text = site.weir("metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "# TYPE weir_requests_total counter\n" in text
    assert parse_metrics(text)["weir_build_info"] == {(site.weir.json("version")["version"],): 1}


@pytest.mark.alone
def test_a_log_that_nobody_reads(world):
    """As that of a container whose runtime hangs: the agent goes on, and says what was lost when somebody reads again."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 8192)
    weir = world.weir
    weir.process = subprocess.Popen(weir.command("agent", "--metrics", "off"), env=weir.environment(), stdin=subprocess.DEVNULL,
                                    stdout=writer, stderr=writer)
    os.close(writer)
    with open(reader, "rb", buffering=0) as log:
        eventually(lambda: weir.run("status").returncode == 0, "it answers")
        for _ in range(8192 // 64):
            assert weir.refused("pause", "n" * 40) == f'weir: there is no server "{"n" * 40}": none is attached'
        weir("status")
        assert b"lost" not in log.read(1 << 16)
        weir.refused("pause", "web")
        assert b"lines of the log are lost: nobody read them" in log.read(1 << 16)
        assert weir.process.poll() is None
        weir.process.terminate()
        assert weir.process.wait(PATIENCE_S) == 0


@pytest.mark.alone
def test_metrics_port_is_taken(world, port):
    with socket.create_server(("127.0.0.1", port)):
        line = world.weir.refused("agent", "--metrics", f"127.0.0.1:{port}")
    assert f"127.0.0.1:{port}" in line and "in use" in line


def test_state_dir_of_others(site):
    """Whoever can write there is told of, when the agent starts."""
    directory = site.weir.state_dir
    for owner, mode in (1000, 0o700), (0, 0o720), (0, 0o1777):
        os.chown(directory, owner, 0)
        directory.chmod(mode)
        site.weir.start()
        assert f"{directory} can be written by others (owner {owner}, mode {mode:04o})" in site.weir.log()
    directory.chmod(0o755)
    site.weir.stop()
    site.weir.log_begin()
    site.weir.start()
    assert "can be written" not in site.weir.log()
    directory.chmod(0o700)


def test_state_dir_is_private(site):
    for path in site.weir.state_dir, *site.weir.state_dir.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.alone
def test_answers_while_programs_load(world, port):
    """Who asks is answered while a command has programs loaded; who changes something waits for his turn."""
    world.weir.start(metrics=f"127.0.0.1:{port}")
    site = world.site()
    attach = threading.Thread(target=site.attach)
    attach.start()
    eventually(lambda: [server["mode"] for server in world.weir.servers()] == ["starting"], "programs are being loaded")
    assert fetch(port)[0] == 200
    assert world.weir("pause")
    attach.join()
    assert world.weir.server()["mode"] == "paused"
