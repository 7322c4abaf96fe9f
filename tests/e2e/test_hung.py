# SPDX-License-Identifier: GPL-2.0
"""An agent that does not answer: commands say so, and what to do, and do not wait for it without end."""
import contextlib
import os
import pty
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from lib.process import PATIENCE_S
from lib.weir import Weir, without_waiting

pytestmark = pytest.mark.long

HUNG_S = 14
LOADS = ": it loads programs into the kernel and looks into the server, which takes seconds"
WORDS = (["status"], ["status", "web"], ["export"], ["pause", "web"], ["limit", "set", "user", "--qps", "7", "--burst", "7"], ["trace"])


def ask(weir, *words, **options):
    return subprocess.Popen(weir.command(*words), env=weir.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **options)


def answers(asked):
    """What each command says, besides that it waits. All wait side by side."""
    said = [process.communicate(timeout=2 * PATIENCE_S) for process in asked]
    return [(out, without_waiting(err)) for out, err in said]


def test_stopped(site):
    """What it was asked meanwhile it does when it goes on, or not: never in part."""
    weir = site.world.weir
    pid = weir.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        asked = [ask(weir, *words) for words in WORDS]
        said = answers(asked)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert [process.returncode for process in asked] == [1] * len(WORDS)
    for out, err in said:
        assert out == ""
        assert err.startswith(f"weir: the agent does not answer: its process {pid} is stopped. Continue it (kill -CONT {pid})"), err
        assert "may still do what it was asked" in err
    weir("resume", "web")
    weir("limit", "set", "user", "--qps", "5", "--burst", "5")
    assert weir.json("status")["servers"][0]["paused"] is False


STOPS = """
import fcntl, os, signal, socket, sys
with open("/proc/self/comm", "w") as name:
    name.write("a) b (c")
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
lock = open(sys.argv[2], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextlib.contextmanager
def stopped(tmp_path):
    """An agent that is stopped. Its name has the very characters that end it in /proc/PID/stat."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    with subprocess.Popen([sys.executable, "-c", STOPS, str(state / "weir.sock"), str(state / "lock")]) as agent:
        try:
            assert os.WIFSTOPPED(os.waitpid(agent.pid, os.WUNTRACED)[1])
            yield Weir(tmp_path, tmp_path / "pins"), agent.pid
        finally:
            agent.kill()


def test_stopped_whatever_its_name(tmp_path):
    with stopped(tmp_path) as (weir, pid):
        (_, err), = answers([ask(weir, "status")])
    assert f"its process {pid} is stopped" in err, err


def test_uninstall_names_force(tmp_path):
    """While it waits for an agent that is stopped, and when it gives up."""
    with stopped(tmp_path) as (weir, _):
        (_, err), = answers([ask(weir, "uninstall")])
    *waiting, last = err.splitlines()
    assert waiting[0].startswith("weir: waiting until the agent ends (--force kills it): "), err
    assert last.endswith("and does not stop on SIGTERM: kill it first, or let uninstall do so (--force)"), err


@contextlib.contextmanager
def stand_in(tmp_path, serve):
    """An agent whose event loop is serve(listener)."""
    (tmp_path / "state").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "state" / "weir.sock"))
        listener.listen()
        thread = threading.Thread(target=serve, args=[listener])
        thread.start()
        yield Weir(tmp_path, tmp_path / "pins")
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def busy(listener, others):
    """Answers who comes first when it has answered so many others."""
    with listener.accept()[0] as client:
        for _ in range(others):
            with listener.accept()[0] as other:
                assert other.recv(64) == b"\n"
                other.sendall(b'{"error": "the request is not JSON"}\n')
        client.sendall(b'{"error": "at last"}\n')


def test_busy(tmp_path):
    """One that answers others is waited for: what was asked takes its time."""
    with stand_in(tmp_path, lambda listener: busy(listener, 2)) as weir:
        assert answers([ask(weir, "status")]) == [("", "weir: at last\n")]


def ends(listener):
    """Ends when it has read what it was asked."""
    with listener.accept()[0] as client:
        assert client.recv(4096).endswith(b"\n")


def test_ends_before_it_answers(tmp_path):
    """Nobody knows whether it was done: where to look is said."""
    with stand_in(tmp_path, ends) as weir:
        assert answers([ask(weir, "pause", "web")]) == [
            ("", 'weir: the agent closed the connection without an answer. It may have done what it was asked: see "weir status"\n')]


def late(listener):
    """Answers its only client when one that hangs would have been found out."""
    with listener.accept()[0] as client:
        time.sleep(HUNG_S + 3)
        client.sendall(b'{"error": "at last"}\n')


def one_descriptor():
    """More than a command begins with: enough for its connection, not for a second one."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))


def test_a_command_that_cannot_ask_again(tmp_path):
    """It does not know whether the agent hangs, and waits."""
    with stand_in(tmp_path, late) as weir:
        assert answers([ask(weir, "status", preexec_fn=one_descriptor)]) == [("", "weir: at last\n")]


@pytest.mark.parametrize("words, waits", [("status", ""), ("top --once", ""), ("attach web --port 80", LOADS)])
def test_busy_in_a_pipe(tmp_path, words, waits):
    """A log tells what is waited for, in a line: that is not for a terminal alone."""
    def serve(listener):
        if waits:
            listener.accept()[0].close()  # control_wait()
        busy(listener, 1)

    with stand_in(tmp_path, serve) as weir:
        asked = ask(weir, *words.split())
        assert asked.communicate(timeout=2 * PATIENCE_S) == ("", f"weir: waiting for the agent{waits} ...\nweir: at last\n")


def read_all(screen):
    """What comes in several pieces, until the other side is closed."""
    said = b""
    with contextlib.suppress(OSError):
        while piece := screen.read(4096):
            said += piece
    return said.decode()


def on_a_terminal(weir, *words):
    """What somebody who sits there reads, and how long that took."""
    master, slave = pty.openpty()
    with open(master, "rb", buffering=0) as screen:
        with open(slave, "wb") as terminal:
            begin = time.monotonic()
            done = subprocess.run(weir.command(*words), env=weir.environment(), stdout=subprocess.PIPE, stderr=terminal,
                                  timeout=2 * PATIENCE_S, check=False)
            took_s = time.monotonic() - begin
        assert (done.returncode, done.stdout) == (1, b"")
        return read_all(screen).split("\r\n"), took_s


def test_busy_on_a_terminal(tmp_path):
    """Who sits there is told what is waited for."""
    with stand_in(tmp_path, lambda listener: busy(listener, 1)) as weir:
        lines, _ = on_a_terminal(weir, "status")
    assert lines == ["weir: waiting for the agent ...", "weir: at last", ""]


def test_no_agent_on_a_terminal(tmp_path):
    """attach waits for one that is being started."""
    lines, _ = on_a_terminal(Weir(tmp_path, tmp_path / "pins"), "attach", "web", "--port", "80")
    assert lines[0] == "weir: no agent answers yet: waiting whether one starts ..."
    assert lines[1].startswith("weir: no agent answers at ")


def test_attach_on_a_terminal(tmp_path):
    def serve(listener):
        with listener.accept()[0]:  # control_wait()
            busy(listener, 1)

    with stand_in(tmp_path, serve) as weir:
        lines, _ = on_a_terminal(weir, "attach", "web", "--port", "80")
    assert lines[:2] == ["weir: waiting for the agent: it loads programs into the kernel and looks into the server, which takes seconds ...",
                         "weir: at last"]


def fill(address):
    """Connections that nobody accepts, until there is no room for one more."""
    clients = []
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        clients.append(client)
        try:
            client.connect(address)
        except BlockingIOError:
            return clients


def test_no_room_for_a_command(tmp_path):
    with stand_in(tmp_path, lambda listener: None) as weir:
        clients = fill(str(tmp_path / "state" / "weir.sock"))
        lines, took_s = on_a_terminal(weir, "status")
        for client in clients:
            client.close()
    assert lines[0] == "weir: waiting for the agent ..."
    assert lines[1].startswith("weir: the agent does not answer, and has room for no more commands. Restart it"), lines
    assert took_s < HUNG_S


def test_no_room_to_ask_again(tmp_path):
    """It hangs with a full queue behind the command: that is said as soon as without one, not after as long once more."""
    with stand_in(tmp_path, lambda listener: None) as weir:
        asked = ask(weir, "status")
        time.sleep(1)  # it is in the queue
        clients = fill(str(tmp_path / "state" / "weir.sock"))
        begin = time.monotonic()
        (_, err), = answers([asked])
        took_s = time.monotonic() - begin
        for client in clients:
            client.close()
    assert f"its process {os.getpid()} hangs" in err, err
    assert took_s < HUNG_S + 5


def test_hangs(tmp_path):
    with stand_in(tmp_path, lambda listener: None) as weir:
        [(out, err)] = answers([ask(weir, "pause", "web")])
    assert out == ""
    assert err.startswith(f"weir: the agent does not answer: its process {os.getpid()} hangs. Restart it, or end it and all limits"), err
