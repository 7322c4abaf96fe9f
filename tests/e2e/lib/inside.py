# SPDX-License-Identifier: GPL-2.0
"""Go servers of our own, over TLS with HTTP/1.1 and HTTP/2 (tests/inside/src/weir): `plain`, and `apiserver`, which authorizes
requests /VERB/NAMESPACE/RESOURCE/NAME as Kubernetes does."""
import contextlib
import functools
import os
import shutil
import subprocess

import pytest

from lib.process import end, eventually, run
from lib.weir import BUILD

SOURCES = BUILD.parent / "tests/inside"


@functools.lru_cache
def program(name):
    if not shutil.which("go"):
        pytest.skip("there is no go (golang-go)")
    binary = BUILD / "tests/inside" / name
    own = {"GO111MODULE": "off", "CGO_ENABLED": "0", "GOPATH": str(SOURCES)}
    subprocess.run(["go", "build", "-ldflags", "-s -w", "-o", binary, f"weir/{name}"], check=True,
                   env={"GOCACHE": str(BUILD / "tests/inside/cache"), **os.environ, **own})
    return binary


class GoServer:
    """binary: another file than the usual one, with the same program."""

    def __init__(self, name, place, port=8443, binary=None):
        self.place = place
        self.port = port
        self.address = f"{place.address}:{port}"
        self.process = subprocess.Popen(place.server_ns.command(binary or program(name), "serve", self.address),
                                        stdin=subprocess.DEVNULL)
        eventually(self.listens, f"{name} listens")

    def listens(self):
        sockets = self.place.server_ns.run("ss", "-Hltn", "sport", "=", f":{self.port}")
        assert self.process.poll() is None
        return sockets.strip()

    def get(self, target, user="", times=1, protocol="http2"):
        """The answers to so many requests on one connection."""
        said = run(*self.place.client_ns.command(program("plain"), protocol, f"https://{self.address}{target}", user,
                                                 *range(times)))
        return said.splitlines()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            end(self.process)
