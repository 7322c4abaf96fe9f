# SPDX-License-Identifier: GPL-2.0
"""Servers refuse by themselves, in a guest of QEMU (tests/inside/refusing): also where this machine's kernel lets no program write a
server's registers or memory."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from lib.inside import program

ROOT = Path(__file__).resolve().parents[2]
SINCE = 6, 18
# Not all of tests/inside/refusing, nor as often: `make test` is not to wait for it for more than two minutes. `make test-inside` has all.
FEW = {"INSIDE_TESTS": "users newer status_says beside rejected away many_streams without_an_agent", "REFUSALS": "300",
       "VM_BEGIN": "180", "VM_TIMEOUT": "600"}


def version(directory):
    """Of its newest kernel, which tests/vm/run takes."""
    names = [path.name for path in [*directory.glob("lib/modules/*"), *directory.glob("usr/lib/modules/*")]
             if (directory / f"boot/vmlinuz-{path.name}").exists() or (path / "vmlinuz").exists()]
    return max((tuple(map(int, re.findall(r"\d+", name)[:2])) for name in names), default=(0, 0))


def kernel(by):
    """Of those that KERNELS names (docs/internals/kernels.md); without them, the one in /boot."""
    for directory in os.environ.get("KERNELS", "").split() or ["/"]:
        found = version(Path(directory))
        if found > (0, 0) and (found >= SINCE) == (by == "registers"):
            return directory
    pytest.skip(f"neither KERNELS nor /boot has a kernel {'from' if by == 'registers' else 'before'} 6.18 that a guest could run")


@pytest.mark.parametrize("by", ["registers", "memory"])
def test_servers_refuse(by):
    tools = subprocess.run([ROOT / "tests/install-deps", "--check", "kernels"], text=True, stderr=subprocess.PIPE, check=False)
    if tools.returncode:
        pytest.skip(tools.stderr.strip())
    directory = kernel(by)
    programs = program("apiserver").parent
    assert all(program(name).parent == programs for name in ("modern", "plain", "client"))
    # It takes longer than any other test: it comes first, where that is allowed.
    done = subprocess.run(["nice", "-n", "-5", ROOT / "tests/vm/run", directory], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**FEW, **os.environ, "VM_GUEST": "tests/inside/refusing", "INSIDE_DIR": str(programs)})
    assert done.returncode == 0, done.stdout
