# SPDX-License-Identifier: GPL-2.0
"""Where the benchmarks run: a network namespace with servers and an agent, and a client's host behind a veth."""
import contextlib
import ctypes
import json
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from lib.netns import tcx_programs
from lib.process import end, eventually, run
from lib.weir import Weir

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/tests/bench"

SERVER_CPU, CLIENT_CPU = 0, 1
LOOPBACK_IFINDEX = 1
CLONE_NEWNET = 0x40000000
BPF_STATS_RUN_TIME = 0

NGINX, NGINX_LIMITED, GO, HAPROXY, HAPROXY_LIMITED, HAPROXY_USERS = 8001, 8002, 8003, 8004, 8005, 8006
METRICS = "127.0.0.1:8007"
LOOPBACK, SERVER_HOST, CLIENT_HOST = "127.0.0.1", "10.99.0.1", "10.99.0.2"
FAR = (("user", "--qps", 1000000, "--burst", 1000000), ("total", "--qps", 1000000, "--burst", 1000000))


def pinned(cpu, first=False):
    """For a process to be: where it runs, and whether it runs before others."""
    def prepare():
        os.sched_setaffinity(0, {cpu})
        if first:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    return prepare


@contextlib.contextmanager
def before_others(cpu):
    """What begins in it stays on the CPU, with all threads that it will have, and goes before what others have to do there."""
    cpus, scheduler, parameter = os.sched_getaffinity(0), os.sched_getscheduler(0), os.sched_getparam(0)
    pinned(cpu, first=True)()
    try:
        yield
    finally:
        os.sched_setscheduler(0, scheduler, parameter)
        os.sched_setaffinity(0, cpus)


def enter_own_namespace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "a network namespace")
    run("ip", "link", "set", "lo", "up")


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port)):
        return True
    return False


class Machine:
    def __init__(self):
        self.cleanup = contextlib.ExitStack()
        self.logs = []
        self.pids = {}  # of the processes behind a port, those that serve it
        self.stays = False  # another server is attached in this network namespace
        self.missing = {}  # why nothing serves a port

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.cleanup = stack
            self.set_up()
            self.cleanup = stack.pop_all()
        return self

    def __exit__(self, *exception):
        return self.cleanup.__exit__(*exception)

    def set_up(self):
        enter_own_namespace()
        shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.dir = Path(self.cleanup.enter_context(tempfile.TemporaryDirectory(prefix="weir-bench-", dir=shared)))
        self.start_nginx()
        self.try_to(self.start_go, GO)
        self.try_to(self.start_haproxy, HAPROXY)
        self.start_agent()
        self.add_client_host()

    # --- processes

    def try_to(self, start, port):
        """What cannot be had is missing only where it is measured."""
        try:
            start()
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            self.missing[port] = " ".join(str(error).split())

    def must_serve(self, port):
        if port not in self.pids:
            raise RuntimeError(self.missing.get(port, f"nothing serves port {port}"))

    def start(self, name, command, port):
        """A process on the server's CPU; returns it when its port answers."""
        log = self.cleanup.enter_context(open(self.dir / f"{name}.log", "wb"))
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   cwd=self.dir, preexec_fn=pinned(SERVER_CPU))
        self.cleanup.callback(end, process)
        eventually(lambda: answers(port) or process.poll() is not None, f"{name} answers")
        assert process.poll() is None, f"{name}: {(self.dir / f'{name}.log').read_text()}"
        return process.pid

    def start_nginx(self):
        for directory in "files", "uploads":
            (self.dir / directory).mkdir()
        (self.dir / "files/small").write_bytes(b"x" * 1024)
        (self.dir / "files/large").write_bytes(b"x" * (1 << 20))
        (self.dir / "files/index.html").write_text("served by nginx\n")
        master = self.start("nginx", ["nginx", "-p", f"{self.dir}/", "-c", HERE / "nginx.conf", "-e", "error.log", "-g",
                                      "daemon off;"], NGINX)
        workers = Path(f"/proc/{master}/task/{master}/children").read_text().split()
        self.pids[NGINX] = self.pids[NGINX_LIMITED] = workers

    def start_go(self):
        binary = BUILD / "server"
        environment = {**os.environ, "GO111MODULE": "off", "CGO_ENABLED": "0", "GOCACHE": str(BUILD / "gocache")}
        run("go", "build", "-o", binary, HERE / "server.go", env=environment)
        self.pids[GO] = [self.start("go", [binary, GO], GO)]

    def start_haproxy(self):
        pid = self.start("haproxy", ["haproxy", "-db", "-f", HERE / "haproxy.cfg"], HAPROXY)
        self.pids[HAPROXY_LIMITED] = [pid]
        self.pids[HAPROXY] = [pid, *self.pids[NGINX]]
        self.pids[HAPROXY_USERS] = [pid, *self.pids.get(GO, [])]

    def start_agent(self):
        pins = Path(f"/sys/fs/bpf/weir-bench-{os.getpid()}")
        self.weir = Weir(self.dir, pins)
        self.weir.start(METRICS)
        self.cleanup.callback(lambda: pins.exists() and pins.rmdir())
        self.cleanup.callback(self.weir.stop)
        self.cleanup.callback(self.weir.run, "detach", "--all", "--force")

    # --- the client's host: a namespace that is gone with the process that holds it

    def add_client_host(self):
        holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        self.cleanup.callback(end, holder)
        own = os.readlink("/proc/self/ns/net")
        eventually(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != own, "the client's namespace is there")
        self.client_host = ["nsenter", "-t", str(holder.pid), "-n"]
        run("ip", "link", "add", "bench0", "type", "veth", "peer", "name", "bench1", "netns", holder.pid)
        self.add_end([], "bench0", SERVER_HOST, SERVER_CPU)
        self.add_end(self.client_host, "bench1", CLIENT_HOST, CLIENT_CPU)

    def add_end(self, host, device, address, cpu):
        """What comes in by the device is worked on by the CPU, as if it were a host of one CPU."""
        run(*host, "ip", "address", "add", f"{address}/24", "dev", device)
        run(*host, "ip", "link", "set", device, "up")
        run(*host, "unshare", "--mount", "sh", "-c",
            f"mount -t sysfs none /mnt && echo {1 << cpu:x} >/mnt/class/net/{device}/queues/rx-0/rps_cpus")

    # --- weir

    @contextlib.contextmanager
    def attached(self, *options, limits=FAR):
        """Before and after it, nothing of weir's is in the packets' way."""
        self.weir("attach", "bench", *options)
        try:
            for limit in limits:
                self.weir("limit", "set", *limit, "--server", "bench")
            yield
        finally:
            self.weir("detach", "bench", "--force")
            assert self.stays or not tcx_programs(LOOPBACK_IFINDEX), "programs stay on loopback"

    def pin(self, name):
        (path,) = self.weir.pins.glob(f"net-*/{name}")
        return path

    def run_times(self):
        """{program: (ns, packets)} since it was loaded, of the time for which statistics were enabled."""
        times = {}
        for name in "ingress", "egress":
            info = json.loads(run("bpftool", "-j", "prog", "show", "pinned", self.pin(f"prog-{name}")))
            times[name] = info.get("run_time_ns", 0), info.get("run_cnt", 0)
        return times

    # --- load

    def load_command(self, port, path="/", *, seconds, warm_up=0.2, connections=16, rate=0, method="GET", body=0,
                     user=None, host=LOOPBACK):
        command = [BUILD / "load", "-s", seconds, "-w", warm_up, "-c", connections, "-r", rate]
        if body:
            command += ["-m", method, "-b", body]
        if user:
            command += ["-u", f"X-Remote-User: {user}"]
        for pid in self.pids.get(port, ()):
            command += ["-p", pid]
        prefix = self.client_host if host == SERVER_HOST else []
        return [str(word) for word in [*prefix, *command, host, port, path]]

    def begin_load(self, *arguments, first=False, **options):
        command = self.load_command(*arguments, **options)
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pinned(CLIENT_CPU, first))

    @staticmethod
    def finish_load(process):
        try:
            text, _ = process.communicate()
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode:
            raise RuntimeError(f"the load generator failed: {' '.join(process.args)}")
        result = json.loads(text)
        result["server_cpu_s"] = sum(result["process_cpu_s"])
        result["machine_cpu_s"] = sum(result["cpus_s"])
        return result

    def load(self, *arguments, **options):
        """What the generator measured (load.c), and the sums over the server's processes and all CPUs."""
        return self.finish_load(self.begin_load(*arguments, **options))


@contextlib.contextmanager
def run_statistics():
    """The kernel measures the programs' time, until the descriptor is closed."""
    fd = ctypes.CDLL("libbpf.so.1").bpf_enable_stats(BPF_STATS_RUN_TIME)
    try:
        yield fd >= 0
    finally:
        if fd >= 0:
            os.close(fd)


def busy_cpus(seconds):
    """How many CPUs others keep busy."""
    def idle():
        with open("/proc/stat") as stat:
            fields = stat.readline().split()
        return (int(fields[4]) + int(fields[5]) + int(fields[8])) / os.sysconf("SC_CLK_TCK")
    before, start = idle(), time.monotonic()
    time.sleep(seconds)
    wall = time.monotonic() - start
    return max(0, os.cpu_count() - (idle() - before) / wall)
