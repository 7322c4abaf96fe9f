# SPDX-License-Identifier: GPL-2.0
"""What is built: also where the build host describes no types (`make VMLINUX_BTF=none`), and hardened."""
import os
import subprocess

from lib.process import run
from lib.weir import BINARY

BUILD = BINARY.parent


def test_without_btf():
    programs = run(BUILD / "tests/vm/load", BUILD / "without-btf/weir.bpf.o").splitlines()
    assert {line.split()[0] for line in programs} >= {"weir_ingress", "weir_egress", "weir_hold"}


def test_hardened():
    """An agent that is root's is at no address that is known, cannot have its jumps written over, and ends where its
    stack or its buffers are."""
    said = run("readelf", "--wide", "--file-header", "--program-headers", "--dynamic", "--dyn-syms", BINARY)
    assert "DYN (" in said, "not position-independent"
    assert "GNU_RELRO" in said and " NOW" in said, "its table of jumps can be written"
    assert "__stack_chk_fail" in said, "no stack protector"
    assert "__memcpy_chk" in said or "__snprintf_chk" in said, "not fortified"
    assert " RWE " not in said, "memory that is written and run"


def missing(**environment):
    root = BUILD.parent
    return subprocess.run([root / "tests/install-deps", "--check", "build"], env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def test_compiler_of_several_words():
    """As make takes it: `CC="ccache gcc"`."""
    assert missing(CC="env gcc -m64") == ""
    assert missing(CC="gcc-of-nobody").endswith(": gcc\n")
    assert missing(CC="env gcc-of-nobody").endswith(": gcc\n")


def test_one_count_of_jobs():
    """A recursive make shares the jobs of the first one, and warns of nothing."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    for words in ([], ["-j3"]):
        done = subprocess.run(["make", "-C", BUILD.parent, "-n", *words, "demo"], env=environment, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_deps():
    """One word brings all that building, testing and linting need."""
    said = run("make", "-C", BUILD.parent, "-n", "deps")
    assert "tests/install-deps test\n" in said and "tests/install-deps lint\n" in said
