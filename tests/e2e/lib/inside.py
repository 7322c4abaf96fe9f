# SPDX-License-Identifier: GPL-2.0
"""Go servers of our own, over TLS with HTTP/1.1 and HTTP/2 (tests/inside/src/weir): `plain`, and `apiserver`, which authorizes
requests /VERB/NAMESPACE/RESOURCE/NAME/SUBRESOURCE as Kubernetes does, and `modern`, which does it as Kubernetes 1.28 does. A program's name is
a tag of its build."""
import contextlib
import fcntl
import functools
import os
import shutil
import subprocess

import pytest

from lib.process import end, eventually, run
from lib.weir import BUILD

SOURCES = BUILD.parent / "tests/inside"


def is_built(binary):
    return binary.exists() and binary.stat().st_mtime > max(path.stat().st_mtime for path in SOURCES.glob("src/**/*.go"))


@functools.lru_cache
def program(name, compiler="go", pie=False):
    if not shutil.which(compiler):
        pytest.skip("there is no go (golang-go)")
    version = run(compiler, "env", "GOVERSION").strip()
    binary = BUILD / "tests/inside" / version / (name + "-pie" * pie)
    if is_built(binary):
        return binary  # a guest would take minutes to find that out by Go, and may write nothing
    binary.parent.mkdir(parents=True, exist_ok=True)
    with open(binary.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # modules run side by side, and want the same
        if not is_built(binary):
            build(binary, name, compiler, pie)
    return binary


def build(binary, name, compiler, pie):
    own = {"GO111MODULE": "off", "CGO_ENABLED": "0", "GOPATH": str(SOURCES)}
    subprocess.run([compiler, "build", "-tags", name, "-ldflags", "-s -w", *(["-buildmode=pie"] if pie else []), "-o", binary,
                    f"weir/{name}"], check=True,
                   env={"GOCACHE": str(BUILD / "tests/inside/cache"), **os.environ, **own})


def get(address, place, target, user="", times=1, protocol="http2"):
    """The answers to so many requests on one connection."""
    command = place.client_ns.command(program("plain"), protocol, f"https://{address}{target}", user, *range(times))
    return run(*command).splitlines()


class GoServer:
    """binary: another file than the usual one, with the same program. mode: a word of its (serve-plain: without TLS).
    by: the command that runs it. more: further addresses."""

    def __init__(self, name, place, port=8443, binary=None, mode="serve", by=(), more=()):
        self.place = place
        self.port = port
        self.address = f"{place.authority}:{port}"
        self.process = subprocess.Popen(place.server_ns.command(*by, binary or program(name), mode, self.address, *more),
                                        stdin=subprocess.DEVNULL)
        eventually(self.listens, f"{name} listens")

    def listens(self):
        sockets = self.place.server_ns.run("ss", "-Hltn", "sport", "=", f":{self.port}")
        assert self.process.poll() is None
        return sockets.strip()

    def get(self, target, user="", times=1, protocol="http2"):
        return get(self.address, self.place, target, user, times, protocol)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            end(self.process)


@pytest.fixture
def serve(world):
    """Starts a server of ours in one place, behind an agent."""
    usual = world.loopback()
    world.agent()

    def start(name, place=None, **options):
        server = GoServer(name, place or usual, **options)
        world.at_end(server.close)
        return server
    return start


class Open:
    """A request that is not answered until its client goes; it has a connection of its own."""

    def __init__(self, world, server, target, user="", protocol="--http2"):
        command = ("curl", "-skN", protocol, "--max-time", "600", "-H", f"X-User: {user}", f"https://{server.address}{target}")
        self.process = subprocess.Popen(server.place.client_ns.command(*command), stdout=subprocess.DEVNULL)
        world.at_end(self.close)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            end(self.process)


def attach(world, server, name="web", mode="see", options=()):
    """mode: None, for what weir chooses by itself."""
    asked = ("--inside", mode) if mode else ()
    said = world.weir("attach", name, "--port", server.port, "--netns", server.place.server_ns.path, *asked, *options)
    world.attached()
    return said


def refuse(world, server, *options):
    """Attaches it so that it refuses, where the kernel lets weir."""
    done = world.weir.run("attach", "web", "--port", server.port, "--netns", server.place.server_ns.path, "--inside", "answer",
                          *options)
    if done.returncode:
        assert "registers" in done.stderr
        pytest.skip(done.stderr.strip())
    world.attached()


def of_limit(world, name, field):
    return next(limit[field] for limit in world.weir.server()["limits"] if limit["limit"] == name)
