# SPDX-License-Identifier: GPL-2.0
"""weir's maps, as anyone with bpftool can read and change them."""
import json
import subprocess

from lib.process import run


def words(data):
    return [f"{byte:#04x}" for byte in data]


def number(words):
    return bytes(int(word, 16) for word in words)


class Maps:
    def __init__(self, pins):
        (self.directory,) = pins.glob("net-*")

    def bpftool(self, *arguments):
        return run("bpftool", *arguments)

    def entries(self, name):
        """{key: value} as bytes; of a map of maps, the id. What is repaired meanwhile has an error for a value, and is gone."""
        dump = [entry for entry in json.loads(self.bpftool("map", "dump", "-j", "pinned", self.directory / name))
                if "error" not in entry.get("value", ())]
        return {number(entry["key"]): number(entry["value"]) if "value" in entry else entry["inner_map_id"]
                for entry in dump if "value" in entry or "inner_map_id" in entry}

    def delete(self, name, key):
        self.bpftool("map", "delete", "pinned", self.directory / name, "key", *words(key))

    def delete_if_there(self, name, key):
        """The agent may write a map anew just then, with other keys."""
        try:
            self.delete(name, key)
        except AssertionError as error:
            if "No such file or directory" not in str(error):
                raise

    def put(self, name, key, value):
        self.bpftool("map", "update", "pinned", self.directory / name, "key", *words(key), "value", *words(value))

    def empty(self, queue):
        while subprocess.run(["bpftool", "map", "dequeue", "pinned", self.directory / queue], capture_output=True).returncode == 0:
            pass
