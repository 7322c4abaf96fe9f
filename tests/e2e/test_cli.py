# SPDX-License-Identifier: GPL-2.0
"""The command line: what it prints, and that a mistake is one clear line and changes nothing."""
import os
import re
import subprocess

import pytest

from lib.process import PATIENCE_S
from lib.weir import Weir

pytestmark = pytest.mark.together

COMMANDS = ["agent", "attach", "detach", "pause", "resume", "limit set", "limit delete", "limit list", "max-in-flight",
            "status",
            "metrics", "version", "help"]

# Wrong usage: exit 2, whether there is an agent or not. What the line must say.
USAGE = {
    "bogus": "bogus",
    "limit bogus": "bogus",
    "help bogus": "bogus",
    "attach": "NAME is missing",
    "attach web2": "--port or --listen",
    "attach web2 --port 0": '"0" is not a port',
    "attach web2 --port 65536": '"65536" is not a port',
    "attach web2 --port 80,65536": '"65536" is not a port',
    "attach web2 --port 8a": '"8a" is not a port',
    "attach web2 --port -1": '"-1" is not a port',
    "attach web2 --listen 80": '"80" is not ADDR:PORT',
    "attach web2 --listen 10.0.0.300:80": '"10.0.0.300" is not an IP address',
    "attach web2 --listen fd00::1:80": "is not ADDR:PORT",
    "attach web2 --port 80 --trusted-proxy 10.0.0.0/33": "prefix must be 0 to 32",
    "attach web2 --port 80 --trusted-proxy nonsense": '"nonsense" is not an IP address or CIDR',
    "attach web2 --port 80 --loopback maybe": "maybe",
    "attach web2 --port 80 --framing guess": '"guess" is not a framing mode',
    "attach web2 --port 80 --bodies skimmed": '"skimmed" is not what a server does with bodies',
    "attach web2 --port 80 --when-full ajar": '"ajar" is not a mode for full tables',
    "explain get /api/v1/pods": '"get" has small letters: methods are in capitals, like GET',
    "explain GET api/v1/pods": '"api/v1/pods" is not a path (/..., with %20 for a space)',
    "attach web2 --port 80 --paths apache": '"apache" is not a path mode',
    "attach web2 --port 80 --namespace-from host": '"host" does not name a namespace',
    "attach web2 --port 80 --namespace-from segment=0": "the first segment is 1",
    "attach web2 --port 80 --namespace-from segment=10": '"10"',
    "attach web2 --port 80 --namespace-from prefix=/a//b/": "with one slash around each segment",
    "attach web2 --port 80 --interface a/b": '"a/b" is not an interface',
    "attach web2 --port 80 --keys 0x10": '"0x10" is not a whole number',
    "attach web2 --port 80 --keys 0": "--keys: must be at least 1",
    "limit set user --qps 1 --burst 1 --keys 0": "--keys: must be at least 1",
    "attach WEB --port 80": '"WEB" is not a server\'s name',
    "attach one two --port 80": '"two"',
    "detach": "--all",
    "detach web --all": "use either NAME or --all",
    "limit set": "total, namespace, user, source-and-object",
    "limit set Everything --qps 1 --burst 1": '"Everything" is not a limit',
    "limit set user --qps 12abc --burst 1": '"12abc" is not a rate',
    "limit set user --qps -1 --burst 1": '"-1" is not a rate',
    "limit set user --qps 1e3 --burst 1": '"1e3" is not a rate',
    "limit set user --qps 1000000001 --burst 1": '"1000000001" is not a rate',
    "limit set user --qps nan --burst 1": '"nan" is not a rate',
    "limit set user --qps 1 --burst 1.5": '"1.5" is not a whole number',
    "limit set user --qps 1 --burst -1": '"-1" is not a whole number',
    "limit set user --in-flight 2kk": '--in-flight: "2kk" is not a whole number',
    "limit set user --dry-run --enforce": "use either --dry-run or --enforce",
    "limit set user carol --dry-run": "--dry-run, --enforce, --penalty and --over belong to the limit, not to a subject",
    "check policy.yaml": '"policy.yaml" is an unexpected argument: a file is named by -f',
    "export web": '"web" is an unexpected argument: a server is named by --server',
    "limit list web": '"web" is an unexpected argument: a server is named by --server',
    "max-in-flight web": '"web" is an unexpected argument: a server is named by --server',
    "max-in-flight --mutating 2kk": '--mutating: "2kk" is not a whole number from 0 to 1000000000, like 100 or 2k',
    "dry-run": "the server's name, and on or off, are missing",
    "dry-run web": "on or off is missing behind web",
    "dry-run web ON": '"ON" must be on or off',
    "limit set user --penalty x": "fast-slow:FAST,SLOW,ATTEMPTS",
    "limit set user": "--qps and --burst, --open, --in-flight or --deny are missing",
    "limit set total alice --qps 1 --burst 1": "a total limit has no subject",
    "limit set source-and-object web-1 --qps 1 --burst 1": "a limit for each object is the same for all",
    "limit set namespace a/b --qps 1 --burst 1": '"a/b" is not a namespace',
    "limit set user a b --qps 1 --burst 1": '"b"',
    "limit delete Everything": '"Everything" is not a limit',
    "status -o xml": '"xml" is not a format',
    "status web extra": '"extra"',
    "limit delete user a b": '"b"',
    "agent --metrics off extra": '"extra"',
    "agent --connections 0": "at least one",
    "limt": 'there is no command "limt": is "limit" meant?',
    "limit sett user": 'is "limit set" meant?',
    "agent --log xml": '"xml" must be text or json',
    "agent --connections 16777217": '"16777217"',
    "agent --metrics 9790": '"9790" is not ADDR:PORT',
    "help --json": 'it prints text and takes no options: leave "--json" out',
    "help limit set -o yaml": 'leave "-o" out',
    "--json help": 'leave "-o" out',
    "attach web2 --port 80 --address nonsense": '--address: "nonsense": CIDR,user,"groups",namespace are 2 to 4 columns, and 1 is there',
    "attach web2 --port 80 --address x,y": '--address: "x,y": this is not an IP address or CIDR',
    "top --once --rows 0": "--rows: must be at least 1",
    "status a/b": 'NAME: "a/b" is not a server\'s name',
    "status --wide ../b": 'NAME: "../b" is not a server\'s name',
    "detach a/b": 'NAME: "a/b" is not a server\'s name',
    "pause a/b": 'NAME: "a/b" is not a server\'s name',
    "resume a/b": 'NAME: "a/b" is not a server\'s name',
    "reload a/b": 'NAME: "a/b" is not a server\'s name',
    "dry-run a/b on": 'NAME: "a/b" is not a server\'s name',
    "events --audit-window 5s": "--audit-window needs --audit-log",
    "trace a/b": 'NAME: "a/b" is not a server\'s name',
    "events a/b": 'NAME: "a/b" is not a server\'s name',
    "top a/b": 'NAME: "a/b" is not a server\'s name',
    "history a/b": 'NAME: "a/b" is not a server\'s name',
    "suggest a/b": 'NAME: "a/b" is not a server\'s name',
    "audit a/b": 'NAME: "a/b" is not a server\'s name',
    "agent --metrics :9790": '":9790" is not ADDR:PORT',
    "explain GET / --source nonsense": '--source: "nonsense" is not an IP address',
    "explain GET / --source 10.0.0.0/8": '--source: "10.0.0.0/8" is a network: a single address is needed',
    "explain GET / --source 10.0.0.0/99": '--source: "10.0.0.0/99" is not an IP address',
    "attach web2 --port 80 --exempt-source nonsense": '--exempt-source: "nonsense" is not an IP address or CIDR',
    "attach web2 --port 80 --exempt-path nonsense": '--exempt-path: "nonsense" is not a path',
    "attach web2 --port 80 --max-retry-after 1h1s": '--max-retry-after: "1h1s" is not whole seconds from 1s to 1h',
    "attach web2 --port 80 --max-retry-after 1500ms": '--max-retry-after: "1500ms" is not whole seconds from 1s to 1h',
    "attach web2 --port 80 --inside hold --hold-max 26s": '--hold-max: "26s" is not whole seconds from 1s to 25s',
    "agent --resync 0": '--resync: "0" is not whole seconds from 1s to 24h',
    "agent --resync 1.5": '--resync: "1.5" is not a duration: whole numbers with h, m, s, ms, us or ns, like 5ms',
    "trace --for many": '--for: "many" is not a duration: whole numbers with h, m, s, ms, us or ns, like 5ms or 1h30m',
    "trace --for -1": '--for: "-1" is not a duration',
    "trace --for 999us": "--for: must be at least 1ms",
    "events --follow --for 5x": '--for: "5x" is not a duration',
    "limit list --server a/b": '--server: "a/b" is not a server\'s name',
}

# What only the agent can tell: exit 1.
REFUSED = {
    "attach web --port 80": '"web"',
    "attach web2 --port 8080 --netns {netns}": "8080",
    "attach web2 --port 80 --netns /does/not/exist": "/does/not/exist",
    "attach web2 --port 80 --netns {netns} --interface nosuch0": '"nosuch0"',
    "attach web2 --port 80 --netns {netns} --cgroup /does/not/exist": "/does/not/exist",
    "detach web2": 'no server "web2": is "web" meant?',
    "pause web2": 'no server "web2"',
    "resume web2": 'no server "web2"',
    "limit set user --qps 1 --burst 1 --server web2": 'no server "web2"',
    "limit delete user --server web2": 'no server "web2"',
    "limit list --server web2": 'no server "web2": is "web" meant?',
    "limit delete user carol": "has nothing for \"carol\"",
    "limit delete total": "has no limit \"total\"",
    "limit set total --qps 1": "burst is missing",
    "limit set total --burst 1": "qps is missing",
    "limit set user carol --qps 1": "burst is missing",
    "limit delete usr": 'has no limit "usr": is "user" meant?',
    "limit set usr --qps 1 --burst 1": 'no limit "usr": is "user" meant?',
    "limit set totl --qps 1 --burst 1": 'no limit "totl": is "total" meant?',
    "top web2": 'no server "web2": is "web" meant?',
    "history web2": 'no server "web2": is "web" meant?',
}


@pytest.fixture
def weir(tmp_path, bpffs):
    """Commands without an agent."""
    return Weir(tmp_path, bpffs / "weir-nothing")


@pytest.mark.parametrize("words", USAGE)
def test_usage(weir, words):
    assert USAGE[words] in weir.refused(*words.split(), status=2)
    assert not weir.state_dir.exists() and not weir.pins.exists()


@pytest.mark.parametrize("words", ["status --state-dir", "agent --state-dir", "uninstall --pin-dir", "check --filename",
                                   "replay --policy", "probe --netns", "probe --binary", "events --audit-log",
                                   "events --recording", "attach web2 --port 80 --token-file",
                                   "attach web2 --port 80 --address-file", "attach web2 --port 80 --netns"])
def test_a_path_that_is_empty(weir, words):
    """A script's variable that is not set is not the directory /, nor a file without a name."""
    option = words.split()[-1]
    assert weir.refused(*words.split(), "", status=2).endswith(f": {option}: the path is empty")
    assert not weir.state_dir.exists() and not weir.pins.exists()


def test_an_audit_log_that_is_not_there(weir, tmp_path):
    """It is looked for before the agent, which may be another one's or none."""
    log = tmp_path / "audit.log"
    assert weir.refused("events", "--audit-log", log) == f"weir: {log}: No such file or directory"


@pytest.mark.parametrize("words", ["dry-run WORD", "dry-run web WORD", "explain WORD", "limit set user --over WORD",
                                   "limit set user --burst WORD", "limit set user --long-running WORD", "agent --log WORD",
                                   "agent --inside WORD", "agent --policy WORD", "max-in-flight --mutating WORD", "pause a WORD",
                                   "attach web --port WORD", "limit set user --WORD"])
def test_hostile_words_are_shown_harmlessly(weir, words):
    """A script passes on what it was given. No control character of it reaches the terminal."""
    said = weir.refused(*(word.replace("WORD", "a\x1b[31m\nb") for word in words.split()), status=2)
    assert said.isprintable() and "[31m" in said


@pytest.mark.parametrize("words, shown", [(("status", "-\x1b"), r'status: there is no option "-\x1b"'),
                                          (("status", "-\u00e9"), r'status: there is no option "-\xc3"'),
                                          (("limit", "set", "user", "-\x7f"), r'limit set: there is no option "-\x7f"'),
                                          (("-\x1b", "status"), r': there is no option "-\x1b"'),
                                          (("--a\x1b=\x1b", "status"), r': there is no option "--a\x1b"')])
def test_hostile_options_are_shown_harmlessly(weir, words, shown):
    """Before and behind the command, letters and names: getopt would print them as they are."""
    said = weir.refused(*words, status=2)
    assert said.isprintable() and said.endswith(shown)


def test_hostile_names_of_files_are_shown_harmlessly(weir, tmp_path):
    """Whoever writes to a directory of policies has chosen them."""
    (tmp_path / "a\x1b[31m.yaml").write_text("kind: nosuch\n")
    for command in ("check", "apply"):
        said = weir.refused(command, "-f", tmp_path)
        assert said.isprintable() and r"/a\x1b[31m.yaml:1:1: " in said
    said = weir.refused("help", "--reference", "\x1b[31m", status=2)
    assert said.isprintable() and r'"\x1b[31m"' in said


@pytest.mark.parametrize("words", ["status", "metrics", "limit list", "limit set user --qps 1 --burst 1", "pause",
                                   "max-in-flight --mutating 2k",
                                   "limit delete user", "resume", "detach --all", "attach web --port 80"])
def test_without_agent(weir, words):
    assert "no agent answers" in weir.refused(*words.split())
    assert not weir.state_dir.exists() and not weir.pins.exists()


@pytest.mark.parametrize("words", ["status --nosuch", "agent --port 80", "limit list --server"])
def test_unknown_options(weir, words):
    done = weir.run(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("weir ")


MISSPELLED = {
    "statsu": '"statsu": is "status" meant?',
    "limit lsit": '"limit lsit": is "limit list" meant?',
    "limits set": '"limits set": is "limit set" meant?',
    "frobnicate": '"weir help" lists them',
    "limit set user --qsp 5": 'weir limit set: there is no option "--qsp": is "--qps" meant?',
    "limit set user --brust=5 --burts 5": 'there is no option "--brust": is "--burst" meant?',
    "attach --lsten *:80 web2": 'there is no option "--lsten": is "--listen" meant?',
    "agent --polciy x": 'there is no option "--polciy": is "--policy" meant?',
    "status -o json --jsn": 'there is no option "--jsn": is "--json" meant?',
    "--jsn status": 'weir: there is no option "--jsn": is "--json" meant?',
    "status -- --jsn": '"--jsn" is not a server\'s name',
}


@pytest.mark.parametrize("words", MISSPELLED)
def test_misspelled(weir, words):
    assert MISSPELLED[words] in weir.refused(*words.split(), status=2)


def test_files_without_an_object(weir, tmp_path):
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    for file in first, second:
        file.write_text("# nothing\n")
    assert f"there is no object in {first}, {second}" in weir.refused("check", "-f", first, "-f", second)


def test_a_directory_without_a_policy_file(weir, tmp_path):
    (tmp_path / "notes.txt").write_text("# nothing\n")
    for command, status in ("check", 1), ("apply", 1), ("delete", 1), ("diff", 2):
        assert weir.refused(command, "-f", tmp_path, status=status) == (
            f"weir: there is no policy file in {tmp_path}: of a directory, files are read whose names end in .yaml, .yml or .json")


def test_stdin_that_is_closed(weir):
    for command, status in ("check", 1), ("apply", 1), ("delete", 1), ("diff", 2):
        words = ["sh", "-c", 'exec "$@" <&-', "sh", *map(str, weir.command(command, "-f", "-"))]
        done = subprocess.run(words, env=weir.environment(), capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (status, "", "weir: stdin: it is closed\n")


@pytest.mark.parametrize("words", ["check -f -", "events --recording -"])
def test_stdin_that_is_silent(weir, words):
    """Who has called it so by mistake is told what is waited for."""
    process = subprocess.Popen(weir.command(*words.split()), env=weir.environment(), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline() == "weir: waiting for what comes on standard input ...\n"
    process.stdin.write("no object")
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1 and said.count("\n") == 1


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="/proc/kmsg cannot be read")
@pytest.mark.parametrize("command, status", [("check", 1), ("diff", 2)])
def test_a_file_that_never_ends(weir, command, status):
    """It is a regular file, and keeps its readers until the kernel has something to say."""
    assert weir.refused(command, "-f", "/proc/kmsg", status=status) == "weir: /proc/kmsg: it would have to be waited for"


def test_lines_that_never_end(weir, tmp_path):
    """A wrong file is refused before it has filled the memory."""
    recording = tmp_path / "recording"
    recording.touch()
    assert weir.refused("events", "--recording", "/dev/zero").startswith(
        "weir: /dev/zero:1: not a line of weir trace --json or weir events --json: it is longer than 1 MiB")
    done = weir.run("events", "--recording", recording, "--audit-log", "/dev/zero")
    assert done.returncode == 1 and "weir: /dev/zero:1: longer than 100 MiB" in done.stderr


def test_an_audit_log_that_takes_long(weir, tmp_path):
    recording, log = tmp_path / "recording", tmp_path / "audit.log"
    recording.touch()
    os.mkfifo(log)
    process = subprocess.Popen(weir.command("events", "--recording", recording, "--audit-log", log), env=weir.environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with log.open("w"):
        assert process.stderr.readline() == "weir: reading the audit log ...\n"
    assert process.communicate(timeout=PATIENCE_S)[1] == "" and process.returncode == 0


@pytest.mark.parametrize("words, said", [("attach web2 --in x", "is ambiguous"), ("apply -f --prnue -q", "invalid option"),
                                         ("limit set user --nothing-like-it", "unrecognized option")])
def test_what_argp_tells(weir, words, said):
    done = weir.run(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_words_of_limit(weir):
    listed = weir("limit", "--help")
    assert [line.split()[:2] for line in listed.splitlines()] == [["limit", word] for word in ("set", "delete", "list")]
    done = weir.run("limit")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", listed)


def test_no_command(weir):
    done = weir.run()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: weir COMMAND")


def asked_for(site):
    """What status and the limits say, but for rates, which change by themselves."""
    status = site.status()
    del status["rates"]
    return status, site.weir.json("limit", "list")


def test_refusals_change_nothing(site):
    site.limit("user", burst=3)
    site.limit("user", "alice", burst=5)
    before = asked_for(site)
    for words, said in REFUSED.items():
        line = site.weir.refused(*words.format(netns=site.place.server_ns.path).split())
        assert said in line, words
    for words in USAGE:
        assert USAGE[words] in site.weir.refused(*words.split(), status=2)
    assert asked_for(site) == before


@pytest.mark.alone
def test_attach_from_another_namespace(world):
    """`this namespace` would be another one than the agent's."""
    site = world.site()
    done = world.weir.run("status")
    assert done.returncode == 0
    world.weir.namespace = site.place.server_ns
    assert "--netns" in world.weir.refused("attach", "web", "--port", 80)
    world.weir.namespace = None
    assert world.weir.servers() == []


def test_help(weir):
    listing = weir("help")
    for command in COMMANDS:
        assert f"\n  {command} " in listing
    for command in COMMANDS[:-1]:
        explained = weir("help", *command.split())
        assert explained.startswith(f"Usage: weir {command} ")
        assert f"\nExamples:\n  weir {command}" in explained
    assert weir("--help") == listing


def test_version(weir):
    version = weir.json("version")["version"]
    assert weir("version") == weir("--version") == f"weir {version}\n"
    assert weir("version", "-o", "yaml") == f'version: "{version}"\n'


def into_full(weir, *words):
    with open("/dev/full", "w", encoding="utf-8") as full:
        return subprocess.run(weir.command(*words), stdout=full, stderr=subprocess.PIPE, text=True, check=False)


def test_output_that_cannot_be_written(weir):
    for words in ("help", "--help", "version", "--version", "version --json", "status --usage", "status --version"):
        done = into_full(weir, *words.split())
        assert (done.returncode, done.stderr) == (1, "weir: cannot write the output: No space left on device\n"), words
    for command in COMMANDS:  # what argp prints in pieces fails before the end, where the reason is not known any more
        done = into_full(weir, *command.split(), "--help")
        assert done.returncode == 1 and done.stderr.startswith("weir: cannot write the output: "), command


def test_closed_descriptors(weir):
    """What is opened next would be in their place, and get what is printed: here the agent's lock what it logs."""
    (weir.state_dir / "weir.sock").mkdir(parents=True)  # so it does not start
    words = weir.command("agent", "--metrics", "off")
    done = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *words], env=weir.environment(), check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"\d+ *\n", (weir.state_dir / "lock").read_text())


def test_limit_list(site):
    site.limit("total", qps=1000, burst=2000)
    site.limit("namespace", qps=0.5, burst=1)
    site.limit("user", "alice", qps=0.001, burst=3)
    site.limit("user", "2001:db8::1", qps=1, burst=1)
    common = {"server": "web", "mode": "enforce", "file": "command line"}
    assert site.weir.json("limit", "list")["limits"] == [
        {**common, "name": "total", "qps": 1000, "burst": 2000},
        {**common, "name": "namespace", "qps": 0.5, "burst": 1},
        {**common, "name": "user", "overrides": [{"subject": "alice", "qps": 0.001, "burst": 3},
                                                 {"subject": "2001:db8::/64", "qps": 1, "burst": 1}]}]
    table = site.weir("limit", "list").splitlines()
    assert table[0].split() == ["SERVER", "LIMIT", "KEY", "SUBJECT", "QPS", "BURST", "IN-FLIGHT", "MATCH", "MODE",
                                "PENALTY", "FILE"]
    assert len(table) == 5
    assert ["web", "user", "-", "alice", "0.001", "3", "-", "all", "enforce"] in [line.split()[:9] for line in table]
    site.weir("limit", "set", "total", "--penalty", "fast-slow:1s,30s,3")
    assert site.weir("limit", "list").splitlines()[1].split()[8:10] == ["enforce", "fast-slow:1s,30s,3"]
    assert "subject: alice" in site.weir("limit", "list", "-o", "yaml")


def test_limit_set_again_replaces(site):
    site.limit("user", qps=1, burst=1)
    site.limit("user", qps=2, burst=3)
    (limit,) = site.weir.json("limit", "list", "--server", "web")["limits"]
    assert (limit["qps"], limit["burst"]) == (2, 3)
    assert "overrides" not in limit


def test_what_limit_set_says(site):
    """A limit that lets nothing pass may be a mistake, and who begins a dry run is told how it ends."""
    words = "limit", "set"
    nothing = "is set, and enforced: it has room for none, so all that it counts is refused\n"
    assert site.weir(*words, "user", "--qps", 5, "--burst", 1) == 'server "web": limit user is set, and enforced\n'
    assert site.weir(*words, "user", "--burst", 0) == f'server "web": limit user {nothing}'
    assert site.weir(*words, "user", "--qps", 6) == f'server "web": limit user {nothing}'
    assert site.weir(*words, "user", "alice", "--qps", 5, "--burst", 1) == 'server "web": limit user alice is set, and enforced\n'
    assert site.weir(*words, "user", "bob", "--qps", 5, "--burst", 0) == f'server "web": limit user bob {nothing}'
    assert site.weir(*words, "lists", "--key", "user", "--verb", "list", "--in-flight", 0) == f'server "web": limit lists {nothing}'
    assert site.weir.json(*words, "lists", "--in-flight", 1)["admits_nothing"] is False
    assert site.weir(*words, "never", "--key", "user", "--verb", "list", "--deny") == 'server "web": limit never is set, and enforced\n'
    said = site.weir(*words, "user", "--dry-run")
    end = "weir limit set user --enforce --server web"
    assert said == f'server "web": limit user is set, in a dry run: it refuses nothing; "{end}" ends that\n'
    assert site.weir(*end.split()[1:]) == f'server "web": limit user {nothing}'
    for begin, why, end in (("pause",), "paused", "weir resume web"), (("dry-run", "web", "on"), "in a dry run", "weir dry-run web off"):
        site.weir(*begin)
        assert site.weir(*words, "user", "--qps", 6) == (
            f'server "web": limit user is set; the server is {why}: nothing is refused; "{end}" ends that\n')
        site.weir(*end.split()[1:])


def test_status(site):
    site.limit("user", "alice", burst=1)
    assert site.client("alice").drive(3) == [200, 429, 429]
    (server,) = site.weir.json("status")["servers"]
    assert {key: server[key] for key in ("name", "ports", "connections", "passed", "shed", "mode", "translated")} == {
        "name": "web", "ports": [site.server.port], "connections": 1, "passed": 1, "shed": 2, "mode": "limiting",
        "translated": 1}
    table = site.weir("status", "--wide")
    heads, values = (line.split() for line in table.splitlines()[:2])
    row = dict(zip(heads, values))
    assert (row["SERVER"], row["PORTS"], row["CONNECTIONS"], row["PASSED"], row["SHED"], row["TRANSLATED"]) == (
        "web", str(site.server.port), "1", "1", "2", "1")
    assert ["web", "user", "alice", "2", "0", "1"] in [line.split() for line in table.splitlines()]
    assert "name: web" in site.weir("status", "-o", "yaml")


@pytest.mark.alone
def test_status_of_nothing(world):
    world.weir.start()
    assert world.weir.json("status")["servers"] == []
    assert world.weir.json("limit", "list") == {"limits": []}
    assert world.weir.refused("limit", "set", "user", "--qps", 1, "--burst", 1)


def test_hostile_names_are_shown_harmlessly(site):
    """A name is what a client sent: no control character reaches the terminal, whatever it was."""
    site.limit("user", burst=0)
    name = "ev\u0080\u009bil\u202eé"
    client = site.client()
    client.send(client.head("/r").replace(b"\r\n\r\n", b"\r\nX-Remote-User: " + name.encode() + b"\r\n\r\n"))
    assert client.read().status == 429
    assert site.weir("status", "web").replace("\n", "").isprintable()
    (top,) = site.status()["top"]
    assert top["subject"].isprintable() and top["subject"].startswith("ev")


@pytest.mark.alone
def test_directories_by_option(world):
    """--state-dir and --pin-dir stand for the variables, before or behind the command."""
    world.weir.start()
    environment = world.weir.environment
    world.weir.environment = lambda: {key: value for key, value in environment().items() if "WEIR" not in key}
    assert world.weir("--state-dir", world.weir.state_dir, "status", "--json")
    assert world.weir("status", "--json", "--state-dir", world.weir.state_dir)
    world.weir.environment = environment
