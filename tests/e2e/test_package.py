# SPDX-License-Identifier: GPL-2.0
"""The Debian package below a root of its own: installed, upgraded, removed, purged. Its scripts touch no service there."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.process import run

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def packages():
    """Of two versions."""
    for program in ("dpkg-deb", "dpkg-shlibdeps", "strip", "deb-systemd-helper"):
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")
    made = [subprocess.run([ROOT / "packaging/deb/build", version], text=True, capture_output=True) for version in ("0.0.1", "0.0.2")]
    for done in made:
        assert done.returncode == 0, done.stderr
    paths = [ROOT / done.stdout.strip() for done in made]
    yield paths
    for path in paths:
        path.unlink()


class Machine:
    def __init__(self, root):
        self.root = root
        for folder in ("info", "updates"):
            (root / "var/lib/dpkg" / folder).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()

    def dpkg(self, *words):
        done = subprocess.run(["dpkg", f"--root={self.root}", "--force-script-chrootless", "--force-depends", *words],
                              text=True, capture_output=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr

    def has(self, path):
        return (self.root / path).exists()


def test_life_of_the_package(packages, tmp_path):
    machine = Machine(tmp_path)
    machine.dpkg("--install", packages[0])
    for path in ("usr/bin/weir", "lib/systemd/system/weir.service", "usr/share/man/man8/weir.8.gz",
                 "usr/share/bash-completion/completions/weir", "usr/share/zsh/vendor-completions/_weir",
                 "usr/share/weir/monitoring/dashboard.json", "etc/weir/policy.d", "usr/share/doc/weir/README.md",
                 "usr/share/doc/weir/docs/reference/reasons.md", "usr/share/doc/weir/packaging/nginx/kubernetes.conf"):
        assert machine.has(path), path
    enabled = tmp_path / "etc/systemd/system/multi-user.target.wants/weir.service"
    assert enabled.is_symlink()
    assert "ExecStart=/usr/bin/weir agent" in (tmp_path / "lib/systemd/system/weir.service").read_text()
    options, state = tmp_path / "etc/default/weir", tmp_path / "var/lib/weir/state.json"
    options.write_text('WEIR_OPTIONS="--metrics off"\n')
    state.parent.mkdir()
    state.touch()
    machine.dpkg("--install", packages[1])
    assert options.read_text() == 'WEIR_OPTIONS="--metrics off"\n'
    machine.dpkg("--remove", "weir")
    assert not machine.has("usr/bin/weir") and options.exists() and state.exists() and enabled.is_symlink()
    machine.dpkg("--purge", "weir")
    assert not options.exists() and not state.parent.exists() and not machine.has("etc/weir") and not enabled.is_symlink()


def test_removal_does_not_wait(tmp_path):
    """For connections that had a 429 and stay open: a client may keep one for good. Whose weir ends is not up to the shell."""
    said = tmp_path / "said"
    for program in ("weir", "deb-systemd-invoke"):
        (tmp_path / program).write_text(f'#!/bin/sh\necho {program} "$@" $WEIR_STATE_DIR $WEIR_PIN_DIR >>{said}\n')
        (tmp_path / program).chmod(0o755)
    defaults = tmp_path / "defaults"
    defaults.mkdir()

    def ended():
        subprocess.run(["unshare", "--mount", "sh", "-ec", 'mount --bind "$1" /etc/default; exec "$2" remove', "sh", defaults,
                        ROOT / "packaging/deb/prerm"], check=True,
                       env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "WEIR_STATE_DIR": "/other", "WEIR_PIN_DIR": "/other"})
        return said.read_text().splitlines()[-1]

    assert ended() == "weir uninstall --force-after 10s"
    options = defaults / "weir"
    options.write_text('WEIR_OPTIONS="--policy /p --state-dir /s --metrics off --pin-dir=/b"\n')
    assert ended() == "weir uninstall --force-after 10s --state-dir=/s --pin-dir=/b"
    options.write_text("WEIR_STATE_DIR=/s\nWEIR_OPTIONS=\n")
    assert ended() == "weir uninstall --force-after 10s /s"


def test_a_later_one_is_newer(packages, monkeypatch):
    """Of the same version of weir: else apt says that the newest one is there already, and an upgrade changes nothing."""
    made = []
    for time in ("1700000000", "1700000001"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", time)
        path = Path(run(ROOT / "packaging/deb/build", "0.0.1").strip())
        made.append(run("dpkg-deb", "--field", ROOT / path, "Version").strip())
        assert path.name.startswith(f"weir_{made[-1]}_")
        (ROOT / path).unlink()
    assert made == ["0.0.1+20231114.221320", "0.0.1+20231114.221321"]
    run("dpkg", "--compare-versions", made[0], "lt", made[1])


def test_what_it_depends_on(packages):
    said = subprocess.run(["dpkg-deb", "--field", packages[0], "Depends"], text=True, capture_output=True, check=True).stdout
    assert "libbpf" in said and "libjansson" in said
