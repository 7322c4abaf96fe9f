# SPDX-License-Identifier: GPL-2.0
"""What an agent takes of the machine."""
import collections
import re
from pathlib import Path

AgentSize = collections.namedtuple("AgentSize", "rss_kib fds maps map_bytes pins")

RSS = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)
MAP = re.compile(r"^map_id:\s+(\d+)", re.MULTILINE)
MEMLOCK = re.compile(r"^memlock:\s+(\d+)", re.MULTILINE)


def agent_size(weir):
    process = Path(f"/proc/{weir.process.pid}")
    infos = [info for path in (process / "fdinfo").iterdir() if (info := read(path)) is not None]
    maps = {found[1]: int(MEMLOCK.search(info)[1]) for info in infos if (found := MAP.search(info))}
    return AgentSize(rss_kib(weir), len(infos), len(maps), sum(maps.values()), sum(1 for _ in weir.pins.rglob("*")))


def rss_kib(weir):
    return int(RSS.search(Path(f"/proc/{weir.process.pid}/status").read_text())[1])


def read(path):
    try:
        return path.read_text()
    except OSError:  # closed meanwhile
        return None
