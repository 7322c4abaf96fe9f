# SPDX-License-Identifier: GPL-2.0
"""Refusals inside a server, and the server's own audit log: each has the ID of its entry. The agent has refused nothing before."""
import json

from lib.inside import attach


def audit_line(request, n, **more):
    """As the server's audit log has a request that weir has traced."""
    fields = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": f"id-{n}", "stage": "ResponseComplete",
              "requestReceivedTimestamp": request["time"], "stageTimestamp": request["time"],
              "user": {"username": request["user"]}, "verb": request["verb"], "requestURI": request["target"],
              "sourceIPs": [request["client"]], "responseStatus": {"code": 429},
              "objectRef": {"resource": request["resource"], "namespace": request["namespace"]}}
    return json.dumps({**fields, **more}) + "\n"


def test_the_servers_audit_log(world, serve, tmp_path):
    """Refusals of a recording, each with the ID of its own entry."""
    server = serve("apiserver")
    attach(world, server)
    world.weir("limit", "set", "user", "--qps", 0, "--burst", 1)
    trace = world.trace()
    server.get("/list/dev/pods", "alice", 3)
    requests = trace.end()
    assert [request["decision"] for request in requests] == ["passed", "dry_run_shed", "dry_run_shed"]
    recording, log = tmp_path / "web.jsonl", tmp_path / "audit.log"
    recording.write_text("".join(json.dumps(request) + "\n" for request in requests))
    log.write_text("".join(audit_line(request, n) for n, request in enumerate(requests)) + "{broken\n")
    words = "events", "--recording", recording, "--audit-log", log

    def said(*more):
        return world.weir.run(*words, *more).stdout.splitlines()

    done = world.weir.run(*words, "--json", "--audit-window", "1ms")
    assert [json.loads(line)["audit_id"] for line in done.stdout.splitlines()] == ["id-1", "id-2"]
    assert "weir: 2 of 2 refusals inside a server have an ID in" in done.stderr and "1 line passed over" in done.stderr
    heads, *rows = said()
    assert heads.split()[3:8] == ["USER", "LIMIT", "STATUS", "AUDIT-ID", "FITS"]
    assert rows[0].split()[3:7] == ["alice", "user", "dry_run_shed", "id-1"] and len(rows) == 2
    assert len(said("--count", 1)) == 2
    assert said("other") == [heads]
    assert "AUDIT-ID" not in world.weir("events", "--recording", recording)
    log.write_text(audit_line(requests[0], 0) + audit_line(requests[1], 1, verb="get"))
    assert [json.loads(line)["audit_id"] for line in said("--json")] == [None, None]
    assert world.weir("events", "--audit-log", log, "--json") == ""  # a dry run refuses nothing


def test_audit_logs_that_are_none(world, serve, tmp_path):
    serve("apiserver")
    refused, log = world.weir.refused, tmp_path / "audit.log"
    assert "No such file" in refused("events", "--audit-log", log)
    log.write_text("2026-11-20T13:14:15Z AUDIT: id=1\n")
    assert "is not an audit log of JSON lines: line 1: not JSON" in refused("events", "--audit-log", log)
    assert f"{log}:1: not a line of weir trace --json" in refused("events", "--recording", log)
    for window in "0", "999us", "60001ms", "24h":
        assert "must be from 1ms to 1m" in refused("events", "--audit-log", log, "--audit-window", window, status=2)
    log.write_text("")
    for window in "1ms", "1m":
        done = world.weir.run("events", "--audit-log", log, "--audit-window", window)
        assert (done.returncode, done.stderr.count("\n")) == (0, 1) and "nothing has been refused" in done.stderr
    assert "exclude each other" in refused("events", "--follow", "--audit-log", log, status=2)
    assert "only one of" in refused("events", "--recording", "-", "--audit-log", "-", status=2)
