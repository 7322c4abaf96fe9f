# SPDX-License-Identifier: GPL-2.0
"""Policy files: applied, enforced, compared, exported and deleted; Kubernetes' own documents as they are."""
import json
import subprocess
import time

import pytest

pytestmark = pytest.mark.together

EVENTS = "/api/v1/namespaces/{}/events"
PODS = "/api/v1/namespaces/default/pods"

EVENT_RATE_LIMIT = """\
apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits:
  - type: Namespace
    qps: 50
    burst: 100
    cacheSize: 2000
  - type: User
    qps: 10
    burst: 50
"""

ADMISSION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration: {defaults: {enforce: baseline}}
- name: EventRateLimit
  path: events.yaml
"""

THROTTLE = """\
apiVersion: weir/v1
kind: Throttle
metadata:
  name: web
spec:
  limits:
  - name: user
    qps: 0
    burst: %s
    overrides:
    - {subject: bob, qps: 0, burst: 1}
  - name: secrets
    key: namespace,user
    qps: 0
    burst: 1
    rules:
    - verbs: [list]
      resources: [secrets]
"""

FLOW = """\
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: FlowSchema
  metadata:
    creationTimestamp: "2026-01-01T00:00:00Z"
    generation: 1
    managedFields:
    - apiVersion: flowcontrol.apiserver.k8s.io/v1
      fieldsV1: {"f:spec": {"f:matchingPrecedence": {}}}
      manager: api-priority-and-fairness-config-producer-v1
      operation: Apply
    name: greedy
    resourceVersion: "71"
    uid: 4e0f6a5b-0a10-4bd2-9ae9-f0d5a3e0f6c4
  spec:
    distinguisherMethod:
      type: ByUser
    matchingPrecedence: 500
    priorityLevelConfiguration:
      name: none
    rules:
    - resourceRules:
      - apiGroups: ['*']
        clusterScope: true
        namespaces: ['*']
        resources: ['*']
        verbs: [list]
      subjects:
      - kind: User
        user:
          name: greedy
  status:
    conditions:
    - {lastTransitionTime: "2026-01-01T00:00:00Z", reason: Found, status: "False", type: Dangling}
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: PriorityLevelConfiguration
  metadata:
    name: none
  spec:
    limited:
      borrowingLimitPercent: null
      lendablePercent: 0
      limitResponse:
        type: Reject
      nominalConcurrencyShares: 0
    type: Limited
  status: {}
"""


@pytest.fixture
def policy(tmp_path):
    """Writes a file; its path."""
    def write(text, name="policy.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path
    return write


def exported(site, policy):
    """A file with what is in force."""
    return policy(site.weir("export"), "exported.yaml")


def test_event_rate_limit_as_documented(site, policy):
    policy(EVENT_RATE_LIMIT, "events.yaml")
    assert site.weir("apply", "-f", policy(ADMISSION)).splitlines() == [
        'server "web": EventRateLimit created']
    alice = site.client("alice")
    start = time.monotonic()
    got = [alice.exchange(EVENTS.format("shop"), "POST", b"{}").status for _ in range(70)]
    most = 51 + 10 * (time.monotonic() - start)
    assert got[:50] == [200] * 50
    assert got.count(200) <= most
    assert got.count(429) == 70 - got.count(200)
    assert [alice.get(EVENTS.format("shop")) for _ in range(60)] == [200] * 60  # not a write
    assert [alice.exchange(PODS, "POST", b"{}").status for _ in range(60)] == [200] * 60  # no event
    limits = {limit["name"]: limit for limit in site.weir.json("limit", "list")["limits"]}
    assert sorted(limits) == ["event-namespace", "event-user"]
    assert limits["event-namespace"]["keys"] == 2000 and limits["event-user"]["keys"] == 4096
    assert all(limit["file"].endswith("/events.yaml") for limit in limits.values())


def test_a_flow_schema_refuses_the_greedy_alone(site, policy):
    site.weir("apply", "-f", policy(FLOW))
    greedy, other = site.client("greedy"), site.client("alice")
    assert [greedy.get(PODS) for _ in range(3)] == [429] * 3
    assert greedy.get(f"{PODS}/one") == 200
    assert greedy.get("/version") == 200
    assert [other.get(PODS) for _ in range(3)] == [200] * 3
    assert site.limit_of("level/none")["refused"] == 3
    assert site.limit_of("level/catch-all")["admitted"] == 5
    assert site.client("admin").get(PODS, X_Remote_Group="system:masters") == 200
    site.weir("delete", "-f", policy(FLOW))
    assert greedy.get(PODS) == 200
    assert [limit["limit"] for limit in site.status()["limits"]] == []


PROBES = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: probes}
spec:
  matchingPrecedence: 2
  priorityLevelConfiguration: {name: none}
  rules:
  - nonResourceRules: [{nonResourceURLs: [/livez], verbs: [get]}]
    subjects: [{kind: Group, group: {name: system:authenticated}}]
"""


def test_health_checks_have_the_level_of_their_schema(site, policy):
    """As in Kubernetes, where the schema "probes" lets them pass unless it is told otherwise."""
    site.weir("apply", "-f", policy(FLOW))
    site.limit("user", burst=0)
    alice = site.client("alice")
    assert [alice.get(path) for path in ("/healthz", "/livez", "/readyz")] == [200] * 3
    assert site.limit_of("level/catch-all")["admitted"] == 0
    assert alice.get("/livez/ping") == 200
    assert site.limit_of("level/catch-all")["admitted"] == 1
    site.weir("apply", "-f", policy(FLOW + "---\n" + PROBES))
    assert [alice.get(path) for path in ("/livez", "/livez/ping", "/healthz")] == [429, 200, 200]
    assert site.limit_of("level/none")["refused"] == 1
    assert site.limit_of("level/catch-all")["admitted"] == 3
    assert site.limit_of("user")["refused"] == 0
    site.weir("delete", "-f", policy(FLOW + "---\n" + PROBES))
    assert alice.get("/livez/ping") == 200


STAYS = ('server "web": Throttle web deleted; the server stays attached with what commands have set '
         '("weir detach web" ends it)\n')


def test_apply_replaces_and_keeps_what_is_the_same(site, policy):
    site.weir("apply", "-f", policy(THROTTLE % 3))
    alice = site.client("alice")
    assert [alice.get(PODS) for _ in range(4)] == [200] * 3 + [429]
    assert [site.client("bob").get(PODS) for _ in range(2)] == [200, 429]
    again = site.weir("apply", "-f", policy(THROTTLE % 3))
    assert again == 'server "web": Throttle web unchanged\n'
    assert alice.get(PODS) == 429  # its bucket goes on
    changed = (THROTTLE % 3).replace("{subject: bob, qps: 0, burst: 1}", "{subject: carol, qps: 0, burst: 0}")
    assert site.weir("apply", "-f", policy(changed)) == 'server "web": Throttle web configured\n'
    assert alice.get(PODS) == 429
    assert site.client("carol").get(PODS) == 429
    assert site.weir("delete", "-f", policy(changed)) == STAYS
    assert site.weir.json("limit", "list")["limits"] == []
    assert alice.get(PODS) == 200


def test_a_file_that_is_wrong_changes_nothing(site, policy):
    site.weir("apply", "-f", policy(THROTTLE % 3))
    before = site.weir("export")
    wrong = policy((THROTTLE % 5).replace("verbs: [list]", "verbs: [lisst]").replace("burst: 1\n", "burts: 1\n"))
    done = site.weir.run("apply", "-f", wrong)
    assert (done.returncode, done.stdout) == (1, "")
    first, second, *more = done.stderr.splitlines()
    assert first.startswith(f"{wrong}:15:5: $.spec.limits[1].burts: there is no field \"burts\": is \"burst\" meant?")
    assert second.startswith(f"{wrong}:17:15: $.spec.limits[1].rules[0].verbs[0]: \"lisst\" is not a verb")
    assert not more
    other = policy((THROTTLE % 5).replace("name: web", "name: nobody"), "other.yaml")
    assert "attach it, or say in its Throttle where it listens" in site.weir.refused("apply", "-f", other)
    both = policy(THROTTLE % 7 + "---\n" + (THROTTLE % 5).replace("name: web", "name: nobody"), "both.yaml")
    site.weir.refused("apply", "-f", both)
    assert site.weir("export") == before


def large(n=2000, **spec):
    """A Throttle as JSON, too large to be read twice for nothing: the agent reads it."""
    overrides = [{"subject": f"user-{i}", "qps": 5, "burst": 10} for i in range(n)]
    limits = [{"name": "user", "qps": 1, "burst": 3, "overrides": overrides}]
    return {"apiVersion": "weir/v1", "kind": "Throttle", "metadata": {"name": "web"}, "spec": {"limits": limits, **spec}}


@pytest.mark.parametrize("indent", [None, 1])
def test_a_large_file_of_json(site, policy, indent):
    path = policy(json.dumps(large(), indent=indent), "large.json")
    assert site.weir("apply", "-f", path) == 'server "web": Throttle web configured\n'
    assert len(site.weir.json("limit", "list")["limits"][0]["overrides"]) == 2000
    assert site.weir.json("limit", "list")["limits"][0]["file"] == str(path)
    assert site.weir("apply", "-f", path) == 'server "web": Throttle web unchanged\n'
    assert site.weir("diff", "-f", path) == ""


def test_a_large_file_that_is_not_as_it_should_be(site, policy):
    """It is read where its user is told what is wrong, and where."""
    warned = policy(json.dumps(large(inside="off", insideShare=5), indent=1), "warned.json")
    done = site.weir.run("apply", "-f", warned)
    assert (done.returncode, done.stdout) == (0, 'server "web": Throttle web configured\n')
    assert done.stderr.startswith(f"{warned}:10018:18: warning: $.spec.insideShare: ")
    before = site.weir("export")
    text = json.dumps(large(), indent=1)
    wrong = policy(text.replace('"burst": 3', '"brust": 3'), "wrong.json")
    done = site.weir.run("apply", "-f", wrong)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{wrong}:12:5: $.spec.limits[0].brust: there is no field")
    more = policy(f'{json.dumps(large())}, "command": "detach", "arguments": {{"all": true}}', "more.json")
    assert "not YAML" in site.weir.refused("apply", "-f", more)
    half = policy(text.replace("user-7\"", "user-\\ud83d\""), "half.json")
    assert site.weir.refused("apply", "-f", half) == site.weir.refused("check", "-f", half)
    assert site.weir("export") == before


def test_a_large_file_of_json_with_a_character_in_halves(site, policy):
    """JSON has two escapes for it, and YAML one."""
    path = policy(json.dumps(large()).replace("user-7\"", "user-\\ud83d\\ude00\""), "halves.json")
    assert site.weir("apply", "-f", path) == 'server "web": Throttle web configured\n'
    subjects = [override["subject"] for override in site.weir.json("limit", "list")["limits"][0]["overrides"]]
    assert subjects.count("user-\U0001f600") == 1 and "user-7" not in subjects
    assert site.weir("apply", "-f", path) == 'server "web": Throttle web unchanged\n'


def test_diff(site, policy):
    assert site.weir.run("diff", "-f", policy(THROTTLE % 3)).returncode == 1
    site.weir("apply", "-f", policy(THROTTLE % 3))
    assert site.weir("diff", "-f", policy(THROTTLE % 3)) == ""
    done = site.weir.run("diff", "-f", policy(THROTTLE % 4))
    assert (done.returncode, done.stderr) == (1, "")
    changed = [line for line in done.stdout.splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert [line.split() for line in changed] == [["-", "burst:", "3"], ["+", "burst:", "4"]]
    assert site.weir.run("diff", "-f", policy("kind: 3", "bad.yaml")).returncode == 2


def test_diff_that_cannot_be_shown(site, policy, tmp_path):
    """It is said why: without a word, nobody would know whether there is a difference."""
    def said(**environment):
        done = subprocess.run(site.weir.command("diff", "-f", policy(THROTTLE % 3)), capture_output=True, text=True,
                              env={**site.weir.environment(), **environment})
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr

    gone = tmp_path / "gone"
    assert said(TMPDIR=str(gone)) == f"weir: making a directory in {gone} (TMPDIR): No such file or directory\n"
    left = tmp_path / "left"
    left.mkdir()
    assert said(TMPDIR=str(left), PATH=str(gone)) == (
        "weir: running diff: No such file or directory. Install it, or use --json\n")
    assert not list(left.iterdir())


ELSEWHERE = """\
apiVersion: weir/v1
kind: Throttle
metadata: {{name: {0}}}
spec: {{netns: {1}, listen: ["{2}"]}}
"""


def test_diff_refuses_what_apply_refuses(site, policy):
    """Ports that are another server's, of those that there are or of the same files, and a namespace that is not there."""
    here, port = site.place.server_ns.path, site.weir.server()["listen"][0]
    for name, text in {
        "taken": ELSEWHERE.format("two", here, port),
        "twice": ELSEWHERE.format("two", here, "*:81") + "---\n" + ELSEWHERE.format("three", here, "*:81"),
        "device": ELSEWHERE.format("two", here, "*:81").replace("netns:", "interfaces: [nodev0], netns:"),
        "changed": ELSEWHERE.format("web", here, port).replace("netns:", "interfaces: [nodev0], netns:"),
        "nowhere": ELSEWHERE.format("two", "/run/netns/not-there", "*:81"),
    }.items():
        path = policy(text, f"{name}.yaml")
        apply = site.weir.refused("apply", "-f", path)
        diff = site.weir.refused("diff", "-f", path, status=2)
        assert diff == apply or (name == "nowhere" and "there is no network namespace /run/netns/not-there" in diff)
    assert [server["name"] for server in site.weir.servers()] == ["web"]
    good = policy(ELSEWHERE.format("two", here, "*:81"))
    assert site.weir.run("diff", "-f", good).returncode == 1


def test_export_is_what_apply_accepts(site, policy):
    site.weir("limit", "set", "total", "--qps", "0.5", "--burst", "7")
    site.weir("limit", "set", "lists", "--key", "user", "--verb", "list", "--in-flight", "9", "--dry-run")
    site.weir("apply", "-f", policy(FLOW), "-f", policy(EVENT_RATE_LIMIT, "events.yaml"))
    before = site.weir("export")
    limits = site.weir.json("limit", "list")["limits"]
    assert site.weir("diff", "-f", exported(site, policy)) == ""
    assert "unchanged" in site.weir("apply", "-f", exported(site, policy), "--prune")
    assert site.weir("export") == before
    without_file = lambda all: sorted(json.dumps({**limit, "file": ""}) for limit in all)
    assert without_file(site.weir.json("limit", "list")["limits"]) == without_file(limits)


def test_one_name_from_two_files(site, policy):
    site.weir("limit", "set", "user", "--qps", "1", "--burst", "2")
    said = site.weir.refused("apply", "-f", policy(THROTTLE % 3))
    assert '"user"' in said and "command line" in said and "policy.yaml" in said
    site.weir("limit", "delete", "user")
    site.weir("apply", "-f", policy(THROTTLE % 3))
    assert "policy.yaml" in site.weir.refused("limit", "set", "user", "--qps", "1", "--burst", "2")
    assert "policy.yaml" in site.weir.refused("limit", "delete", "secrets")


def test_who_ends_a_servers_dry_run_is_told_of_limits(site, policy):
    """Each says what ends its own: a command, or the file that has set it."""
    file = policy((THROTTLE % 3).replace("burst: 3\n", "burst: 3\n    mode: dry-run\n"))
    site.weir("apply", "-f", file)
    site.weir("limit", "set", "total", "--qps", "1", "--burst", "2", "--dry-run")
    _, *lines = sorted(site.weir("dry-run", "web", "off").splitlines(), key=lambda line: line.startswith("limit"))
    still = "is still in a dry run of its own"
    assert sorted(lines) == [f"limit total {still}: weir limit set total --enforce --server web",
                             f"limit user {still}: remove its mode in {file}"]


def test_prune(site, policy):
    site.weir("apply", "-f", policy(THROTTLE % 3), "-f", policy(FLOW, "flow.yaml"))
    said = site.weir("apply", "-f", policy(THROTTLE % 3), "--prune")
    assert 'FlowSchema greedy deleted' in said and "PriorityLevelConfiguration none deleted" in said
    assert site.client("greedy").get(PODS) == 200
    assert site.weir("apply", "-f", policy(FLOW, "flow.yaml"), "--prune").startswith(STAYS)


def test_a_throttle_attaches_its_server(world, policy, tmp_path):
    site = world.site()
    listen = f"*:{site.server.port}"
    text = THROTTLE % 2 + f"  listen: ['{listen}']\n  netns: {site.place.server_ns.path}\n  trustedProxies: ['0.0.0.0/0']\n"
    site.weir("apply", "-f", policy(text))
    alice = site.client("alice")
    assert [alice.get(PODS) for _ in range(3)] == [200, 200, 429]
    assert site.weir("apply", "-f", policy(text)) == 'server "web": Throttle web unchanged\n'
    assert "its keys cannot be changed" in site.weir.refused("apply", "-f", policy(text + "  keys: 7\n"))
    deleted = 'server "web": Throttle web deleted; the server is '
    assert site.weir("delete", "-f", policy(text)) == (
        f'{deleted}draining: 1 translated connection has to end first ("weir detach web --force" resets it)\n')
    assert alice.get(PODS) == 200
    site.weir("detach", "web", "--force")
    site.weir("apply", "-f", policy(text), "-f", policy(FLOW, "flow.yaml"))
    said = site.weir("delete", "-f", policy(text)).splitlines()
    assert [line for line in said if "; " in line] == [f"{deleted}detached"] and len(said) == 3
    assert site.weir.refused("delete", "-f", policy(text)).endswith("Throttle web is not applied")
    assert site.weir("delete", "-f", policy(text), "--ignore-not-found") == ""


def test_a_throttle_of_a_port_on_which_nobody_listens(world, policy):
    """As `attach` does, `apply` warns of what is most likely a wrong number: of a server that is new."""
    site = world.site()
    text = THROTTLE % 2 + f"  listen: ['*:{site.server.port}', '*:9']\n  netns: {site.place.server_ns.path}\n"
    done = world.weir.run("apply", "-f", policy(text))
    assert (done.returncode, done.stdout) == (0, 'server "web": Throttle web created\n')
    assert done.stderr == ("weir: warning: server \"web\": nobody listens on port 9 in the server's network namespace yet: "
                           "requests are limited once a server does\n")
    world.attached()
    assert site.weir("apply", "-f", policy(text)) == 'server "web": Throttle web unchanged\n'


def test_export_of_several_servers(world, policy):
    place = world.loopback()
    one, two = world.site(place), world.site(place)
    for site, name in (one, "web"), (two, "api"):
        world.weir("attach", name, "--port", site.server.port, "--netns", place.server_ns.name)
    world.attached()
    assert world.weir("export").count("kind: Throttle") == 2
    world.weir("apply", "-f", policy(FLOW), "--server", "web")
    assert "export one at a time" in world.weir.refused("export")
    for name in "web", "api":  # a file with one Throttle says by that whose its other documents are
        text = world.weir("export", "--server", name)
        assert "Throttle" in text and ("FlowSchema" in text) == (name == "web")
        assert world.weir("diff", "-f", policy(text, "exported.yaml")) == ""


def test_what_is_not_there_is_not_deleted(site, policy):
    before = len(site.weir.log())
    site.weir("apply", "-f", policy(FLOW))
    absent = policy(THROTTLE % 2, "absent.yaml")
    assert site.weir.refused("delete", "-f", absent).endswith("Throttle web is not applied to server web")
    deleted = site.weir("delete", "-f", absent, "-f", policy(FLOW), "--ignore-not-found")
    assert "FlowSchema" in deleted and "Throttle" not in deleted
    assert site.weir("delete", "-f", absent, "-f", policy(FLOW), "--ignore-not-found") == ""
    logged = [line for line in site.weir.log()[before:].splitlines() if "FlowSchema greedy" in line]
    assert [line.rsplit(maxsplit=1)[1] for line in logged] == ["created", "deleted"]


def test_survives_a_restart_of_the_agent(site, policy):
    site.weir("apply", "-f", policy(THROTTLE % 3), "-f", policy(FLOW, "flow.yaml"))
    before = site.weir("export")
    assert [site.client("alice").get(PODS) for _ in range(4)] == [200] * 3 + [429]
    site.weir.kill()
    site.weir.start()
    assert site.weir("export") == before
    assert site.client("alice").get(PODS) == 429
    site.weir("delete", "-f", policy(THROTTLE % 3), "-f", policy(FLOW, "flow.yaml"))
    assert site.client("alice").get(PODS) == 200


ALL_IN_ONE = """\
apiVersion: weir/v1
kind: Throttle
metadata: {name: web}
spec:
  concurrency: 10
  maxInFlight: {readOnly: 1000, mutating: 0}
  priorityLevels:
  - {name: closed, shares: 0}
  - {name: open, shares: 10}
  flowSchemas:
  - {name: batch, level: closed, precedence: 10, rules: [{paths: ['/batch/*'], nonResource: true}]}
  - {name: rest, level: open, precedence: 20, rules: [{users: ['*']}]}
"""


def test_levels_for_any_api(site, policy):
    site.weir("apply", "-f", policy(ALL_IN_ONE))
    alice = site.client("alice")
    assert [alice.get(path) for path in ("/batch/one", "/other", "/batch/two")] == [429, 200, 429]
    assert site.limit_of("level/closed")["refused"] == 2 and site.limit_of("level/open")["admitted"] == 1
    assert site.limit_of("read-only-in-flight")["admitted"] == 1  # what its level refused it was not asked for
    before = site.weir("export")
    assert "unchanged" in site.weir("apply", "-f", exported(site, policy))
    assert site.weir("export") == before and "flowSchemas" in before


def test_a_throttle_pauses(site, policy):
    site.limit("user", burst=0)
    text = "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: web}\nspec: {paused: %s}\n"
    alice = site.client("alice")
    assert alice.get(PODS) == 429
    site.weir("apply", "-f", policy(text % "true"))
    assert alice.get(PODS) == 200
    assert "is paused by" in site.weir.refused("resume", "web")
    assert "paused: true" in site.weir("export")
    site.weir("apply", "-f", policy(text % "false"))
    assert alice.get(PODS) == 429
