# SPDX-License-Identifier: GPL-2.0
"""Servers refuse by themselves, in a guest of QEMU (tests/inside/refusing): also where this machine's kernel lets no program write a
server's registers or memory."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.inside import program

ROOT = Path(__file__).resolve().parents[2]
SINCE = 6, 18
# Not all of tests/inside/refusing, nor as often: `make test` is not to wait for it for more than two minutes. `make test-inside` has all.
FEW = {"INSIDE_TESTS": "users newer status_says beside rejected away many_streams without_an_agent", "REFUSALS": "300"}


def version(directory):
    found = sorted(directory.glob("lib/modules/*")) or sorted(directory.glob("usr/lib/modules/*"))
    return tuple(map(int, re.findall(r"\d+", found[0].name)[:2])) if found else (0, 0)


def kernel(by):
    """An unpacked kernel package: of those that KERNELS names (docs/internals/kernels.md)."""
    for directory in os.environ.get("KERNELS", "").split():
        if (version(Path(directory)) >= SINCE) == (by == "registers"):
            return directory
    pytest.skip(f"KERNELS names no kernel {'from' if by == 'registers' else 'before'} 6.18 that a guest could run")


@pytest.mark.parametrize("by", ["registers", "memory"])
def test_servers_refuse(by):
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("there is no qemu-system-x86_64 (qemu-system-x86)")
    directory = kernel(by)
    programs = program("apiserver").parent
    assert all(program(name).parent == programs for name in ("modern", "plain", "client"))
    done = subprocess.run([ROOT / "tests/vm/run", directory], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**FEW, **os.environ, "VM_GUEST": "tests/inside/refusing", "INSIDE_DIR": str(programs)})
    assert done.returncode == 0, done.stdout
