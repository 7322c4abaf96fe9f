# SPDX-License-Identifier: GPL-2.0
"""The agent in the container of packaging/kubernetes, with what its manifest gives it: no more capabilities, a read-only root."""
import json
import re
from pathlib import Path

import pytest

from lib.container import ConfigMap, Node, Pod, needs, objects
from lib.inside import GoServer, program
from lib.process import eventually, run


@pytest.fixture
def node(world):
    needs("crun", "kubectl", "dpkg-query", "strip", "unshare")
    place = world.loopback()
    node = Node(place.server_ns, world.directory, world.bpffs / f"{world.name}-node")
    node.place = place
    world.at_end(node.bpffs.rmdir)
    world.at_end(lambda: list(node.bpffs.iterdir()) and node.weir("uninstall", "--force"))
    return node


@pytest.fixture
def pods(world, node):
    """Starts a pod of a track with a policy in its ConfigMap, one after the other."""
    made = objects("stable")
    policy = ConfigMap(world.directory / "policy", made["ConfigMap"]["data"])

    def start():
        pod = Pod(node, made["DaemonSet"], {made["ConfigMap"]["metadata"]["name"]: policy}, f"{world.name}-{start.count}")
        start.count += 1
        world.at_end(pod.close)
        return pod.start()
    start.count = 0
    start.policy = policy
    start.data = made["ConfigMap"]["data"]
    return start


def answers(node, port, times):
    url = f"http://{node.place.address}:{port}/api/v1/pods?[1-{times}]"
    return node.namespace.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}\n", url).split()


def in_force(pod):
    """Since when what the ConfigMap says is in force; None: it is not."""
    (policy,) = pod.json("status")["policies"]
    return policy["since"] if policy["in_force"] and not policy["errors"] else None


def bursts(pod):
    return {limit["burst"] for limit in pod.json("limit", "list")["limits"]}


def test_a_pod_limits_what_its_policy_says(world, node, pods):
    """The policy is changed as a kubelet changes it; the limits outlive the pod, the next one goes on, and uninstall ends them."""
    (text,) = pods.data.values()
    (name,) = pods.data
    assert "qps: 100, burst: 200" in text
    world.real_server("nginx", node.place, port=8080)
    pod = pods()
    assert in_force(pod)
    assert answers(node, 8080, 3) == ["200"] * 3
    pods.policy.write({name: text.replace("qps: 100, burst: 200", "qps: 0, burst: 2")})
    eventually(lambda: 2 in bursts(pod), "the changed policy is in force")
    assert answers(node, 8080, 4) == ["200"] * 2 + ["429"] * 2
    (event, _) = map(json.loads, pod.run("weir", "events", "--json").splitlines())
    assert (event["limit"], event["status"]) == ("user", 429)
    assert pod.probe("livenessProbe") == 200
    assert (pod.stop(), answers(node, 8080, 2)) == (0, ["429"] * 2)
    log = pod.log.read_text()
    assert "limits stay in force" in log
    assert "warning" not in log and "error" not in log
    pod = pods()
    assert answers(node, 8080, 2) == ["429"] * 2
    assert pod.json("status")["servers"][0]["shed"] == 6
    assert pod.stop() == 0
    node.weir("uninstall", "--force")
    assert answers(node, 8080, 2) == ["200"] * 2


KIB = {"Ki": 1, "Mi": 1 << 10, "Gi": 1 << 20}


def kib(quantity):
    return int(quantity[:-2]) * KIB[quantity[-2:]]


def rounded(size):
    """What the kernel's allocator takes for an element: between powers of 2 it has 96 and 192 bytes."""
    return min(size_of for size_of in (96, 192, *(1 << n for n in range(3, 13))) if size_of >= size)


def test_a_pod_has_the_memory_for_full_tables(node, pods):
    """The kernel counts the maps as the container's. A flood must not use up what the agent itself needs."""
    pod = pods()
    assert in_force(pod)
    maps = [json.loads(run("bpftool", "-j", "map", "show", "pinned", path)) for path in node.bpffs.rglob("net-*/*")
            if not path.name.startswith(("prog-", "link-"))]
    made_as_needed = {made["name"]: made["max_entries"] * rounded(48 + -(-made["bytes_key"] // 8) * 8 + made["bytes_value"]) >> 10
                      for made in maps if made["name"] in ("conns", "busy", "lingering", "admitted", "in_flight")}
    assert len(made_as_needed) == 5 and (made_as_needed["conns"], made_as_needed["busy"]) == (128 << 10, 256 << 10)
    empty = sum(made["bytes_memlock"] for made in maps) >> 10
    assert empty > 50 << 10
    (agent_kib,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pod.pid()}/status").read_text(), re.MULTILINE)
    limits = 8 * 10 << 10  # of subjects, with the usual number of keys
    for_a_node = empty + sum(made_as_needed.values()) + int(agent_kib) + limits + 64 * 1800
    assert for_a_node <= kib(pod.container["resources"]["limits"]["memory"])
    assert empty + int(agent_kib) <= kib(pod.container["resources"]["requests"]["memory"])
    assert pod.stop() == 0


def test_a_pod_that_was_written_a_wrong_policy(node, pods, world):
    """It keeps what was in force, and says which line is wrong."""
    (name,) = pods.data
    world.echo(node.place, 8080)
    pod = pods()
    pods.policy.write({name: pods.data[name].replace("burst: 200", "bursts: 200")})
    eventually(lambda: not in_force(pod), "the error is noticed")
    (error, *_) = pod.json("status")["policies"][0]["errors"]
    assert f"{name}:" in error and 'is "burst" meant?' in error
    assert bursts(pod) == {4000, 200}
    assert pod.probe("readinessProbe") == 200
    pods.policy.write(pods.data)
    eventually(lambda: in_force(pod), "it is mended")
    assert pod.stop() == 0


def test_a_pod_looks_into_servers_of_the_node(world, node, pods):
    """It has what probing another process' program takes."""
    program("plain")
    server = GoServer("plain", node.place)
    world.at_end(server.close)
    pod = pods()
    (name,) = pods.data
    pods.policy.write({name: "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: kube}\n"
                             f"spec:\n  listen: ['*:{server.port}']\n  inside: see\n"})
    eventually(lambda: [s["inside"]["lane"] for s in pod.json("status")["servers"]] == ["see"], "the server is looked into")
    assert server.get("/a", times=3) == ["200 HTTP/2.0 /a"] * 3
    assert pod.json("status")["servers"][0]["seen_inside"] == {"seen": 3}
    assert pod.stop() == 0
