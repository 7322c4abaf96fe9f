# SPDX-License-Identifier: GPL-2.0
"""What is asked of the API server (session/). Much of it fails, there being no node: it is asked all the same."""
import contextlib
import http.client
import os
import shlex
import subprocess
from pathlib import Path

from lib.process import PATIENCE_S

FILES = Path(__file__).parent / "session"
LIMITED = "limited"
POD = "/api/v1/namespaces/weir-audit/pods/p2"


def lines(name):
    return [line for line in (FILES / name).read_text().splitlines() if not line.startswith("#")]


def reads():
    return [(method, target, None) for target in lines("reads") for method in ("GET", "HEAD")]


def writes():
    for line in lines("writes"):
        method, target, *body = line.split(" ", 2)
        yield method, target, body[0] if body else None


class Kubectl:
    def __init__(self, directory, port):
        self.base = [os.environ.get("KUBECTL", "kubectl"), "-s", f"http://127.0.0.1:{port}", "-n", "weir-audit"]
        self.environment = {**os.environ, "KUBECONFIG": "/dev/null", "HOME": str(directory)}

    def __call__(self, line):
        """Runs a line of the session: WORD... [< FILE]. False when it failed."""
        words, _, name = line.partition(" < ")
        text = (FILES / name).read_text() if name else ""
        done = subprocess.run(self.base + shlex.split(words), env=self.environment, input=text, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE_S)
        return done.returncode == 0


def raw(port, requests):
    """One after the other, on a connection as long as it lasts. Whatever the answer is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    for method, target, body in requests:
        connection.putrequest(method, target, skip_accept_encoding=True)
        if body is not None:
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            connection.putheader("Content-Type", kind)
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders((body or "").encode())
        connection.getresponse().read()
    connection.close()


def upgrade(port, method, target):
    """As exec by WebSocket and by SPDY begin."""
    for protocol in "websocket", "SPDY/3.1":
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request(method, target, headers={
            "Connection": "Upgrade", "Upgrade": protocol, "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "v4.channel.k8s.io"})
        connection.getresponse().read()
        connection.close()


@contextlib.contextmanager
def managed(program, directory, port):
    """A controller manager runs meanwhile."""
    configuration = directory / "manager.kubeconfig"
    configuration.write_text("{apiVersion: v1, kind: Config, current-context: c,\n"
                             " contexts: [{name: c, context: {cluster: c}}],\n"
                             f' clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]}}\n')
    with open(directory / "manager.log", "wb") as log:
        manager = subprocess.Popen([program, f"--kubeconfig={configuration}", "--port=0", "--secure-port=0",
                                    f"--cert-dir={directory}", "--controllers=*,-nodeipam"],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
        assert manager.poll() is None, (directory / "manager.log").read_text()[-2000:]
    finally:
        manager.terminate()
        manager.wait(PATIENCE_S)


def run_lines(kubectl, name):
    done = [kubectl(line) for line in lines(name)]
    print(f"session/{name}: {len(done)} commands, {done.count(False)} of them failed", flush=True)


def run(directory, identities):
    ports = identities.ports
    kubectl = Kubectl(directory, ports["admin"])
    run_lines(kubectl, "commands")
    raw(ports["admin"], reads())
    raw(ports["admin"], writes())
    for method in "GET", "POST":
        for what in "exec?command=ls&container=c&stdout=1", "attach?container=c", "portforward?ports=80":
            upgrade(ports["admin"], method, f"{POD}/{what}")
    for user in "nobody-special", "system:serviceaccount:default:builder", None:
        raw(ports[user], reads()[:60])
    raw(ports[LIMITED], [("GET", f"/api/v1/namespaces/weir-audit/pods?n={i}", None) for i in range(10)])
    if program := os.environ.get("KUBE_CONTROLLER_MANAGER"):
        with managed(program, directory, ports["system:kube-controller-manager"]):
            run_lines(kubectl, "managed")
    else:
        print("KUBE_CONTROLLER_MANAGER is not set: the session has none")
    run_lines(kubectl, "ending")
