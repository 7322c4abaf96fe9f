# SPDX-License-Identifier: GPL-2.0
"""Completion in bash and zsh: commands and options are those of this build; servers and limits those of the agent."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
METRICS = """weir_server_mode{server="web",mode="limiting"} 1
weir_server_mode{server="web",mode="paused"} 0
weir_server_mode{server="api",mode="limiting"} 1
weir_limit_dry_run{server="web",limit="user"} 0
weir_limit_dry_run{server="web",limit="lists"} 1
weir_limit_dry_run{server="web",limit="level/low"} 0
"""

EXPECTED = {
    "weir sta": ["status"],
    "weir lim": ["limit"],
    "weir limit ": ["delete", "list", "set"],
    "weir limit delete ": ["lists", "user"],
    "weir limit set li": ["lists"],
    "weir limit set --dry": ["--dry-run"],
    "weir limit list --server ": ["api", "web"],
    "weir pause w": ["web"],
    "weir dry-run web ": ["off", "on"],
    "weir dry-run web on ": [],
    "weir attach new --when": ["--when-full"],
    "weir status --output j": ["json"],
    "weir status ": ["api", "web"],
    "weir audit a": ["api"],
    "weir top --by re": ["refusal", "request", "resource"],
    "weir top --by user ": ["api", "web"],
    "weir top --once w": ["web"],
    "weir limit set --server web li": ["lists"],
    "weir limit set --dry-run li": ["lists"],
    "weir nosuch ": [],
    "weir apply --po": [],
    "weir audit --per": [],
    "weir attach --n": ["--namespace-from", "--netns", "--new-subjects"],
    "weir history --by se": ["server"],
    "weir top --by se": [],
    "weir help lim": ["limit"],
    "weir help limit ": ["delete", "list", "set"],
    "weir help top ": [],
    "weir detach -f a": ["api"],
    "weir status -o json a": ["api"],
}
FILES = {f"weir {words} user/weir.se": ["user/weir.service.in"] for words in (
    "apply -f", "check --filename", "agent --policy", "attach --token-file", "attach --netns", "events --recording", "replay", "status --state-dir")}


@pytest.fixture
def path(tmp_path):
    """This build, with an agent's metrics."""
    (tmp_path / "metrics").write_text(METRICS)
    program = tmp_path / "weir"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = metrics ] && exec cat {tmp_path}/metrics\nexec {ROOT}/build/weir \"$@\"\n")
    program.chmod(0o755)
    return tmp_path


def complete(path, line):
    script = ('source packaging/completion/weir.bash; words=$1; read -ra COMP_WORDS <<<"$words"; '
              '[[ $words == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _weir; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-uc", script, "bash", line], cwd=ROOT, text=True, capture_output=True,
                          env={"PATH": f"{path}:/usr/bin:/bin"})
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.split())


@pytest.mark.parametrize("line", [*EXPECTED, *FILES])
def test_completion(path, line):
    assert complete(path, line) == {**EXPECTED, **FILES}[line]


def test_options(path):
    """Of each command those that it takes, as the reference has them, and no other command's."""
    common, *commands = (ROOT / "docs/reference/commands.md").read_text().split("\n## weir ")
    option = re.compile(r"^\| `(?:-., )?(--[a-z-]+)", re.M)
    shared = {"--help", "--usage", "--version", *option.findall(common)}
    for command in commands:
        name = command.split("\n", 1)[0]
        if name != "help":
            assert complete(path, f"weir {name} --") == sorted(shared | set(option.findall(command))), name


# What zsh would offer: those of the words given to compadd that begin with what is typed.
ZSH = """
compadd() {
	local -a offered
	case $1 in
	(-a) offered=(${(P)2}) ;;
	(--) offered=($@[2,-1]) ;;
	(*) offered=($@) ;;
	esac
	print -l -- ${(M)offered:#$words[CURRENT]*}
}
_files() { print -l -- $words[CURRENT]*(N) }
words=(${=1}); [[ $1 == *' ' ]] && words+=("")
CURRENT=$#words
source packaging/completion/_weir
"""


@pytest.mark.parametrize("line", [*EXPECTED, *FILES])
def test_completion_in_zsh(path, line):
    if not shutil.which("zsh"):
        pytest.skip("there is no zsh")
    done = subprocess.run(["zsh", "-fuc", ZSH, "zsh", line], cwd=ROOT, text=True, capture_output=True,
                          env={"PATH": f"{path}:/usr/bin:/bin"})
    assert (done.returncode, done.stderr, sorted(done.stdout.split())) == (0, "", {**EXPECTED, **FILES}[line])
