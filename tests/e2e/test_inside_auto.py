# SPDX-License-Identifier: GPL-2.0
"""What weir chooses inside a server by itself, without --inside: nothing that lets pass what TLS was held for, and no probe in what packets
tell all of."""
import subprocess

import pytest

from lib.held import Held
from lib.inside import attach
from lib.process import eventually

pytestmark = pytest.mark.together

PODS = "/get/dev/pods"


def inside(world):
    return world.weir.server()["inside"]


THROTTLE = """
apiVersion: weir/v1
kind: Throttle
metadata: {{name: web}}
spec:
  listen: ["*:{port}"]
  netns: {netns}
  limits: [{{name: total, qps: 5, burst: 2}}]
"""


def lanes(world):
    """The lane and whether TLS is held."""
    server = world.weir.server()
    return server["inside"]["lane"], server["hold"]["tls"]


def becomes(world, *wanted):
    eventually(lambda: lanes(world) == wanted, f"the lane is {wanted}, not {lanes(world)}")


@pytest.fixture(scope="module")
def answers():
    return {}


@pytest.fixture
def refuses(world, serve, answers):
    """Does this kernel let a server be made to refuse? Asked once."""
    if not answers:
        server = serve("plain", port=9443)
        done = world.weir.run("attach", "asked", "--port", server.port, "--netns", server.place.server_ns.path, "--inside", "answer")
        answers["refuses"] = not done.returncode
        if answers["refuses"]:
            world.weir("detach", "asked")
        server.close()
    return answers["refuses"]


def test_a_server_that_go_has_not_made(world):
    """It is limited as ever, and nothing needs to be said of it."""
    site = world.site()
    assert world.weir("attach", "web", "--port", site.server.port, "--netns", site.place.server_ns.path) == \
        'server "web" is attached\n'
    world.attached()
    assert (inside(world)["asked"], inside(world)["lane"]) == ("auto", "off")
    assert "not a program that Go has made" in inside(world)["why"]
    assert "inside" not in world.weir("status")
    assert "web: inside: off: process" in world.weir("status", "web")
    site.limit("total", burst=2)
    assert site.client().drive(3) == [200, 200, 429]


def test_tls_that_go_has_not_made_is_held(world):
    held = Held(world, world.loopback())
    held.attach()
    held.limit("total", qps=4, burst=2)
    held.client().drive(6)
    assert held.records()[1] > 0
    assert lanes(world) == ("off", True)
    assert "inside" not in world.weir("status")


def test_plain_http_is_not_looked_into(world, serve):
    """Its packets say all: it refuses with weir's own 429, and counts each request once."""
    server = serve("plain", mode="serve-plain")
    assert attach(world, server, mode=None) == \
        'server "web" is attached; inside: off: no TLS or HTTP/2 has come, and all else is read in packets\n'
    world.weir("limit", "set", "total", "--qps", 0, "--burst", 5)
    asked = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code} ", f"http://{server.address}/[1-8]")
    assert server.place.client_ns.run(*asked).split() == ["200"] * 5 + ["429"] * 3
    assert (world.weir.server()["passed"], world.weir.server()["shed"]) == (5, 3)
    # Who knocks with TLS changes nothing.
    subprocess.run(server.place.client_ns.command("curl", "-sk", f"https://{server.address}/"), check=False)
    assert world.weir.server()["unread"]
    world.weir("pause", "web")  # a command: what is chosen is looked at
    world.weir("resume", "web")
    assert (lanes(world), world.weir.server()["seen_inside"]) == (("off", True), {})


def test_any_go_server_when_tls_has_come(world, serve, refuses):
    server = serve("plain")
    attach(world, server, mode=None)
    assert lanes(world) == ("off", True)
    server.get("/a")
    becomes(world, "answer" if refuses else "see", True)
    server.get("/b", times=3)
    becomes(world, "answer" if refuses else "see", False)
    assert world.weir.server()["seen_inside"]["seen"] >= 3


def test_what_apply_attaches(world, serve, refuses, tmp_path):
    """It says what attach would, with the file's limits in force; and where nothing is chosen anew, nothing."""
    server = serve("apiserver")
    file = tmp_path / "web.yaml"
    file.write_text(THROTTLE.format(port=server.port, netns=server.place.server_ns.path))
    created, chosen = world.weir("apply", "-f", file).splitlines()
    assert created == 'server "web": Throttle web created'
    assert chosen.startswith('server "web": inside: answer (apiserver, go1.' if refuses else 'server "web": inside: off: ')
    assert refuses or "TLS is held" in chosen
    assert world.weir.json("apply", "-f", file)["inside"] == []


def test_an_api_server_at_once(world, serve, refuses):
    """What is enforced, and was held, is held: `see` ends with the first such limit, and comes back with the last."""
    server = serve("apiserver")
    said = attach(world, server, mode=None)
    if refuses:
        assert said.startswith('server "web" is attached; inside: answer (apiserver, go1.')
        assert lanes(world) == ("answer", False)
        return
    assert said.startswith('server "web" is attached; inside: see (apiserver, go1.') and "registers" in said
    assert lanes(world) == ("see", False)
    assert "until a limit is enforced: then TLS is held by the client's address" in world.weir("status")
    set_, chosen = world.weir("limit", "set", "total", "--qps", 5, "--burst", 2).splitlines()
    assert set_ == 'server "web": limit total is set, and enforced'
    assert chosen.startswith('server "web": inside: off: the kernel lets no program') and "TLS is held by the client's address" in chosen
    assert len(world.weir("limit", "set", "total", "--qps", 5, "--burst", 2).splitlines()) == 1, "it is said once"
    assert lanes(world) == ("off", True)
    assert "registers" in inside(world)["why"] and "--inside see would count users" in inside(world)["why"]
    server.get(PODS, "alice", 5)
    assert world.weir.server()["records_held"] > 0
    assert "inside: off: the kernel lets no program" in world.weir("status")
    world.weir("limit", "set", "total", "--dry-run")
    becomes(world, "see", False)
    world.weir("dry-run", "web", "on")
    assert "inside" not in world.weir("limit", "set", "total", "--enforce")
    assert 'server "web": inside: off: ' in world.weir("dry-run", "web", "off")
    assert lanes(world) == ("off", True)


def test_not_everything_checks_out(world, serve):
    """Of this one each request would be seen at several instructions, which costs it much."""
    attach(world, serve("unfair"), mode=None)
    assert lanes(world) == ("off", True)
    assert "no function k8s.io/apiserver/pkg/util/flowcontrol" in inside(world)["why"]
    assert inside(world)["why"].endswith("--inside see does it")


def test_whoever_listens_next(world, serve, refuses):
    place = world.loopback()
    done = world.weir.run("attach", "web", "--port", 8443, "--netns", place.server_ns.path)
    assert (done.returncode, done.stdout) == (0, 'server "web" is attached\n') and "nobody listens" in done.stderr
    world.attached()
    assert (lanes(world), inside(world)["why"]) == (("off", True), "no process listens there yet")
    server = serve("plain", place)
    eventually(lambda: "no TLS or HTTP/2 has come" in (inside(world)["why"] or ""), "it is noticed")
    server.close()
    serve("apiserver", place)
    becomes(world, "answer" if refuses else "see", False)


def test_what_an_earlier_version_attached(world, serve, tmp_path):
    """`off` stays, and an export says so. A Throttle that says nothing chooses."""
    server = serve("plain")
    attach(world, server, mode="off")
    assert '  inside: "off"' in world.weir("export", "--server", "web").splitlines()
    world.weir.stop()
    (state,) = world.weir.state_dir.glob("state.json")
    assert '"inside"' not in state.read_text()  # as those versions write it
    world.weir.start()
    assert (inside(world)["asked"], inside(world)["why"]) == ("off", None)
    world.weir("detach", "web")
    policy = tmp_path / "web.yaml"
    text = "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: web}\nspec:\n  listen: ['*:8443']\n" \
        f"  netns: {server.place.server_ns.path}\n"
    for line, asked in ("", "auto"), ("  inside: off\n", "off"), ("", "auto"):
        policy.write_text(text + line)
        world.weir("apply", "-f", policy)
        assert inside(world)["asked"] == asked


@pytest.mark.alone
def test_an_agent_that_looks_into_none(world, serve):
    server = serve("apiserver")
    world.weir.start("off", "--inside", "off")
    assert attach(world, server, mode=None) == 'server "web" is attached\n'
    assert (lanes(world), inside(world)["processes"]) == (("off", True), [])
    assert "weir agent --inside off" in inside(world)["why"]
    assert "inside" not in world.weir("status")
    assert not any(world.pins.glob("net-*/inside*"))
