# SPDX-License-Identifier: GPL-2.0
"""What weir says of servers that it looks into: explained, warned of, told to who sets what is nothing inside."""
import json
import subprocess

import pytest

from lib.inside import attach


pytestmark = pytest.mark.together


def explained(world, *words):
    said = world.weir.json("explain", *words)
    return said["lane"], said["decision"], said["request"]["user"], said["request"]["identified_by"], said["request"]["verb"]


def test_explain(world, serve):
    """A request is taken as one that is decided inside its server: by the server's users, and not by paths."""
    server = serve("apiserver")
    attach(world, server)
    world.weir("limit", "set", "user", "--qps", "0.001", "--burst", "1")
    world.weir.run("limit", "set", "some", "--key", "total", "--qps", "0", "--burst", "0", "--path", "/api/*")
    pod = "/api/v1/namespaces/dev/pods/x"
    assert explained(world, "GET", pod, "--user", "alice") == ("see", "passed", "alice", "server", "get")
    assert server.get("/get/dev/pods", "alice") == ["200 HTTP/2.0 /get/dev/pods"]
    assert explained(world, "GET", pod, "--user", "alice") == ("see", "dry_run_shed", "alice", "server", "get")
    assert explained(world, "GET", pod, "--user", "bob")[1] == "passed"
    assert explained(world, "GET", pod, "--user", "system:anonymous")[2:4] == ("127.0.0.1", "anonymous")
    assert explained(world, "GET", "/livez", "--user", "alice")[1] == "exempt"
    assert "LANE       see: decided inside the server" in world.weir("explain", "GET", pod)
    limit, = [limit for limit in world.weir.json("explain", "GET", pod, "--user", "alice")["limits"] if limit["limit"] == "user"]
    assert limit["says"] == "would_refuse"
    assert " wire, see  limiting (wire) " in world.weir("status")


def test_explain_of_any_go_server(world, serve):
    """Of its requests the peer is known, and nothing else."""
    attach(world, serve("plain"))
    world.weir.run("limit", "set", "secrets", "--key", "total", "--qps", "0", "--burst", "0", "--resource", "secrets")
    assert explained(world, "GET", "/api/v1/secrets", "--user", "alice", "--group", "dev") == \
        ("see", "passed", "127.0.0.1", "anonymous", "get")


def test_unknown_users_are_warned_of(world, serve):
    server = serve("apiserver")
    attach(world, server)
    assert server.get("/get/dev/pods", "other") == ["200 HTTP/2.0 /get/dev/pods"]
    assert "user inside the server that is of an unknown type" in world.weir.server()["warning"]


def test_what_is_otherwise_inside_is_said(world, serve, tmp_path):
    server = serve("plain")
    attach(world, server)

    def set_limit(*words):
        return world.weir.run("limit", "set", *words).stderr

    assert "inside the server it is for no request: paths are not read there" in \
        set_limit("some", "--key", "total", "--qps", "1", "--burst", "1", "--path", "/a/*")
    assert "inside the server it is for no request: Events are not read there" in \
        set_limit("source-and-object", "--qps", "1", "--burst", "1")
    assert "inside the server" not in set_limit("total", "--deny")
    assert "inside the server" not in set_limit("busy", "--key", "total", "--in-flight", "1")
    policy = tmp_path / "web.yaml"
    policy.write_text("apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: x}\nspec:\n  listen: ['*:8443']\n  inside: see\n"
                      "  writeMemory: true\n  limits:\n  - {name: source-and-object, qps: 1, burst: 1}\n"
                      "  - {name: total, deny: true}\n")
    said = world.weir.run("check", "-f", policy).stderr
    assert "inside the server it is for no request: Events" in said
    assert 'limit "total": where the server refuses by memory, it answers 429, not 403' in said
    assert said.count("not 403") == 1


def test_what_no_go_server_says(world, serve, tmp_path):
    """Of its requests only the peer is known, but for a Kubernetes API server: whoever sets a limit for anything else is told."""
    server = serve("plain")
    attach(world, server)
    idle = "inside the server it is for no request: what is no Kubernetes API server says no users, verbs, namespaces or resources"

    def set_limit(name, *words):
        return idle in world.weir.run("limit", "set", name, "--qps", "1", "--burst", "1", *words).stderr

    for name, words in {"user": (), "total": (), "a": ("--key", "user", "--for-user", "10.0.0.1"), "b": ("--key", "source"),
                        "c": ("--key", "total", "--for-group", "system:unauthenticated"),
                        "d": ("--key", "total", "--long-running", "no")}.items():
        assert not set_limit(name, *words), name
    assert idle not in (world.weir.server()["warning"] or "")
    for name, words in {"namespace": (), "e": ("--key", "total", "--resource", "secrets"), "f": ("--key", "total", "--verb", "list"),
                        "g": ("--key", "user", "--for-user", "alice"), "h": ("--key", "total", "--for-namespace", "dev"),
                        "i": ("--key", "total", "--for-group", "dev"), "j": ("--key", "total", "--long-running", "yes")}.items():
        assert set_limit(name, *words), name
        assert world.weir.server()["warning"] == f'limit "{name}": {idle}'
        world.weir("limit", "delete", name)
    policy = tmp_path / "web.yaml"
    policy.write_text(world.weir("export").replace("longRunning: false", "resources: [secrets]"))
    world.keep()
    world.weir("detach", "web")
    assert f'server "web": limit "d": {idle}' in world.weir.run("apply", "-f", policy).stderr
    world.weir("detach", "web")
    server.close()
    attach(world, serve("apiserver"))
    assert not set_limit("k", "--key", "total", "--resource", "secrets")


def test_what_is_for_packets_is_said(world, tmp_path):
    """Of what a Throttle says of its requests, the server itself says some."""
    policy = tmp_path / "web.yaml"
    text = "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: x}\nspec:\n  listen: ['*:8443']\n  inside: %s\n  refusals: plain\n" \
        "  namespaceFrom: segment=1\n  identity: {addresses: ['192.0.2.0/24,alice'], exemptUsers: [bob]}\n" \
        "  exempt: [{paths: [/a]}, {paths: ['*']}, {users: [bob]}]\n" \
        "  priorityLevels: [{name: a, shares: 1}]\n" \
        "  flowSchemas: [{name: a, level: a, rules: [{users: [x], paths: [/b]}]}]\n" \
        "---\napiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits:\n" \
        "- {type: Server, qps: 9, burst: 9}\n- {type: SourceAndObject, qps: 9, burst: 9}\n"

    def warnings(mode):
        policy.write_text(text % mode)
        said = world.weir.run("check", "-f", policy, "--json").stdout
        return {(problem["line"], problem["message"]) for problem in json.loads(said)["problems"]}
    assert warnings("see") - warnings("off") == {
        (7, "inside the server it does nothing: the server writes its answers"),
        (8, "inside the server it does nothing: the server itself says what is asked for"),
        (9, "inside the server it does nothing: the server itself says who its users are"),
        (10, "inside the server no request matches: paths are not read there"),
        (12, "inside the server no request matches: paths are not read there"),
        (18, "inside the server it is for no request: Events are not read there")}


def test_tls_hides_nothing_inside(world, serve):
    """Also before the first request: a limit for a user is not said to be without effect."""
    server = serve("apiserver")
    attach(world, server)
    subprocess.run(server.place.client_ns.command("openssl", "s_client", "-connect", server.address), input=b"", check=True,
                   capture_output=True)
    status = world.weir.server()
    assert (status["unread"]["tls"], status["passed"]) == (1, 0)
    assert world.weir.run("limit", "set", "user", "alice", "--qps", "1", "--burst", "1").stderr == ""


def test_who_enforces_in_see_is_told(world, serve):
    """A limit may be enforced, and refuse nobody inside the server."""
    server = serve("plain")
    words = "attach", "web", "--port", server.port, "--netns", server.place.server_ns.path
    assert world.weir(*words, "--inside", "see") == \
        'server "web" is attached; what is over a limit is counted, and passes: requests are only seen inside the server (inside: see)\n'
    limit = "limit", "set", "user", "--server", "web", "--qps", "1", "--burst", "1"
    assert "passes" not in world.weir(*limit, "--dry-run")
    assert world.weir("limit", "set", "user", "--server", "web", "--enforce") == \
        'server "web": limit user is set; what is over a limit is counted, and passes: ' \
        'requests are only seen inside the server (inside: see)\n'
    assert world.weir("limit", "set", "many", "--server", "web", "--key", "source", "--connections", "--qps", 50, "--burst", 50) == \
        'server "web": limit many is set, and enforced\n'
    assert "requests over their limits pass" in world.weir("status")
    assert world.weir("dry-run", "web", "on") == 'server "web" is in a dry run: nothing is refused\n'
    assert world.weir("dry-run", "web", "off") == \
        'server "web" is in no dry run; what is over a limit is counted, and passes: requests are only seen inside the server (inside: see)\n'
    world.weir("detach", "web")
    world.weir(*words)
    assert world.weir(*limit) == 'server "web": limit user is set, and enforced\n'
