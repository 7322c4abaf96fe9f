# SPDX-License-Identifier: GPL-2.0
"""weir itself: an agent of our own, its commands, and its numbers."""
import json
import os
import re
import subprocess
from pathlib import Path

from lib.process import PATIENCE_S, end, eventually, run

SOURCES = Path(__file__).resolve().parents[1]
BUILD = SOURCES.parents[1] / "build"
BINARY = BUILD / "weir"
OTHER_PROGRAMS = BUILD / "other-programs/weir"  # on the same maps
OTHER_MAPS = BUILD / "other-maps/weir"  # which it would make: it is of another ABI version
WITHOUT_INSIDE = BUILD / "without-inside/weir"  # INSIDE=0
DECISIONS = ("passed", "shed", "exempt", "dry_run_shed", "rejected", "dry_run_rejected")
SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)')
WITHOUT_CGROUP2 = ("unshare", "--mount", "sh", "-c", 'umount --all --types cgroup2 && exec "$@"', "sh")
WAITING = re.compile(r"^weir: (waiting for the agent.*|loading programs into the kernel|trying programs in the kernel|replaying the recording"
                     r"|reading the (binary|audit log)) \.\.\.\n", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parse_metrics(text):
    """{name: {(label value, ...): number}}, the labels in the order of their names."""
    families = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        key = tuple(value for _, value in sorted(LABEL.findall(labels or "")))
        samples = families.setdefault(name, {})
        assert key not in samples, f"twice: {line}"
        samples[key] = float(value)
    return families


def without_waiting(said):
    """Any command may take longer than two seconds on a machine whose CPUs are busy, and says so."""
    return WAITING.sub("", said)


class Weir:
    def __init__(self, directory, pins, namespace=None):
        self.state_dir = directory / "state"
        self.pins = pins
        self.binary = BINARY
        self.log_path = directory / "agent.log"
        self.namespace = namespace  # where the agent and its commands run; None: where the tests do
        self.log_from = 0  # where what the test sees of it begins
        self.metrics_port = None
        self.process = None
        self.options = None  # the agent's
        self.usual = ("off",)  # options
        self.around = ()  # words before the agent's command
        self.preloaded = {}  # what an agent that is started, and each command, finds in its environment besides

    def command(self, *words):
        command = [str(word) for word in (self.binary, *words)]
        return self.namespace.command(*command) if self.namespace else command

    def environment(self):
        return {"WEIR_PERSIST_DIR": str(self.state_dir.parent / "persist"), **os.environ,
                "WEIR_STATE_DIR": str(self.state_dir), "WEIR_PIN_DIR": str(self.pins), **self.preloaded}

    def preload(self, source, **variables):
        """From now on calls of the C library are answered by tests/e2e/SOURCE."""
        library = self.state_dir.parent / f"{source}.so"
        run("cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library, SOURCES / source, "-ldl")
        self.preloaded = {"LD_PRELOAD": str(library), **variables}

    def log(self):
        return self.log_path.read_bytes()[self.log_from:].decode()

    def log_begin(self):
        self.log_from = self.log_path.stat().st_size

    def launch(self, metrics="off", *options):
        """An agent that may not be ready yet."""
        self.options = (metrics, *options)
        with open(self.log_path, "ab") as log:
            command = [*self.around, *self.command("agent", "--metrics", metrics, *options)]
            self.process = subprocess.Popen(command, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start(self, metrics="off", *options):
        """In the place of the one that runs, if one does."""
        if self.running():
            self.stop()
        offset = len(self.log()) if self.log_path.exists() else 0
        self.launch(metrics, *options)
        eventually(lambda: "ready" in self.log()[offset:] or self.process.poll() is not None, "the agent is ready")
        assert self.process.poll() is None, self.log()

    def start_as_usual(self):
        """One with the usual options, whatever a test has made of it."""
        if not self.running() or self.options != self.usual or self.around:
            self.around = ()
            self.start(*self.usual)

    def start_without_cgroup2(self):
        """One that finds no cgroup2 mounted: nothing is held."""
        self.around = WITHOUT_CGROUP2
        self.start(*self.usual)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """Ends the agent, which must go cleanly."""
        assert end(self.process) == 0, self.log()
        self.process = None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def run(self, *words, **options):
        """A command's outcome, whatever it is. It gives up by itself: after seconds if the agent hangs, after two minutes if it is busy."""
        done = subprocess.run(self.command(*words), env=self.environment(), text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=4 * PATIENCE_S, **options)
        done.stderr = without_waiting(done.stderr)
        return done

    def __call__(self, *words):
        """The output of a command that must succeed and have nothing to complain about."""
        done = self.run(*words)
        assert (done.returncode, done.stderr) == (0, ""), f"weir {' '.join(map(str, words))}: {done.stderr}"
        return done.stdout

    def refused(self, *words, status=1):
        """The one line on stderr of a command that must fail."""
        done = self.run(*words)
        assert (done.returncode, done.stdout) == (status, ""), f"weir {' '.join(map(str, words))}: {done}"
        assert done.stderr.endswith("\n") and done.stderr.count("\n") == 1, f"not one line: {done.stderr}"
        return done.stderr.rstrip("\n")

    def json(self, *words):
        return json.loads(self(*words, "--json"))

    def servers(self):
        return self.json("status")["servers"]

    def server(self, name="web"):
        """What `status` says of a server."""
        (server,) = [server for server in self.servers() if server["name"] == name]
        return server

    def metrics(self):
        return parse_metrics(self("metrics"))

    def counts(self, name="web"):
        """The requests by decision, on which `status` and `metrics` agree."""
        status, metrics = self.server(name), self.metrics()
        said = {decision: status[decision] for decision in DECISIONS}
        assert said == {decision: metrics["weir_requests_total"][decision, name] for decision in DECISIONS}
        return said
