# SPDX-License-Identifier: GPL-2.0
"""`--inside see` on a kube-apiserver 1.20.2: clients, audit log, metrics and weir agree to the request."""
import json
import shutil

import pytest

from answering import asking
from kube import got
from lib.process import eventually
from lib.weir import BINARY, OTHER_PROGRAMS
from seeing import Compared, attach, audited, by_user, lane, many_streams, users_of
from watching import limits_watches

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def old(cluster):
    """kube-apiserver 1.20.2."""
    cluster.start_1_20()
    yield cluster
    cluster.stop()


def service_account_token(kube, name):
    kube.kubectl("create", "serviceaccount", name, check=False)
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    said = kube.kubectl("create", "--raw", path, "-f", "-",
                        text='{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}')
    return said.split('"token":"')[1].split('"')[0]


def test_all_kinds_of_users(world, old):
    """Certificates, tokens of service accounts, an authenticating proxy, impersonation, nobody."""
    token = service_account_token(old, "builder")
    attach(world, old)
    assert world.weir.server("kube")["inside"]["text"].startswith("see (kube-apiserver v1.20.2, go1.19")
    compared = Compared(world, old)
    ca = ["-ca", old.pki.path("ca.crt")]
    assert old.ask("admin", PODS, 20)["200"] == 20
    assert old.ask("alice", PODS, 10)["403"] == 10
    assert old.ask("admin", PODS, 5, "-header", "Impersonate-User=carol")["403"] == 5
    assert old.ask_for("dave", PODS, 7, groups=["system:masters"])["200"] == 7
    assert old.client(*ca, "-token", token, "-n", 6, old.url(PODS))["403"] == 6
    assert old.client(*ca, "-n", 3, old.url(PODS))["403"] == 3
    assert old.client(*ca, "-token", "wrong", "-n", 4, old.url(PODS))["401"] == 4
    # Who is not known does not come as far as the authorization: the audit log has no user of these.
    requests = by_user(compared.end())
    assert requests == {"admin": 20, "alice": 10, "carol": 5, "dave": 7, "system:anonymous": 3,
                        "system:serviceaccount:default:builder": 6}


def test_ids_of_the_audit_log(world, old, tmp_path):
    """Each of ten users' refusals, also of requests at once, has an entry of its own that says the same."""
    attach(world, old)
    world.weir("limit", "set", "user", "--qps", 0, "--burst", 2, "--server", "kube")
    mark, trace = old.audit_mark(), world.trace("kube")
    for n in range(10):
        old.allow(f"user-{n}")
        assert old.ask_for(f"user-{n}", f"{PODS}?limit={n + 1}", 20, "-streams", 5)["200"] == 20
    old.kubectl("create", "configmap", "one", name="admin")
    requests = trace.end()
    eventually(lambda: sum(audited(old, mark, f"user-{n}")["200"] for n in range(10)) == 200, "all are in the audit log")
    recording, log = tmp_path / "kube.jsonl", old.audit_path()
    recording.write_text("".join(json.dumps(request) + "\n" for request in requests))
    refused = [request for request in requests if request["decision"] == "dry_run_shed" and
               request["user"].startswith("user-")]
    assert len(refused) == 180
    done = world.weir.run("events", "--recording", recording, "--audit-log", log, "--json")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    of_id = {event["auditID"]: event for event in old.audited(mark)}
    joined = [event for event in said if event["user"].startswith("user-")]
    assert None not in {event["audit_id"] for event in joined}, done.stderr
    assert len({event["audit_id"] for event in joined}) == 180
    for event in joined:
        entry = of_id[event["audit_id"]]
        assert (entry["user"]["username"], entry["verb"], entry["requestURI"]) == \
            (event["user"], event["verb"], event["target"])


def test_four_questions(world, old, tmp_path):
    """Who makes the load, what would 20 qps a user have refused, who is refused now and why, who changed the limit."""
    old.allow("alice")
    old.allow("ci")
    attach(world, old)
    trace = world.trace("kube")
    assert old.ask_for("alice", PODS, 300, "-streams", 10)["200"] == 300
    assert old.ask_for("ci", PODS, 30)["200"] == 30
    recorded = trace.end()
    users = [row["user"] for row in world.weir.json("top", "kube", "--once", "--interval", "100ms")["rows"]]
    sums = {row["user"]: row["requests"] for row in world.weir.json("history", "kube", "--sum")["rows"]}
    assert {"alice", "ci"} <= set(users) and (sums["alice"], sums["ci"]) == (300, 30)

    recording, policy = tmp_path / "kube.jsonl", tmp_path / "policy.yaml"
    recording.write_text("".join(json.dumps(request) + "\n" for request in recorded))
    policy.write_text(world.weir("export") + "  limits:\n  - {name: user, qps: 20, burst: 40}\n")
    replayed = world.weir.json("replay", "--policy", policy, recording)
    refused = {subject["subject"]: subject["would_refuse"] + subject["refused"] for subject in replayed["subjects"]}
    # A slow machine asks for less: what 20 a second allow in that time passes.
    assert refused.get("alice", 0) >= 300 - 40 - 20 * replayed["seconds"] - 1 and not refused.get("ci")

    world.weir("limit", "set", "user", "--qps", 1, "--burst", 40, "--server", "kube")
    trace = world.trace("kube")
    assert old.ask_for("alice", PODS, 200, "-streams", 10)["200"] == 200  # it is only seen
    assert old.ask_for("ci", PODS, 10)["200"] == 10
    trace.end()
    rows = world.weir.json("top", "kube", "--once", "--interval", "100ms", "--by", "refusal")["rows"]
    assert {(row["limit"], row["user"]) for row in rows} == {("user", "alice")} and rows[0]["dry_run"] > 0
    said = world.weir.json("explain", "GET", PODS, "--user", "alice", "--server", "kube")
    assert [limit["limit"] for limit in said["limits"]] == ["user"]
    last = world.weir.json("audit", "kube")["changes"][-1]
    assert (last["command"], last["what"], last["by"]["uid"]) == ("limit set", "limit user", 0)


def test_kubectl(world, old):
    attach(world, old)
    compared = Compared(world, old)
    old.kubectl("create", "namespace", "team-a")
    old.kubectl("-n", "team-a", "create", "configmap", "one", "--from-literal=a=b")
    old.kubectl("-n", "team-a", "get", "configmaps")
    old.kubectl("-n", "team-a", "annotate", "configmap", "one", "x=y")
    old.kubectl("-n", "team-a", "delete", "configmap", "one")
    old.kubectl("get", "--raw", "/readyz")
    requests = compared.end()
    verbs = {about[1] for about in requests if about[2] == "team-a" and about[4] == "configmaps"}
    assert verbs >= {"create", "list", "get", "patch", "delete"}
    assert not world.weir.server("kube")["seen_inside"].keys() - {"seen"}


def test_many_streams(world, old):
    many_streams(world, old, PODS, resource="pods")


def test_watches(world, old):
    attach(world, old)
    limits_watches(world, old, PODS, refuses=False)


def test_agents_come_and_go(world, old):
    """Killed, and upgraded, while requests come: each is seen once."""
    attach(world, old)
    world.weir.kill()
    assert old.ask("admin", PODS, 300, "-streams", 10)["200"] == 300
    world.weir.start()
    eventually(lambda: world.weir.server("kube")["inside"]["lane"] == "see", "the next agent sees")
    assert old.ask("admin", PODS, 300, "-streams", 10)["200"] == 300
    assert users_of(world)["admin"] == 600


@pytest.mark.usefixtures("usual_agent")
def test_agents_change_meanwhile(world, old):
    """Killed, and followed by an agent whose programs are others, and back, while fifty requests at a time come."""
    old.allow("kim")
    attach(world, old)
    with asking(old, "kim", PODS) as answers:
        for binary in OTHER_PROGRAMS, BINARY:
            world.weir.kill()
            world.weir.binary = binary
            world.weir.start()
            eventually(lambda: lane(world, "kube") == "see", "the next agent has taken over")
    assert answers == {"200": users_of(world)["kim"]}


def test_restarted_and_replaced(world, cluster, old, tmp_path):
    """The binary is replaced under its path, as an upgrade does."""
    attach(world, cluster)
    assert cluster.ask("admin", PODS, 10)["200"] == 10
    path = tmp_path / "kube-apiserver"
    for _ in range(2):
        cluster.stop()
        shutil.copy(got("kube-apiserver"), tmp_path / "new")
        (tmp_path / "new").rename(path)
        cluster.start_1_20(binary=path)
        eventually(lambda: [process["pid"] for process in world.weir.server("kube")["inside"]["processes"]] ==
                   [cluster.pid()] and world.weir.server("kube")["inside"]["lane"] == "see", "the next one is looked into")
        before = users_of(world)["admin"]
        assert cluster.ask("admin", PODS, 10)["200"] == 10
        assert users_of(world)["admin"] - before == 10
