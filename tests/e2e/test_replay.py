# SPDX-License-Identifier: GPL-2.0
"""`weir replay`: a policy decides a recording as it has decided the run itself, and another one as it would have."""
import json
import shutil
import subprocess
import time

import pytest

pytestmark = pytest.mark.together

PODS = "/api/v1/namespaces/{}/pods"
POLICY = """
apiVersion: weir/v1
kind: Throttle
metadata: {name: web}
spec:
  listen: ["*:8080"]
  limits:
  - {name: user, qps: %s, burst: %s}
"""


@pytest.fixture
def site(world):
    site = world.site()
    site.attach("--exempt-group", "ops", "--new-subjects", "2:3")
    return site


def save(path, requests):
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))
    return path


def drive(site, refusals=10):
    """
    Near the limits, at times of chance, by a user who is exempt, some who are not, one without a name and some who are new: until
    some were refused, on a slow machine, too.
    """
    clients = [site.client("alice"), site.client("bob"), site.client("root"), site.client()]
    refused = n = 0
    while n < 120 or refused < refusals:
        client = clients[n % len(clients)]
        reply = client.exchange(PODS.format(("dev", "prod")[n % 3 == 0]), ("GET", "DELETE")[n % 7 == 0],
                                **({"X_Remote_Group": "ops"} if client.user == "root" else {}))
        refused += reply.status == 429
        if n % 10 == 0:
            site.client(f"new-{n}").get("/livez" if n % 20 else "/")
        time.sleep(0.003)
        n += 1
        assert n < 3000


def replay(world, *words):
    done = world.weir.run("replay", *words, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert done.stderr == "".join(f"weir: warning: {note}\n" for note in result["notes"])
    return result


def limits(site):
    site.limit("user", qps=10, burst=6)
    site.limit("user", "bob", qps=6, burst=2)
    site.limit("namespace", qps=18, burst=9)
    site.weir("limit", "set", "deletes", "--key", "total", "--verb", "delete", "--qps", 1, "--burst", 1)
    site.weir("limit", "set", "lists", "--verb", "list", "--key", "user,namespace", "--qps", 4, "--burst", 3,
              "--penalty", "exponential:100ms..1s")


def test_the_policy_that_was_in_force(world, site, tmp_path):
    """Each request gets the decision that it got, by the same limit, with the same Retry-After."""
    limits(site)
    policy = tmp_path / "web.yaml"
    policy.write_text(world.weir("export"))
    trace = world.trace()
    drive(site)
    requests = trace.end()
    recording = save(tmp_path / "run", requests)
    counts = {decision: sum(request["decision"] == decision for request in requests)
              for decision in ("passed", "shed", "exempt")}
    assert min(counts.values()) >= 10
    done = world.weir.run("replay", "--policy", policy, recording, "--each")
    assert done.returncode == 0, done.stderr
    replayed = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(replayed) == len(requests)
    for request in replayed:
        said = request.pop("replayed")
        was = {key: request[key] for key in ("decision", "limit", "retry_after") if key in request}
        assert said == was, request
    assert "of which 0 are decided otherwise" in done.stderr and "warning" not in done.stderr
    result = replay(world, "--policy", policy, recording)
    assert result["recorded"] == result["replayed"] == {**counts, "dry_run_shed": 0} and result["changed"] == 0
    assert result["left_out"] == {"other_servers": 0, "rejected": 0, "unread": 0} and not result["notes"]
    assert result["missing"] == {"target": 0, "rest_of_target": 0, "groups": 0}
    assert sum(row["refused"] for row in result["limits"]) >= counts["shed"]


def test_another_policy(world, site, tmp_path):
    """What 3 requests a user would have had refused; in a dry run it refuses nothing."""
    trace = world.trace()
    assert site.client("alice").drive(5) == [200] * 5
    assert site.client("bob").drive(4) == [200] * 4
    recording = save(tmp_path / "run", trace.end())
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY % (0, 3))
    result = replay(world, "--policy", policy, recording)
    assert result["requests"] == 9 and result["changed"] == 3
    assert result["replayed"] == {"passed": 6, "shed": 3, "exempt": 0, "dry_run_shed": 0}
    assert result["limits"] == [{"server": "web", "limit": "user", "requests": 9, "refused": 3, "would_refuse": 0}]
    assert [(row["subject"], row["requests"], row["refused"]) for row in result["subjects"]] == [("alice", 5, 2),
                                                                                                 ("bob", 4, 1)]
    assert not replay(world, "--policy", policy, recording, "--top", 0)["subjects"]
    policy.write_text(POLICY % (0, 3) + "  dryRun: true\n")
    result = replay(world, "--policy", policy, recording)
    assert result["replayed"]["dry_run_shed"] == 3 and not result["replayed"]["shed"]
    assert result["limits"][0]["would_refuse"] == 3
    text = world.weir("replay", "--policy", policy, recording)
    assert ["web", "user", "alice", "5", "0", "2"] in [line.split() for line in text.splitlines()]


def test_what_a_recording_does_not_say(world, site, tmp_path):
    trace = world.trace()
    site.client("alice").drive(4)
    requests = trace.end()
    for key in ("target", "method", "groups"):
        requests[0][key] = None
    requests[1]["server"] = "other"
    requests[2]["target"] = "/" + "x" * 500 + "..."
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY % (0, 9) + "  - {name: slow, key: total, inFlight: 1}\n")
    recording = save(tmp_path / "run", requests)
    result = replay(world, "--policy", policy, recording)
    assert result["requests"] == 3 and result["left_out"]["other_servers"] == 1
    assert result["missing"] == {"target": 1, "rest_of_target": 1, "groups": 1}
    assert ["slow" in note for note in result["notes"]] == [True]
    said = world.weir.run("replay", "--policy", policy, recording).stdout
    for line in ("1 more is of a server that the policy does not name", "1 has no target: it is taken for GET /",
                 "1 has a target that was cut", "1 does not say the user's groups"):
        assert f"\n{line}\n" in said
    for request in requests:
        del request["monotonic_ns"]
    result = replay(world, "--policy", policy, save(recording, requests))
    assert result["requests"] == 3 and "wall clock" in result["notes"][1]


def test_words_that_are_wrong(world, site, tmp_path):
    policy, recording = tmp_path / "policy.yaml", tmp_path / "run"
    policy.write_text(POLICY % (1, 3))
    refused = world.weir.refused
    assert "--policy FILE is missing" in refused("replay", "run", status=2)
    assert "the recording is missing" in refused("replay", "--policy", policy, status=2)
    assert "No such file" in refused("replay", "--policy", policy, recording)
    recording.write_text("{}\n")
    assert f"{recording}:1: " in refused("replay", "--policy", policy, recording)
    assert "/dev/zero:1: not a line of weir trace --json: it is longer than 1 MiB" in refused(
        "replay", "--policy", policy, "/dev/zero")
    trace = world.trace()
    site.client("alice").drive(2)
    requests = trace.end()
    requests[1]["monotonic_ns"] -= 60 * 10**9
    assert f"{recording}:2: it came before" in refused("replay", "--policy", policy, save(recording, requests))


def test_a_slow_kernel(world, tmp_path):
    policy, recording = tmp_path / "policy.yaml", tmp_path / "run"
    policy.write_text(POLICY % (1, 3))
    recording.touch()
    world.weir.preload("refuse.c", WEIR_TEST_SLOW="4")
    done = subprocess.run(world.weir.command("replay", "--policy", policy, recording), env=world.weir.environment(),
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "weir: loading programs into the kernel ...\n")
    assert done.stdout.startswith("0 requests in 0.0 s")


def test_without_root(world, tmp_path):
    """One line, and none of the words of the library that loads programs."""
    if not shutil.which("setpriv"):
        pytest.skip("there is no setpriv")
    words = world.weir.command("replay", "--policy", "-", "/dev/null")
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", *words], input=POLICY % (1, 3), capture_output=True,
                          text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("weir: the kernel refuses bpf(): weir needs root of the machine itself (CAP_BPF, CAP_NET_ADMIN), and no seccomp "
                           "filter that forbids it\n")


def test_a_pipe_is_answered_as_it_comes(world, site, tmp_path):
    """Line by line, while more than one batch of them is still to come; and a bad line says which one it is."""
    policy, recording = tmp_path / "policy.yaml", tmp_path / "run"
    policy.write_text(POLICY % (1, 3))
    trace = world.trace()
    site.client("alice").drive(2)
    first = trace.end()[0]
    command = world.weir.command("replay", "--policy", policy, "-", "--each")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                          env=world.weir.environment()) as running:
        for n in range(5):
            print(json.dumps(first), file=running.stdin)
            assert json.loads(running.stdout.readline())["replayed"]["decision"] == ("passed" if n < 3 else "shed")
        running.stdin.close()
    assert running.returncode == 0
    save(recording, [first] * 299 + [{}] + [first])
    done = world.weir.run("replay", "--policy", policy, recording, "--each")
    assert done.returncode == 1 and f"{recording}:300: " in done.stderr
    assert len(done.stdout.splitlines()) == 299
