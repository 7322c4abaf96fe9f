# SPDX-License-Identifier: GPL-2.0
"""What is built where the build host describes no types (`make VMLINUX_BTF=none`) is taken by this kernel."""
from lib.process import run
from lib.weir import BINARY

TESTS = BINARY.parent / "tests"


def test_without_btf():
    programs = run(TESTS / "vm/load", TESTS / "without-btf.o").splitlines()
    assert {line.split()[0] for line in programs} >= {"weir_ingress", "weir_egress", "weir_hold"}
