# SPDX-License-Identifier: GPL-2.0
"""Whose requests are: what is believed, in which order, and who is exempt."""
import pytest

pytestmark = pytest.mark.together

GROUP = "X-Remote-Group"


def ask(client, *headers):
    """One request with these lines of header; its status."""
    head = client.head("/r").removesuffix(b"\r\n")
    client.send(head + b"".join(line.encode() + b"\r\n" for line in headers) + b"\r\n")
    answer = client.read()
    client.check(answer, "/r")
    return answer.status


def counted(site, **identified):
    """`status` and `metrics` agree on what said whose the requests were."""
    status = site.status()
    assert status["identified"] == identified
    metrics = site.weir.metrics()
    for by, n in identified.items():
        assert metrics["weir_identified_total"][by, "web"] == n
    for note, n in status["notes"].items():
        assert metrics["weir_identity_notes_total"][note, "web"] == n
    return status["notes"]


def test_headers_of_other_names(world):
    site = world.site()
    site.attach("--user-header", "X-Who", "--group-header", "X-Team", "--exempt-group", "ops")
    site.limit("user", burst=1)
    client = site.client()
    assert [ask(client, "x-WHO: alice") for _ in range(2)] == [200, 429]
    assert ask(client, "X-Who: bob") == 200
    assert ask(client, "X-Who: bob", "X-Remote-User: carol", f"{GROUP}: ops") == 429
    assert ask(client, "X-Who: bob", "X-Team: dev", "X-Team: ops") == 200
    assert counted(site, request_header=5) == {}
    identity = site.status()["identity"]
    assert identity["user_header"] == "x-who" and identity["group_header"] == "x-team"
    site.check(passed=2, shed=2, exempt=1)


@pytest.mark.alone
@pytest.mark.parametrize("option,value,why", [
    ("--user-header", "X-A-Name-That-Is-Rather-Long", "28 bytes long"),
    ("--user-header", "", "0 bytes long"),
    ("--group-header", "X Y", "not a header's name"),
    ("--group-header", "Content-Length", "another meaning"),
    ("--exempt-user", "10.0.0.0/8", "single addresses"),
    ("--exempt-group", "a\nb", "control characters"),
])
def test_bad_names_are_refused(world, option, value, why):
    world.agent()
    assert why in world.weir.refused("attach", "web", "--port", 1, option, value, status=2)
    assert world.weir.servers() == []


def test_one_header_cannot_be_both(world):
    world.agent()
    assert "both" in world.weir.refused("attach", "web", "--port", 1, "--user-header", "X-Who", "--group-header", "x-who")


def test_untrusted_headers_are_ignored_and_counted(world):
    site = world.site()
    site.attach("--trusted-proxy", "192.0.2.1")
    site.limit("user", burst=0)
    site.limit("user", "127.0.0.1", burst=3)
    client = site.client()
    assert ask(client, "X-Remote-User: root", f"{GROUP}: system:masters") == 200
    assert ask(client, f"{GROUP}: system:masters") == 200
    assert ask(client) == 200
    assert ask(client, "X-Remote-User: root", f"{GROUP}: system:masters") == 429
    assert counted(site, anonymous=4) == {"untrusted_identity": 3}
    site.check(passed=3, shed=1)


def test_masters_are_exempt(site):
    site.limit("user", burst=0)
    client = site.client("admin")
    assert ask(client) == 429
    assert ask(client, f"{GROUP}: dev", f"{GROUP}: system:masters", f"{GROUP}: more") == 200
    assert ask(client, f"{GROUP}: System:Masters") == 429
    site.check(passed=0, shed=2, exempt=1)


def test_nobody_is_exempt_if_so_asked(world):
    site = world.site()
    site.attach("--exempt-group", "")
    site.limit("user", burst=0)
    assert ask(site.client("admin"), f"{GROUP}: system:masters") == 429
    assert site.status()["identity"]["exempt_groups"] == []


def test_exempt_users(world):
    site = world.site()
    site.attach("--exempt-user", "root", "--exempt-user", "127.0.0.2")
    site.limit("total", burst=0)
    assert site.client("root").get("/") == 200
    assert site.client("127.0.0.2").get("/") == 429
    assert site.client("other").get("/") == 429
    assert site.client().get("/") == 429
    site.check(passed=0, shed=3, exempt=1)


def test_exempt_address(world):
    site = world.site()
    site.attach("--exempt-user", "127.0.0.1")
    site.limit("total", burst=0)
    assert site.client().get("/") == 200
    assert site.client("alice").get("/") == 429
    assert counted(site, anonymous=1, request_header=1) == {}


@pytest.mark.parametrize("group,exempt", [
    ("system:authenticated", ["alice", "system:serviceaccount:dev:builder", "system:serviceaccount:prod:builder"]),
    ("system:unauthenticated", [None]),
    ("system:serviceaccounts", ["system:serviceaccount:dev:builder", "system:serviceaccount:prod:builder"]),
    ("system:serviceaccounts:dev", ["system:serviceaccount:dev:builder"]),
])
def test_implicit_groups(world, group, exempt):
    site = world.site()
    site.attach("--exempt-group", group)
    site.limit("total", burst=0)
    users = ["alice", None, "system:serviceaccount:dev:builder", "system:serviceaccount:prod:builder"]
    for user in users:
        assert site.client(user).get("/") == (200 if user in exempt else 429), user
    site.check(passed=0, shed=len(users) - len(exempt), exempt=len(exempt))


def test_a_head_in_pieces_keeps_its_groups(site):
    site.limit("total", burst=0)
    client = site.client("admin")
    head = client.head("/r").removesuffix(b"\r\n") + b"X-Remote-Group: system:masters\r\nX-Remote-Group: b\r\n\r\n"
    for at in range(0, len(head), 7):
        client.send(head[at:at + 7])
        client.settle()
    client.check(client.read(), "/r")
    site.check(passed=0, shed=0, exempt=1)


def test_who_impersonates_is_charged(site):
    site.limit("user", burst=1)
    client = site.client("alice")
    assert ask(client, "Impersonate-User: bob") == 200
    assert ask(client, "impersonate-user: carol") == 429
    assert counted(site, request_header=2) == {"impersonated": 2}


def test_settings_outlive_the_agent(world):
    site = world.site()
    site.attach("--user-header", "X-Who", "--exempt-group", "ops", "--exempt-user", "root")
    site.limit("user", burst=0)
    before = site.status()["identity"]
    world.weir.kill()
    client = site.client()
    assert ask(client, "X-Who: a", f"{GROUP}: ops") == 200
    world.weir.start()
    assert site.status()["identity"] == before
    assert ask(client, "X-Who: a", f"{GROUP}: ops") == 200
    assert ask(client, "X-Who: root") == 200
    assert ask(client, "X-Who: a") == 429


def test_a_header_names_the_namespace(world):
    site = world.site()
    site.attach("--namespace-from", "header=X-Tenant")
    site.limit("namespace", burst=1)
    explained = site.weir.json("explain", "GET", "/", "--header", "x-tenant:  shop")
    assert explained["request"]["namespace"] == "shop"    # whom no request has named yet
    assert [limit["subject"] for limit in explained["limits"]] == ["shop"]
    client = site.client()
    assert [ask(client, "x-tenant:  shop ") for _ in range(2)] == [200, 429]
    assert ask(client, "X-Tenant: other") == 200
    assert client.drive(3, "/api/v1/namespaces/shop/pods") == [200] * 3
    assert ask(client, "X-Tenant:") == 200
    assert [row["subject"] for row in site.status()["top"]] == ["shop"]
    client.send(client.head("/r").removesuffix(b"\r\n") + b"X-Tenant: a\r\nX-Tenant: b\r\n\r\n")
    assert client.read().status == 400
    client.expect_end()
    assert site.unread() == {"repeated_namespace": 1}
    assert "x-tenant" in site.status()["namespace_from"]


def test_the_namespace_has_a_header_of_its_own(world):
    world.agent()
    said = world.weir.refused("attach", "web", "--port", 1, "--namespace-from", "header=X-Remote-User")
    assert "x-remote-user" in said and "cannot name the namespace" in said
