# SPDX-License-Identifier: GPL-2.0
"""What weir has in the kernel: {(kind, id)}."""
import json

from .process import eventually, run


def there():
    """All programs, maps and links, anyone's: a map or a link does not say whose it is."""
    return {(kind, each["id"]) for kind in ("prog", "map", "link")
            for each in json.loads(run("bpftool", "-j", kind, "show") or "[]")}


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
    eventually(lambda: not objects & there(), "programs, maps and links are gone")
