# SPDX-License-Identifier: GPL-2.0
"""Real servers for the streams of the corpus, each with a log of what it took for a request and served."""
import collections
import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from lib.process import end, eventually
from lib.streams import CORPUS
from lib.weir import BINARY

SERVERS = CORPUS / "servers"
PORTS = {"strict": 8080, "lenient": 8081}
BACKEND = 8082
MODES = {"nginx": ("strict", "lenient"), "haproxy": ("strict", "lenient"), "apache": ("strict", "lenient"),
         "node": ("strict", "lenient"), "go": ("strict",), "lighttpd": ("strict",)}
EXECUTABLES = {"apache": "apache2"}
APACHE_MODULES = "/usr/lib/apache2/modules"
# What lighttpd says of what it does not take for a request; 100: of an HTTP/2 connection as a whole.
NOT_SERVED = (b"100", b"400", b"411", b"413", b"414", b"417", b"431", b"501", b"505")
ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))")
HAPROXY_ESCAPE = re.compile(rb"#([0-9A-F]{2})")
LETTERS = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"v": b"\v", b"f": b"\f", b"b": b"\b"}
SPACES = re.compile(rb"[ \t\v\f\r]+")

# path: what the server made of the target's path
Served = collections.namedtuple("Served", "method path target")


def unescape(word):
    return ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()) if match[1] else LETTERS.get(match[2], match[2]),
                      word)


def unescape_haproxy(word):
    return HAPROXY_ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), word)


def target_of(line):
    """The target in a request line, which may be none by the rules."""
    return (SPACES.split(line.strip()) + [b""])[1]


@functools.lru_cache
def go_server():
    binary = BINARY.parent / "tests/corpus/server"
    subprocess.run(["go", "build", "-o", binary, SERVERS / "server.go"], check=True)
    return binary


class StreamServer:
    """Runs until it is closed; only then its log is complete."""

    def __init__(self, program, namespace, directory):
        self.program = program
        self.directory = directory
        self.directory.mkdir()
        self.directory.chmod(0o777)
        executable = EXECUTABLES.get(program, program)
        if not shutil.which(executable):
            pytest.skip(f"there is no {executable}")
        # For servers that are not root by the time they read it: the checkout may be below a directory that is only root's.
        self.scripts = tempfile.TemporaryDirectory(prefix="weir-scripts-")
        shutil.copytree(SERVERS, self.scripts.name, dirs_exist_ok=True)
        Path(self.scripts.name).chmod(0o755)
        with open(self.directory / "stdout", "wb") as out, open(self.directory / "errors", "wb") as errors:
            self.process = subprocess.Popen(namespace.command(*self.command(executable)), stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=errors)
        for mode in MODES[program]:
            eventually(lambda: self.listens(namespace, PORTS[mode]), f"{program}, {mode}, listens")

    def command(self, executable):
        ports = [PORTS[mode] for mode in MODES[self.program]]
        if self.program == "node":
            return [executable, SERVERS / "node.js", self.directory, *ports]
        if self.program == "go":
            return [go_server(), self.directory, *ports]
        options = {"nginx": ["-p", self.directory, "-e", self.directory / "error.log", "-c"], "haproxy": ["-f"],
                   "apache": ["-DFOREGROUND", "-f"], "lighttpd": ["-D", "-f"]}
        return [executable, *options[self.program], self.config()]

    def config(self):
        """The configuration, with the names between at signs replaced."""
        values = {"DIRECTORY": self.directory, "SERVERS": self.scripts.name, "PORT": PORTS["strict"], "LENIENT": PORTS["lenient"],
                  "BACKEND": BACKEND, "MODULES": APACHE_MODULES}
        text = (SERVERS / f"{self.program}.conf").read_text()
        for name, value in values.items():
            text = text.replace(f"@{name}@", str(value))
        path = self.directory / "config"
        path.write_text(text)
        return path

    def listens(self, namespace, port):
        assert self.process.poll() is None, (self.directory / "errors").read_text()
        return bool(namespace.run("ss", "-Hltn", f"sport = :{port}").strip())

    def close(self):
        end(self.process)
        self.scripts.cleanup()

    def lines(self, mode):
        """(client's port, method, path, target, ...), as the server wrote them."""
        if self.program == "haproxy":
            lines = [line.split(b"\t") for line in (self.directory / "stdout").read_bytes().splitlines()]
            return [words[1:] for words in lines if words[0] == mode.encode() and words[2] != b"<BADREQ>"]
        log = self.directory / f"{mode}.log"
        return [line.split(b"\t") for line in log.read_bytes().split(b"\n") if line]

    def served(self, mode):
        """{client's port, or 0 where it is not known: [Served, ...]}"""
        served = collections.defaultdict(list)
        for port, method, path, target, *status in self.lines(mode):
            if status and status[0] in NOT_SERVED:
                continue
            decode = unescape_haproxy if self.program == "haproxy" else unescape
            method, path, target = decode(method), decode(path), decode(target)
            if self.program in ("apache", "lighttpd"):
                target = target_of(target)
            served[int(port)].append(Served(method, path, target))
        return served
