# SPDX-License-Identifier: GPL-2.0
"""
A node's kubelet, as far as a container of a DaemonSet needs one: the image's files, as the Dockerfile has them, and the container as its
manifest says, by crun. All comes from these files, so that what is tested is what is shipped.
"""
import http.client
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.process import PATIENCE_S, end, eventually, run
from lib.weir import BINARY, BUILD

PACKAGING = BUILD.parent / "packaging"
DOCKERFILE = PACKAGING / "container/Dockerfile"
IMAGE = os.environ.get("WEIR_TEST_IMAGE")
# What containerd gives each container.
USUAL_MOUNTS = [
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
    {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
     "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
]
MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
PROPAGATION = {None: "rprivate", "HostToContainer": "rslave", "Bidirectional": "rshared"}


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")


def objects(track):
    """What kubectl apply -k would apply, by kind."""
    made = run("kubectl", "kustomize", PACKAGING / "kubernetes" / track)
    text = run("kubectl", "label", "--local", "-f", "-", "-o", "json", "of=test", input=made)
    found = {}
    while text.strip():
        item, length = json.JSONDecoder().raw_decode(text.lstrip())
        found[item["kind"]] = item
        text = text.lstrip()[length:]
    return found


# --- the image

def depends_on(package):
    """Debian's names, the first of alternatives."""
    said = run("dpkg-query", "--show", "--showformat", "${Pre-Depends}, ${Depends}", package)
    return {re.split(r"[ (:|]", word.strip())[0] for word in said.split(",") if word.strip()}


def packages():
    """Those of the image that have libraries, with what apt installs for them."""
    found, wanted = set(), {"libc6", *re.findall(r"\b(?:lib|zlib)[-.\w]+", DOCKERFILE.read_text().rsplit("--no-install-recommends", 1)[1])}
    while wanted:
        package = wanted.pop()
        found.add(package)
        wanted |= depends_on(package) - found
    return {package for package in found if re.match("lib|zlib", package)}


def put(root, path):
    target = root / path.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target, follow_symlinks=False)


def make_image(root):
    """
    WEIR_TEST_IMAGE is the root of an image that was built (tests/image). Else only what a program is linked with is taken of packages:
    nothing else in the image is run.
    """
    if IMAGE:
        root.symlink_to(IMAGE)
        return
    for package in packages():
        for line in run("dpkg-query", "--listfiles", package).splitlines():
            path = Path(line)
            if ".so" in path.name and path.is_file():
                put(root, path)
    target, = re.findall(r"^COPY --from=build \S+ (\S+)$", DOCKERFILE.read_text(), re.MULTILINE)
    (root / target.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
    run("strip", "--strip-unneeded", "-o", root / target.lstrip("/"), BINARY)


def entrypoint():
    (words,) = re.findall(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE.read_text(), re.MULTILINE)
    return json.loads(words)


# --- a ConfigMap's volume

class ConfigMap:
    """As a kubelet writes it: names are links into ..data, which is one to a directory, and is replaced as a whole."""

    def __init__(self, directory, data):
        self.directory = directory
        self.versions = 0
        directory.mkdir()
        self.write(data)
        for name in data:
            (directory / name).symlink_to(f"..data/{name}")

    def write(self, data):
        self.versions += 1
        version = self.directory / f"..version_{self.versions}"
        version.mkdir()
        for name, text in data.items():
            (version / name).write_text(text)
        link = self.directory / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self.directory / "..data")


# --- the node

class Node:
    """A machine with a network namespace, a bpffs and directories of its own."""

    def __init__(self, namespace, directory, bpffs):
        self.namespace = namespace
        self.directory = directory
        self.bpffs = bpffs
        self.bpffs.mkdir()
        self.image = directory / "image"
        make_image(self.image)

    def command(self, *words):
        """Runs where the node's /sys/fs/bpf is what the container sees of it, and its cgroups are those of today."""
        mounts = f'mount --bind {self.bpffs} /sys/fs/bpf && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", mounts, "node", *self.namespace.command(*words)]

    def path(self, host_path):
        """/sys is the machine's; other directories are the test's."""
        path = host_path["path"]
        if path.startswith("/sys/"):
            return path
        own = self.directory / path.lstrip("/")
        if host_path.get("type") == "DirectoryOrCreate":
            own.mkdir(parents=True, exist_ok=True)
        return str(own)

    def weir(self, *words):
        """The binary of this version, on the node itself."""
        places = {"WEIR_STATE_DIR": self.directory / "run/weir", "WEIR_PERSIST_DIR": self.directory / "var/lib/weir"}
        return run(*self.command(BINARY, *words), env={**os.environ, **{name: str(path) for name, path in places.items()}})


class Pod:
    """The DaemonSet's one container on the node, from its start to its end."""

    def __init__(self, node, daemonset, volumes, name):
        self.node = node
        self.spec = daemonset["spec"]["template"]["spec"]
        (self.container,) = self.spec["containers"]
        self.volumes = volumes
        self.name = name
        self.bundle = node.directory / name
        self.bundle.mkdir()
        (self.bundle / "config.json").write_text(json.dumps(self.config()))
        self.log = node.directory / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(node.command(*self.crun("run", "--bundle", self.bundle, name)),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def crun(self, *words):
        """Its cgroup is the test's: a kubelet would have made one."""
        return ["crun", "--root", self.node.directory / "crun", "--cgroup-manager", "disabled", *words]

    def capabilities(self):
        """Without those that the machine of the tests has not itself."""
        wanted = self.container["securityContext"]["capabilities"]
        assert wanted["drop"] == ["ALL"]
        own = int(re.search(r"^CapBnd:\s(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE)[1], 16)
        numbers = dict(re.findall(r"^#define (CAP_\w+)\s+(\d+)$", Path("/usr/include/linux/capability.h").read_text(), re.MULTILINE))
        return [f"CAP_{name}" for name in wanted["add"] if own >> int(numbers[f"CAP_{name}"]) & 1]

    def mount(self, mount):
        (volume,) = [volume for volume in self.spec["volumes"] if volume["name"] == mount["name"]]
        source = self.node.path(volume["hostPath"]) if "hostPath" in volume else str(self.volumes[volume["configMap"]["name"]].directory)
        return {"destination": mount["mountPath"], "type": "bind", "source": source,
                "options": ["rbind", "ro" if mount.get("readOnly") else "rw", PROPAGATION[mount.get("mountPropagation")]]}

    def config(self):
        context = self.container["securityContext"]
        has = self.capabilities()
        own = [kind for kind, shared in (("mount", False), ("ipc", False), ("pid", self.spec.get("hostPID")),
                                         ("network", self.spec.get("hostNetwork"))) if not shared]
        proc = {"type": "bind", "source": "/proc", "options": ["rbind", "nosuid", "noexec", "nodev"]}
        if "pid" in own:
            proc = {"type": "proc", "source": "proc"}
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": context["runAsUser"], "gid": 0},
                "args": entrypoint() + self.container["args"],
                "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", *(f"{item['name']}={item['value']}" for item in self.container["env"])],
                "cwd": "/",
                "capabilities": {kind: has for kind in ("bounding", "effective", "permitted")},
                "noNewPrivileges": not context["allowPrivilegeEscalation"]},
            "root": {"path": str(self.node.image), "readonly": context["readOnlyRootFilesystem"]},
            "mounts": [{"destination": "/proc", **proc}, *USUAL_MOUNTS, *map(self.mount, self.container["volumeMounts"])],
            "linux": {"namespaces": [{"type": kind} for kind in own], "maskedPaths": MASKED, "readonlyPaths": READ_ONLY}}

    def probe(self, name):
        """The status of its answer; 0: there is none."""
        get = self.container[name]["httpGet"]
        with self.node.namespace.entered():
            connection = http.client.HTTPConnection(get["host"], get["port"], timeout=1)
            try:
                connection.request("GET", get["path"])
                return connection.getresponse().status
            except OSError:
                return 0
            finally:
                connection.close()

    def ready(self):
        assert self.process.poll() is None, self.log.read_text()
        return self.probe("startupProbe") == 200 and self.probe("readinessProbe") == 200

    def start(self):
        probe = self.container["startupProbe"]
        eventually(self.ready, "its probes say that it is ready", probe["periodSeconds"] * probe["failureThreshold"])
        return self

    def run(self, *words):
        """kubectl exec POD -- ..."""
        return run(*self.crun("exec", self.name, *words))

    def pid(self):
        return json.loads(run(*self.crun("state", self.name)))["pid"]

    def json(self, *words):
        return json.loads(self.run("weir", *words, "--json"))

    def stop(self):
        """SIGTERM, and as long as the kubelet waits for it. Its exit status."""
        run(*self.crun("kill", self.name, "TERM"))
        return self.process.wait(self.spec["terminationGracePeriodSeconds"])

    def close(self):
        if self.process.poll() is None:
            subprocess.run([str(word) for word in self.crun("delete", "--force", self.name)], timeout=PATIENCE_S, check=False)
            end(self.process)
