# SPDX-License-Identifier: GPL-2.0
"""What is built where the build host describes no types (`make VMLINUX_BTF=none`) is taken by this kernel."""
from lib.process import run
from lib.weir import BINARY

BUILD = BINARY.parent


def test_without_btf():
    programs = run(BUILD / "tests/vm/load", BUILD / "without-btf/weir.bpf.o").splitlines()
    assert {line.split()[0] for line in programs} >= {"weir_ingress", "weir_egress", "weir_hold"}
