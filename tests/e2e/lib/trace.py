# SPDX-License-Identifier: GPL-2.0
"""`weir trace --json`, from a moment on which it misses nothing to one up to which it does not."""
import json
import signal
import subprocess

from lib.process import PATIENCE_S, eventually
from lib.weir import without_waiting


class Trace:
    def __init__(self, weir, directory, *words):
        self.paths = [directory / f"trace-{id(self)}.{name}" for name in ("out", "err")]
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.process = subprocess.Popen(weir.command("trace", "--json", *words), env=weir.environment(),
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        eventually(lambda: "^C ends" in self.errors() or self.process.poll() is not None, "the trace has begun")

    def errors(self):
        return without_waiting(self.paths[1].read_text())

    def requests(self):
        """Those told of up to now."""
        whole, _, _ = self.paths[0].read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def wait(self):
        """It ends by itself: its exit status, and what it said."""
        return self.process.wait(PATIENCE_S), self.errors()

    def end(self):
        """Ends it as ^C does: everything that was decided up to now."""
        self.process.send_signal(signal.SIGINT)
        status, said = self.wait()
        assert status == 0, said
        assert said.count("\n") == 1, said  # nothing was lost
        return self.requests()

    def kill(self):
        self.process.kill()
        self.process.wait()
