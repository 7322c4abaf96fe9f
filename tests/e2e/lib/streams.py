# SPDX-License-Identifier: GPL-2.0
"""The byte streams in tests/corpus/streams; how they are written is said in tests/corpus/stream.h."""
import collections
import re
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
SUFFIX = ".stream"
ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|\*([0-9]+)\{([^}]*)\}|(.))", re.DOTALL)
LETTERS = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"\\": b"\\"}

# requests: [(method, target), ...] that weir reads; lost: the reason for which it stops reading, or None
Stream = collections.namedtuple("Stream", "name data requests lost whole")


def unescape(text):
    def replaced(match):
        digits, times, inside, letter = match.groups()
        if digits:
            return bytes.fromhex(digits.decode())
        return int(times) * unescape(inside) if times else LETTERS[letter]
    return ESCAPE.sub(replaced, text)


def read_stream(path):
    lines = path.read_bytes().split(b"\n")
    said = [line[2:] for line in lines if line.startswith(b"= ")]
    data = unescape(b"".join(line for line in lines if not line.startswith((b"# ", b"= "))))
    ending = said.pop() if said and (said[-1] == b"more" or said[-1].startswith(b"lost ")) else b""
    requests = [tuple(unescape(line).split(b" ")[:2]) for line in said]
    lost = ending[5:].decode() if ending.startswith(b"lost ") else None
    return Stream(path.name.removesuffix(SUFFIX), data, requests, lost, not ending)


def read_streams():
    return [read_stream(path) for path in sorted((CORPUS / "streams").glob(f"*{SUFFIX}"))]
