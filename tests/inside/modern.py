# SPDX-License-Identifier: GPL-2.0
"""An API server of k8s.io/apiserver 0.36, made with Go 1.26. It has custom resources and no users of its own."""
import contextlib
import json
from pathlib import Path

from kube import Program, got

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWER = Path(__file__).with_name("reviewer")
REVIEWER_PORT = 6443


def kubeconfig(kube):
    """Where the core's API server is, as this one takes it."""
    path = kube.directory / "core.kubeconfig"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "core",
        "clusters": [{"name": "core", "cluster": {"server": f"http://127.0.0.1:{REVIEWER_PORT}"}}],
        "contexts": [{"name": "core", "context": {"cluster": "core", "user": ""}}]}))
    return path


@contextlib.contextmanager
def modern_server(kube, *users, options=(), **environment):
    """It serves these users and the group system:masters. A whole API server for the core's part would take minutes in a guest,
    and gives up what it does at its start after 30 seconds. Without the core's kinds this one is never ready, but it serves."""
    binary = got("apiextensions-apiserver")
    reviewer = Program(kube.namespace, kube.directory, "reviewer", REVIEWER, REVIEWER_PORT, *users)
    try:
        config = kubeconfig(kube)
        kube.start(7443, binary, "--etcd-prefix=/modern", f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
                   f"--authorization-kubeconfig={config}", "--authentication-skip-lookup", *options, ready="/livez", **environment)
        yield kube
    finally:
        kube.stop()
        reviewer.end()
