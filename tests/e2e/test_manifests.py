# SPDX-License-Identifier: GPL-2.0
"""packaging/: what the manifests and the image say fits this build. tests/kube/manifests asks a real API server, too."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.weir import BINARY

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "packaging/kubernetes"
TRACKS = "stable", "canary"


def kustomized(track):
    if not shutil.which("kubectl"):
        pytest.skip("there is no kubectl")
    done = subprocess.run(["kubectl", "kustomize", MANIFESTS / track], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tracks_are_apart():
    """Each has its own pods, policy and nodes."""
    stable, canary = map(kustomized, TRACKS)
    assert "key: weir-canary" in stable and "operator: DoesNotExist" in stable
    assert 'weir-canary: "true"' in canary
    assert stable.count("track: stable") == canary.count("track: canary") == 2
    assert "name: weir-policy\n" in stable and "name: weir-policy-canary\n" in canary
    assert "name: weir-policy\n" not in canary
    for text in stable, canary:
        assert "/livez" in text and "/readyz" in text and "automountServiceAccountToken: false" in text


@pytest.mark.parametrize("track", TRACKS)
def test_policies_are_right(track):
    done = subprocess.run([BINARY, "check", "-f", MANIFESTS / track / "api.yaml"], text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_options_are_known():
    (words,) = re.findall(r"^ +args: \[(.*)\]$", (MANIFESTS / "base/daemonset.yaml").read_text(), re.MULTILINE)
    command, *rest = words.split(", ")
    known = subprocess.run([BINARY, "help", command], text=True, capture_output=True, check=True).stdout
    assert all(word in known for word in rest if word.startswith("--"))


def test_capabilities_of_the_unit():
    """No pod has less than the service."""
    unit = (ROOT / "user/weir.service.in").read_text()
    (bound,) = re.findall(r"^CapabilityBoundingSet=((?:.*\\\n)*.*)$", unit, re.MULTILINE)
    (added,) = re.findall(r"add: \[(.*)\]", (MANIFESTS / "base/daemonset.yaml").read_text())
    wanted = {word.removeprefix("CAP_") for word in bound.replace("\\\n", " ").split()} - {"NET_BIND_SERVICE"}
    assert wanted <= set(added.split(", "))


def test_libraries_of_the_image():
    """All that the binary is linked with, by Debian's names."""
    if not shutil.which("dpkg-query"):
        pytest.skip("there is no dpkg-query")
    linked = subprocess.run(["ldd", BINARY], text=True, capture_output=True, check=True).stdout
    said = (ROOT / "packaging/container/Dockerfile").read_text().rsplit("--no-install-recommends", 1)[1]
    for path in re.findall(r"=> (/\S+)", linked):
        owner = subprocess.run(["dpkg-query", "--search", "*/" + Path(path).name], text=True, capture_output=True).stdout
        packages = {line.split(":")[0] for line in owner.splitlines()}
        assert not packages or packages & {"libc6", *said.split()}, f"{path} is of {packages}"
