# SPDX-License-Identifier: GPL-2.0
"""
The streams of tests/corpus, sent to real servers: what a server serves, weir has charged, as the same requests in the same
order, or it was refused.
"""
import collections
import itertools
import re
import urllib.parse

import pytest

from lib.stream_client import FIRST_PORT, in_pieces, send_all
from lib.stream_servers import MODES, PORTS, StreamServer
from lib.streams import read_streams

pytestmark = pytest.mark.together

STREAMS = read_streams()
# A run's clients have an address of their own: nothing that is left of another run's connections is theirs.
SOURCES = (f"127.1.0.{host}" for host in itertools.count(1))
ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(.*)", re.DOTALL)
PACKET = 60000  # bytes that come in one packet here
# Another protocol that is known, or what may be one from there on, is no ambiguity: it is charged as something that cannot be read, and held.
HELD = ("tls", "http2", "connect")
# How each server reads paths. lighttpd and Apache clean them as nginx does.
PATHS = {"nginx": "nginx", "apache": "nginx", "lighttpd": "nginx", "go": "kubernetes", "haproxy": "raw", "node": "raw"}
ENCODED = re.compile(rb"\\x([0-9a-f]{2})")

# What became of one stream: what its server logged, and what weir said of its requests.
Run = collections.namedtuple("Run", "stream sending served said")


def shown(text):
    """The bytes of what the trace shows."""
    return ENCODED.sub(lambda match: bytes.fromhex(match[1].decode()), text.encode())


def without_authority(target):
    """Servers log the absolute form in different ways."""
    match = ABSOLUTE.fullmatch(target)
    return (match[1] if match else target) or b"/"


def plain(requests):
    return [(method, without_authority(target)) for method, target in requests]


def in_a_packet(stream):
    """weir reads all of it at once, whatever the server does meanwhile."""
    return len(stream.data) < PACKET


def is_part(some, requests):
    """All of them are there, in the same order."""
    rest = iter(requests)
    return all(one in rest for one in some)


def namespace(path):
    """By Kubernetes' rules, of a path as its server made it."""
    words = path.split(b"/")
    at = {b"api": 2, b"apis": 3}.get(words[0], len(words))
    if words[at:at + 1] in ([b"watch"], [b"proxy"]):
        at += 1
    return words[at + 1] if words[at:at + 1] == [b"namespaces"] and len(words) > at + 1 else b""


def namespace_served(program, one):
    if PATHS[program] == "raw":
        return namespace(without_authority(one.target).partition(b"?")[0][1:])
    path = urllib.parse.unquote_to_bytes(one.path) if program == "lighttpd" else one.path
    return namespace(path.strip(b"/"))


class Traced:
    """A request as `weir trace` told of it. Of a long line only the beginning is known, and sometimes nothing."""

    def __init__(self, record):
        self.decision = record["decision"]
        self.namespace = shown(record["namespace"] or "")
        self.method = record["method"] and record["method"].encode()
        self.target = record["target"] and shown(record["target"])

    def is_one(self, request):
        if self.target is None:
            return True
        (method, target), (mine, known) = plain([request, (self.method, self.target)])
        return method == mine and (target.startswith(known[:-3]) if known.endswith(b"...") else target == known)

    def is_in(self, namespace):
        """A name is shown up to its first NUL, and only where it came in one packet with all of its line."""
        return self.target is None or self.namespace == namespace.partition(b"\0")[0]

    def __repr__(self):
        return f"{self.method} {self.target} {self.decision} {self.namespace}"


class Corpus:
    def __init__(self, world, program):
        self.world = world
        self.program = program
        self.place = world.loopback()
        self.modes = MODES[program]
        self.attached = False

    def attach(self, *options):
        weir = self.world.agent()
        for mode in self.modes:
            done = weir.run("attach", mode, "--port", PORTS[mode], "--netns", self.place.server_ns.path, *options)
            assert done.returncode == 0, done.stderr  # it warns: the servers come later
        self.world.attached()
        self.attached = True

    def status(self, mode):
        return self.world.weir.server(mode)

    def send(self, **options):
        """Every stream to every mode of a server of its own. {mode: [Run, ...]}"""
        traces = {mode: self.world.trace(mode) for mode in self.modes} if self.attached else {}
        server = StreamServer(self.program, self.place.server_ns, self.world.directory / "server")
        source = next(SOURCES)
        try:
            sent = {mode: send_all(self.place.client_ns, PORTS[mode], STREAMS, source, **options) for mode in self.modes}
        finally:
            server.close()
        said = {mode: said_by_stream(traces[mode].end() if traces else []) for mode in self.modes}
        self.served = {mode: server.served(mode) for mode in self.modes}
        return {mode: [Run(stream, sent[mode][i], self.served[mode][FIRST_PORT + i], said[mode][i])
                       for i, stream in enumerate(STREAMS)] for mode in self.modes}

    def check_strangers(self, mode, runs):
        """What was served on connections that are not known any more was charged, too."""
        missing = sum(max(0, len(passed(run)) - len(run.served)) for run in runs)
        assert len(self.served[mode][0]) <= missing


def said_by_stream(records):
    said = [[] for _ in STREAMS]
    for record in records:
        said[record["port"] - FIRST_PORT].append(Traced(record))
    return said


def served(run):
    return plain((one.method, one.target) for one in run.served)


def passed(run):
    return [said for said in run.said if said.decision in ("passed", "exempt")]


@pytest.fixture
def corpus(world, request):
    return Corpus(world, request.param)


def check_work(runs):
    """The server does its work: else nothing would be shown."""
    exact = [run.stream.name for run in runs if served(run) == plain(run.stream.requests)]
    missing = [run.stream.name for run in runs if run.stream.name.startswith("get") and run.stream.name not in exact]
    assert not missing, f"not served: {missing}"
    assert len(exact) > len(runs) / 2


def check_served_was_read(runs):
    wrong = [f"{run.stream.name}: {served(run)}" for run in runs
             if not run.stream.lost and not is_part(served(run), plain(run.stream.requests))]
    assert not wrong, "served, and not read by weir:\n" + "\n".join(wrong)


def check_said(runs):
    """weir says of each stream what its file says, request by request. Where the server ends it early, it may be less."""
    wrong = []
    for run in runs:
        requests = run.stream.requests
        whole = len(run.said) == len(requests) or (not in_a_packet(run.stream) and len(run.said) < len(requests))
        if not whole or not all(said.is_one(request) for said, request in zip(run.said, requests)):
            wrong.append(f"{run.stream.name}: {run.said}")
    assert not wrong, "weir says another thing:\n" + "\n".join(wrong)


def is_passed(program, run):
    """Request by request: weir says of each that the server served that it passed, in the same order and namespace."""
    rest = iter(passed(run))
    for one in run.served:
        said = next((said for said in rest if said.is_one((one.method, one.target))), None)
        if said is None or not said.is_in(namespace_served(program, one)):
            return False
    return True


def check_served_was_passed(program, runs, status):
    """What the server serves behind an answer that came before its request's end is charged as what is held."""
    others = [run for run in runs if not is_passed(program, run)]
    wrong = [f"{run.stream.name}: {run.served}, and weir says {run.said}" for run in others
             if not passed(run) or len(others) > status["unread"].get("answered_early", 0)]
    assert not wrong, "served, and not passed by weir:\n" + "\n".join(wrong)
    assert status["records_passed"] >= len(others)


def check_held_was_charged(status, runs):
    """Each stream that is something else than ambiguous, and that the server served anything of, was charged as it is."""
    held = [run for run in runs if run.stream.lost in HELD and len(run.served) > len(run.stream.requests)]
    assert status["records_passed"] >= len(held)


@pytest.mark.parametrize("corpus", MODES, indirect=True)
def test_without_weir(corpus):
    """What weir reads to its end every server reads the same way; and of the rest weir is right to read no further."""
    for mode, runs in corpus.send().items():
        check_work(runs)
        check_served_was_read([run for run in runs if not run.stream.lost])
        hostile = [run.stream.name for run in runs if not is_part(served(run), plain(run.stream.requests))]
        assert hostile, f"no stream is hostile to {corpus.program}, {mode}"


@pytest.mark.parametrize("corpus", MODES, indirect=True)
def test_rejected(corpus):
    """What is ambiguous gets a 400 in its turn, and its server nothing of it; all else is charged as the server serves it."""
    corpus.attach("--paths", PATHS[corpus.program])
    for mode, runs in corpus.send().items():
        check_work(runs)
        check_served_was_read([run for run in runs if run.stream.lost not in HELD])
        check_served_was_passed(corpus.program, [run for run in runs if run.stream.lost not in HELD],
                                corpus.status(mode))
        for run in runs:
            ambiguous = run.stream.lost and run.stream.lost not in HELD and not run.stream.requests
            # Where paths are raw, nothing is wrong with them.
            if ambiguous and in_a_packet(run.stream) and not passed(run):
                assert run.sending.statuses() == [400] and not run.served, run.stream.name
        check_held_was_charged(corpus.status(mode), runs)
        corpus.check_strangers(mode, runs)


@pytest.mark.parametrize("corpus", MODES, indirect=True)
def test_in_pieces(corpus):
    """However a stream is cut into packets, nothing is served of it that weir does not charge."""
    corpus.attach("--paths", PATHS[corpus.program])
    for mode, runs in corpus.send(cut=in_pieces).items():
        check_work(runs)
        check_served_was_read([run for run in runs if run.stream.lost not in HELD])
        check_served_was_passed(corpus.program, [run for run in runs if run.stream.lost not in HELD],
                                corpus.status(mode))
        check_held_was_charged(corpus.status(mode), runs)
        corpus.check_strangers(mode, runs)


@pytest.mark.parametrize("corpus", MODES, indirect=True)
def test_passed(corpus):
    """What is ambiguous passes when it is to, and is counted under its reason; what comes before is charged."""
    corpus.attach("--framing", "pass")
    for mode, runs in corpus.send().items():
        check_work(runs)
        check_served_was_read([run for run in runs if not run.stream.lost])
        check_said(runs)
        lost = [run.stream for run in runs if run.stream.lost]
        unread = collections.Counter(corpus.status(mode)["unread"])
        # A server says 400 of a request that did not come to its end: that answers nothing that weir has read.
        del unread["bad_response"], unread["too_many_pipelined"], unread["upgrade"], unread["answered_early"]
        # The client's end is behind each stream.
        assert unread.pop("head_cut", 0) <= sum(not run.stream.lost and not run.stream.whole for run in runs)
        assert collections.Counter(stream.lost for stream in lost if in_a_packet(stream)) <= unread
        assert unread <= collections.Counter(stream.lost for stream in lost)


@pytest.mark.parametrize("corpus", MODES, indirect=True)
def test_all_refused(corpus):
    """Nothing may pass but health checks: no server serves anything else of any stream."""
    corpus.attach()
    for mode in corpus.modes:
        corpus.world.weir("limit", "set", "--server", mode, "user", "--qps", 0, "--burst", 0)
    for runs in corpus.send(may_hang=lambda stream: stream.lost in HELD).values():
        for run in runs:
            exempt = [said for said in run.said if said.decision == "exempt"]
            assert len(run.served) <= len(exempt), f"{run.stream.name}: {run.served}, and weir says {run.said}"
            if run.stream.whole and run.stream.requests and not exempt and in_a_packet(run.stream):
                assert run.sending.statuses()[:1] == [429], run.stream.name
