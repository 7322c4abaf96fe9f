# SPDX-License-Identifier: GPL-2.0
"""What weir has in the kernel: {(kind, id)}."""
import json
import subprocess

from .process import eventually, run


def is_there(kind, number):
    """Asked for one by one: a list of all ends where somebody else's is just being made."""
    done = subprocess.run(["bpftool", "-j", kind, "show", "id", str(number)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    return done.returncode == 0


def pinned(directory):
    """All that is pinned below a directory."""
    found = set()
    for pin in directory.rglob("*"):
        if pin.is_dir():
            continue
        kind = "link" if pin.name.startswith("link-") else "prog" if pin.name.startswith("prog-") else "map"
        found.add((kind, json.loads(run("bpftool", "-j", kind, "show", "pinned", pin))["id"]))
    return found


def wait_until_gone(objects):
    """The kernel frees them some time after their last use."""
    for kind, number in objects:
        eventually(lambda kind=kind, number=number: not is_there(kind, number), f"{kind} {number} is gone")
