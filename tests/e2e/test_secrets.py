# SPDX-License-Identifier: GPL-2.0
"""
A token goes into the agent and comes out nowhere: not in what it says, not in its files, its memory, or the kernel's maps.
"""
import contextlib
import json
import os
import re
import secrets
from pathlib import Path

import pytest

from lib.process import run

pytestmark = pytest.mark.together

WRITABLE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw")


def read_memory(pid):
    """What a process has written anywhere, piece by piece."""
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if area := WRITABLE.match(line):
                start, end = (int(text, 16) for text in area.groups())
                try:
                    memory.seek(start)
                    yield line, memory.read(end - start)
                except OSError:
                    pass  # of a device, or guarded


def map_ids(pid):
    """Of the maps that a process has open. It goes on meanwhile: a descriptor that it closes is none any more."""
    ids = set()
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            ids.update(re.findall(r"map_id:\s*(\d+)", entry.read_text()))
    return ids


def read_map(number):
    """All bytes of a map's entries; of those that cannot be dumped (rings) the memory above has what there is."""
    done = run_quietly("bpftool", "-j", "map", "dump", "id", number)
    return bytes(int(text, 16) for text in re.findall(r'"0x([0-9a-f]{2})"', done))


def run_quietly(*words):
    try:
        return run(*words)
    except AssertionError:
        return ""


class Searched:
    """The places in which a text was looked for, and found."""

    def __init__(self, text):
        self.text = text.encode()
        self.found = []

    def look(self, where, content):
        content = content.encode() if isinstance(content, str) else content
        if self.text in content:
            self.found.append(where)

    def agent(self, weir):
        for number in map_ids(weir.process.pid):
            if shown := run_quietly("bpftool", "-j", "map", "show", "id", number):
                self.look(f"map {json.loads(shown)['name']}", read_map(number))
        for where, content in read_memory(weir.process.pid):
            self.look(where, content)
        self.look("environment", Path(f"/proc/{weir.process.pid}/environ").read_bytes())
        self.look("log", weir.log())
        for path in weir.state_dir.iterdir():
            with contextlib.suppress(FileNotFoundError):  # a file that takes the place of another
                if path.is_file():
                    self.look(str(path), path.read_bytes())


def test_descriptor_that_closes_is_no_error():
    """Of this very process there is one: that by which the list was read."""
    assert map_ids(os.getpid()) == set()


@pytest.fixture
def token():
    return "sesame" + secrets.token_hex(12)


def bearer(client, token):
    head = client.head("/r").removesuffix(b"\r\n")
    client.send(head + f"Authorization: Bearer {token}\r\n\r\n".encode())
    return client.read().status


def test_it_would_be_found(site, token):
    """What is a name, and not a secret, is where the search looks."""
    searched = Searched(token)
    site.limit("user", token, burst=1)
    site.client(token).drive(1)
    searched.agent(site.weir)
    assert any("map" in where for where in searched.found)
    assert any("state.json" in where for where in searched.found)
    assert any("rw" in where for where in searched.found)


@pytest.mark.long
def test_token_is_nowhere(world, tmp_path, token):
    searched = Searched(token)
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f'{token},alice,1,"dev,ops"\n')
    tokens.chmod(0o600)
    site = world.site()
    site.attach("--token-file", tokens, "--trusted-proxy", "192.0.2.1")
    site.limit("user", "alice", burst=2)
    trace = world.trace()
    client = site.client()
    assert [bearer(client, token) for _ in range(4)] == [200, 200, 429, 429]
    assert site.status()["identified"] == {"token": 4}
    weir = site.weir
    for words in ["status"], ["status", "--json"], ["export"], ["limit", "list"], ["metrics"], ["reload"]:
        searched.look(" ".join(words), weir(*words))
    told = trace.end()
    assert [request["decision"] for request in told] == ["passed", "passed", "shed", "shed"]
    searched.look("trace", json.dumps(told))
    searched.agent(weir)
    assert searched.found == []


WRONG_LINES = [
    "{}",
    "{},",
    '{}"x,alice,1',
    '"{}"x,alice,1',
    '"{},alice,1',
    '{},"a\x01b",1',
    'x,"{}\x01",1',
    'x,alice,1,"{}\x01"',
    "{}\0,alice,1",
]


def test_wrong_lines_are_named_and_not_shown(world, tmp_path, token):
    """Each with the same token: it is looked for at the end, where all have been."""
    searched = Searched(token)
    tokens = tmp_path / "tokens.csv"
    tokens.touch(0o600)
    site = world.site()
    attach = ("attach", "web", "--port", site.server.port, "--netns", site.place.server_ns.path)
    for line in WRONG_LINES:
        tokens.write_text("good,bob,2\n" + line.format(token) + "\n")
        said = site.weir.refused(*attach, "--token-file", tokens)
        assert f"{tokens}:2:" in said, line
        searched.look(f"error of {line}", said)
        # The same file, taken for one of addresses.
        searched.look(f"error of {line}", site.weir.refused(*attach, "--address-file", tokens))
    searched.agent(site.weir)
    assert searched.found == []


def test_open_file_is_warned_of(world, tmp_path):
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("sesame,alice,1\n")
    tokens.chmod(0o644)
    site = world.site()
    site.attach("--token-file", tokens)
    site.limit("user", burst=5)
    warning = f"the token file {tokens} is readable by others than its owner: chmod 600"
    assert site.status()["warning"] == warning
    assert f"web: warning: {warning}" in site.weir("status")
    assert warning in site.weir.log()
    tokens.chmod(0o600)
    site.weir("reload")
    assert site.status()["warning"] is None
