# SPDX-License-Identifier: GPL-2.0
"""API servers of Kubernetes as they are (tests/inside/get), in a network namespace of their own: etcd, certificates, clients."""
import collections
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.inside import program
from lib.netns import Netns
from lib.process import end, eventually, run
from lib.weir import BUILD

GOT = Path(os.environ.get("INSIDE_DIR") or BUILD / "inside").resolve()
START_S = int(os.environ.get("PATIENCE_S", 600))  # in a guest, a server takes minutes
# A guest stands still for seconds. etcd would elect another leader, and API servers would give it up.
PATIENT_ETCD = "--heartbeat-interval=1000", "--election-timeout=20000"
PATIENT_SERVER = "--etcd-healthcheck-timeout=60s", "--request-timeout=10m"
ETCD = "http://127.0.0.1:2379"
ITSELF = "system:apiserver"  # an API server has requests of its own
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                "rules": [{"level": "Metadata"}]}
SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)')


def got(name):
    """A program that tests/inside/get has made."""
    path = GOT / "bin" / name
    if not path.exists():
        pytest.skip(f"{path} is not there: see tests/inside/get")
    return path


class Authority:
    """Certificates, all of them in one folder."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(parents=True)
        for name in "ca", "front-proxy-ca":
            run("openssl", "req", "-x509", *self.new_key(name), "-days", "2", "-subj", f"/CN=test-{name}",
                "-out", self.path(f"{name}.crt"))
        self.make("server", "/CN=kube-apiserver", extensions="subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes")
        self.make("front-proxy", "/CN=front-proxy", authority="front-proxy-ca")
        run("openssl", "genrsa", "-out", self.path("accounts.key"), "2048")

    def path(self, name):
        return self.directory / name

    def new_key(self, name):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.path(f"{name}.key"))

    def make(self, name, subject, authority="ca", extensions="extendedKeyUsage=clientAuth"):
        request, extension = self.path(f"{name}.csr"), self.path(f"{name}.ext")
        extension.write_text(extensions + "\n")
        run("openssl", "req", *self.new_key(name), "-subj", subject, "-out", request)
        run("openssl", "x509", "-req", "-in", request, "-CA", self.path(f"{authority}.crt"), "-CAkey",
            self.path(f"{authority}.key"), "-CAcreateserial", "-days", "2", "-extfile", extension,
            "-out", self.path(f"{name}.crt"))

    def of(self, name):
        """Options of the client that has this certificate."""
        if not self.path(f"{name}.crt").exists():
            self.make(name, f"/O=system:masters/CN={name}" if name == "admin" else f"/O=dev/CN={name}")
        return ["-ca", self.path("ca.crt"), "-cert", self.path(f"{name}.crt"), "-key", self.path(f"{name}.key")]


class Program:
    """A server's process in the namespace; its log is a file."""

    def __init__(self, namespace, directory, name, *words, **environment):
        self.log = directory / f"{name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(namespace.command(*words), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, **environment})

    def running(self):
        assert self.process.poll() is None, f"{self.log} ends with:\n{self.log.read_text()[-3000:]}"
        return True

    def end(self):
        if self.process.poll() is None:
            end(self.process)


class Kube:
    """etcd, and the API server that was asked for last."""

    def __init__(self, name, directory):
        self.directory = directory
        self.namespace = Netns(name)
        self.pki = Authority(directory / "pki")
        self.client_program = program("client")
        self.etcd = self.server = self.port = None

    def start_etcd(self):
        if not shutil.which("etcd"):
            pytest.skip("there is no etcd (etcd-server)")
        self.etcd = Program(self.namespace, self.directory, "etcd", "etcd", "--data-dir", self.directory / "etcd",
                            "--listen-client-urls", ETCD, "--advertise-client-urls", ETCD,
                            "--listen-peer-urls", "http://127.0.0.1:2380", *PATIENT_ETCD)
        eventually(lambda: self.etcd.running() and self.answers(f"{ETCD}/health"), "etcd answers", START_S)

    def answers(self, url, *options):
        return subprocess.run(self.namespace.command("curl", "-fsSk", "--max-time", "20", *options, url),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def start(self, port, binary, *options, ready="/readyz", **environment):
        """An API server. Its audit log has every request when its answer has been sent."""
        self.port = port
        self.pki.of("admin")
        policy = self.directory / "audit.yaml"
        policy.write_text(json.dumps(AUDIT_POLICY))
        path = self.pki.path
        self.server = Program(
            self.namespace, self.directory, binary.name, binary, f"--etcd-servers={ETCD}", "--bind-address=127.0.0.1",
            "--advertise-address=10.0.1.1",
            f"--secure-port={port}", f"--tls-cert-file={path('server.crt')}",
            f"--tls-private-key-file={path('server.key')}", f"--client-ca-file={path('ca.crt')}",
            f"--requestheader-client-ca-file={path('front-proxy-ca.crt')}",
            "--requestheader-allowed-names=front-proxy", "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_path()}", "--audit-log-mode=blocking",
            *PATIENT_SERVER, *options, **environment)
        eventually(lambda: self.server.running() and self.answers(self.url(ready), *self.curl("admin")),
                   f"{binary.name} is ready", START_S)

    def start_1_20(self, *options, binary=None, **environment):
        self.start(6443, binary or got("kube-apiserver"), "--endpoint-reconciler-type=none",
                   "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC",
                   "--disable-admission-plugins=ServiceAccount", "--service-account-issuer=https://kubernetes.default.svc",
                   f"--service-account-key-file={self.pki.path('accounts.key')}",
                   f"--service-account-signing-key-file={self.pki.path('accounts.key')}",
                   f"--cert-dir={self.directory}", *options, **environment)

    def url(self, path, port=None):
        return f"https://127.0.0.1:{port or self.port}{path}"

    def curl(self, name):
        return "--cert", self.pki.path(f"{name}.crt"), "--key", self.pki.path(f"{name}.key")

    # --- clients

    def client(self, *options):
        """The counts of tests/inside/src/weir/client; what went wrong is shown when a test fails."""
        done = subprocess.run(self.namespace.command(self.client_program, *options), text=True, stdout=subprocess.PIPE,
                              timeout=START_S)
        return collections.Counter(json.loads(done.stdout))

    def ask(self, name, path, n=1, *options):
        """By certificate."""
        return self.client(*self.pki.of(name), "-n", n, *options, self.url(path))

    def ask_for(self, user, path, n=1, *options, groups=()):
        """By way of an authenticating proxy."""
        headers = [word for name, value in [("User", user), *(("Group", group) for group in groups)]
                   for word in ("-header", f"X-Remote-{name}={value}")]
        return self.client(*self.pki.of("front-proxy"), *headers, "-n", n, *options, self.url(path))

    def kubeconfig(self, name, port):
        self.pki.of(name)
        path = self.directory / f"{name}-{port}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": self.url("", port),
                                                    "certificate-authority": str(self.pki.path("ca.crt"))}}],
            "users": [{"name": "me", "user": {"client-certificate": str(self.pki.path(f"{name}.crt")),
                                              "client-key": str(self.pki.path(f"{name}.key"))}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}]}))
        return path

    def kubectl(self, *words, name="admin", text="", check=True):
        config = self.kubeconfig(name, self.port)
        done = subprocess.run(
            self.namespace.command(got("kubectl"), "--kubeconfig", config, *words), input=text, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "HOME": str(self.directory)},
            timeout=START_S)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout + done.stderr

    # --- what the server says

    def get(self, path):
        """As admin."""
        return run(*self.namespace.command("curl", "-fsSk", *self.curl("admin"), self.url(path)))

    def has(self, path):
        return self.answers(self.url(path), *self.curl("admin"))

    def audit_path(self):
        return self.directory / f"audit-{self.port}.log"

    def audited(self, since=0):
        """The requests of its audit log that have a user other than the server itself. A watch has an event when it begins and
        one when it ends."""
        events = {}
        for line in self.audit_path().read_text()[since:].splitlines():
            event = json.loads(line)
            if event["user"].get("username", ITSELF) != ITSELF:
                events[event["auditID"]] = event
        return list(events.values())

    def audit_mark(self):
        return len(self.audit_path().read_text())

    def metrics(self):
        """{(name, labels in the order of their names): value}"""
        found = {}
        for line in self.get("/metrics").splitlines():
            if match := SAMPLE.fullmatch(line):
                labels = tuple(sorted(re.findall(r'(\w+)="([^"]*)"', match[2] or "")))
                found[match[1], labels] = float(match[3])
        return found

    def allow(self, user):
        """The user may do everything, and is in no group that is exempt from limits."""
        group = "rbac.authorization.k8s.io"
        binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"test:{user}"},
                   "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
                   "subjects": [{"apiGroup": group, "kind": "User", "name": user}]}
        self.ask("admin", f"/apis/{group}/v1/clusterrolebindings", 1, "-method", "POST", "-body", json.dumps(binding))
        eventually(lambda: self.ask("admin", "/healthz/ping", 1, "-header", f"Impersonate-User={user}")["200"],
                   f"{user} is allowed", START_S)

    def pid(self):
        return self.server.process.pid

    def stop(self):
        if self.server:
            self.server.end()

    def end(self):
        for program in self.server, self.etcd:
            if program:
                program.end()
        self.namespace.delete()
