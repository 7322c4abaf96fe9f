# SPDX-License-Identifier: GPL-2.0
"""Policy files that the agent follows: what they say is in force while they say it, and nothing else of theirs is."""
import os

import pytest

from lib.process import eventually

pytestmark = pytest.mark.together

PODS = "/api/v1/namespaces/default/pods"

EVENTS = """\
apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits:
- {type: User, qps: 10, burst: 50}
"""

ADMISSION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- {name: EventRateLimit, path: pointed/events.yaml}
"""

LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: low}
spec: {type: Limited, limited: {nominalConcurrencyShares: 10}}
"""

SCHEMA = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: all}
spec:
  priorityLevelConfiguration: {name: low}
  rules:
  - subjects: [{kind: Group, group: {name: dev}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
"""


class Files:
    """A directory of policy files, and an agent that may follow it."""

    def __init__(self, world, directory):
        self.world = world
        self.weir = world.weir
        self.directory = directory
        directory.mkdir()

    def follow(self, *paths):
        self.weir.start("off", *(word for path in paths or [self.directory] for word in ("--policy", path)))

    def write(self, name, text):
        """As careful people do: another file in its place."""
        path = self.directory / name
        fresh = path.with_name(f".{name}.new")
        fresh.write_text(text)
        fresh.rename(path)
        return path

    def throttle(self, site, limits, more=""):
        """That of the site's server, which it attaches."""
        rows = "".join(f"  - {limit}\n" for limit in limits)
        return (f"apiVersion: weir/v1\nkind: Throttle\nmetadata: {{name: web}}\nspec:\n"
                f"  listen: ['*:{site.server.port}']\n  netns: {site.place.server_ns.path}\n"
                f"  trustedProxies: ['0.0.0.0/0']\n{more}  limits:\n{rows}")

    def followed(self, path=None):
        """What `status` says of it."""
        (followed,) = [followed for followed in self.weir.json("status")["policies"]
                     if followed["path"] == str(path or self.directory)]
        return followed

    def limits(self):
        """{name: (burst, file)}"""
        return {limit["name"]: (limit.get("burst"), limit["file"]) for limit in
                self.weir.json("limit", "list")["limits"]}

    def becomes(self, wanted):
        """Until limits of these names and bursts are in force."""
        eventually(lambda: {name: burst for name, (burst, _) in self.limits().items()} == wanted, f"limits {wanted}")
        self.settle()

    def settle(self):
        """The list says what is wanted; a diff is answered behind all changes that are under way."""
        self.world.attached()
        any_policy = self.world.directory / "any.yaml"
        any_policy.write_text(EVENTS)
        assert self.weir.run("diff", "-f", any_policy).returncode in (0, 1)


def user(burst, name="user", key=""):
    return f"{{name: {name}, {key}qps: 0, burst: {burst}}}"


def named(name, burst):
    return user(burst, name, "key: user, ")


@pytest.fixture
def files(world, tmp_path):
    files = Files(world, tmp_path / "policy.d")
    yield files
    if world.weir.running():
        world.keep()
        world.weir.stop()  # what it follows, nobody could detach


@pytest.fixture
def site(files):
    """A server behind an agent that follows the directory, which has nothing in it yet."""
    files.follow()
    return files.world.site()


def test_a_directory(files, site):
    path = files.write("10-web.yaml", files.throttle(site, [user(3)]))
    files.write("20-events.json", '{"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",'
                                  '"limits": [{"type": "User", "qps": 10, "burst": 50}]}')
    files.write("notes.txt", "kind: nonsense\n")
    files.write(".hidden.yaml", "kind: nonsense\n")
    files.becomes({"user": 3, "event-user": 50})
    assert files.limits()["user"] == (3, str(path))
    assert [site.client("alice").get(PODS) for _ in range(4)] == [200] * 3 + [429]
    followed = files.followed()
    assert (followed["in_force"], followed["files"], followed["objects"], followed["errors"]) == (True, 2, 2, [])
    assert f"{files.directory}  2      2        yes" in files.weir("status", "--wide")
    metrics = files.weir.metrics()
    assert metrics["weir_policy_ok"] == {(str(files.directory),): 1}
    assert metrics["weir_policy_errors"] == {(str(files.directory),): 0}
    assert metrics["weir_policy_last_success_timestamp_seconds"][(str(files.directory),)] > 1e9


def test_the_command_line_leaves_it_alone(files, site, tmp_path):
    path = files.write("web.yaml", files.throttle(site, [user(3), named("w", 2)]))
    files.becomes({"user": 3, "w": 2})
    for words in (("limit", "set", "user", "--qps", "1", "--burst", "1"), ("limit", "set", "w", "ann", "--qps", "1",
                  "--burst", "1"), ("limit", "delete", "w"), ("detach", "web"), ("detach", "--all", "--force"),
                  ("delete", "-f", path), ("apply", "-f", path)):
        said = files.weir.refused(*words)
        assert str(path) in said and "follows" in said, said
    other = tmp_path / "other.yaml"
    other.write_text(path.read_text().replace("burst: 3", "burst: 4"))
    assert files.weir("diff", "-f", path) == ""
    done = files.weir.run("diff", "-f", other)  # what would change if it was put there
    assert (done.returncode, done.stderr) == (1, "") and "+    burst: 4" in done.stdout
    other.write_text(EVENTS)
    files.weir("apply", "-f", other, "--prune")
    assert files.limits() == {"user": (3, str(path)), "w": (2, str(path)), "event-user": (50, str(other))}
    files.weir("delete", "-f", other)
    files.weir("limit", "set", "total", "--qps", "5", "--burst", "5")
    files.becomes({"user": 3, "w": 2, "total": 5})


def test_an_edit_resets_nothing_else(files, site):
    path = files.write("web.yaml", files.throttle(site, [user(3), named("w", 50)]))
    files.becomes({"user": 3, "w": 50})
    alice = site.client("alice")
    assert [alice.get(PODS) for _ in range(4)] == [200] * 3 + [429]
    path.write_text(files.throttle(site, [user(3), named("w", 60)]))  # in place
    files.becomes({"user": 3, "w": 60})
    assert alice.get(PODS) == 429
    files.write("web.yaml", files.throttle(site, [user(3)]))
    files.becomes({"user": 3})
    assert alice.get(PODS) == 429
    os.unlink(path)
    eventually(lambda: site.status()["mode"] == "draining", "the server is detached")
    assert alice.get(PODS) == 200


def test_a_bad_file_changes_nothing(files, site):
    files.write("web.yaml", files.throttle(site, [user(3), named("w", 2)]))
    files.write("zz.yaml", LEVEL)
    files.becomes({"user": 3, "w": 2})
    before = files.weir("export")
    path = files.write("web.yaml", files.throttle(site, ["{name: user, qps: 0, burts: 9}", named("w", "many")]))
    os.unlink(files.directory / "zz.yaml")  # nor is this seen, as long as the rest is wrong
    eventually(lambda: not files.followed()["in_force"], "it is seen to be wrong")
    errors = files.followed()["errors"]
    assert [error.split(" ")[0] for error in errors] == [f"{path}:9:26:", f"{path}:10:41:"]
    assert files.weir("export") == before
    said = files.weir("status")
    assert f"policy {files.directory}: its earlier content is in force, because of {errors[0]} (and 1 more)" in said
    metrics = files.weir.metrics()
    assert metrics["weir_policy_ok"][(str(files.directory),)] == 0
    assert metrics["weir_policy_errors"][(str(files.directory),)] == 2
    since = files.followed()["since"]
    files.write("notes.txt", "")  # a reason to look again
    files.weir.kill()
    offset = len(files.weir.log())
    files.follow()
    assert files.weir("export") == before  # last good, over a restart too
    assert [files.weir.log()[offset:].count(error) for error in errors] == [1, 1]
    assert files.followed()["since"] >= since
    files.write("web.yaml", files.throttle(site, [user(9), named("w", 2)]))
    files.becomes({"user": 9, "w": 2})
    assert files.followed()["errors"] == []
    assert files.weir.metrics()["weir_policy_ok"][(str(files.directory),)] == 1
    assert "low" not in files.weir("export")


def test_an_empty_file_is_one_that_is_being_written(files, site):
    path = files.write("web.yaml", files.throttle(site, [user(3)]))
    files.becomes({"user": 3})
    path.write_text("")
    eventually(lambda: files.followed()["errors"] == [f"{path}: it is empty"], "it is seen to be empty")
    files.becomes({"user": 3})


def swap(directory, version, texts):
    """As the kubelet puts a ConfigMap there: files are links through ..data, which is moved on."""
    (directory / version).mkdir()
    for name, text in texts.items():
        (directory / version / name).write_text(text)
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    old = os.readlink(directory / "..data") if (directory / "..data").is_symlink() else None
    (directory / "..data_tmp").symlink_to(version)
    os.rename(directory / "..data_tmp", directory / "..data")
    for path in directory.iterdir():
        if path.is_symlink() and not path.exists():
            path.unlink()
    if old:
        for path in (directory / old).iterdir():
            path.unlink()
        (directory / old).rmdir()


def test_a_mounted_config_map(files, site):
    swap(files.directory, "..2026_01", {"web.yaml": files.throttle(site, [user(3)]), "events.yaml": EVENTS})
    files.becomes({"user": 3, "event-user": 50})
    assert files.limits()["user"] == (3, f"{files.directory}/web.yaml")
    alice = site.client("alice")
    assert [alice.get(PODS) for _ in range(4)] == [200] * 3 + [429]
    swap(files.directory, "..2026_02", {"web.yaml": files.throttle(site, [user(3), named("w", 7)]),
                                        "events.yaml": EVENTS.replace("50", "60")})
    files.becomes({"user": 3, "w": 7, "event-user": 60})
    assert alice.get(PODS) == 429
    swap(files.directory, "..2026_03", {"web.yaml": files.throttle(site, [user(4)])})
    files.becomes({"user": 4})
    assert files.followed()["files"] == 1


def test_two_paths_are_one_set(files, tmp_path):
    files.follow(files.directory, tmp_path / "flow.yaml")
    site = files.world.site()
    missing = files.followed(tmp_path / "flow.yaml")
    assert not missing["in_force"] and "No such file" in missing["errors"][0]
    files.write("web.yaml", files.throttle(site, [user(3)]) + "---\n" + LEVEL)
    files.becomes({"user": 3})
    (tmp_path / "flow.yaml").write_text(SCHEMA)  # its level is in the other one
    eventually(lambda: "all" in files.weir("export") and files.followed(tmp_path / "flow.yaml")["in_force"],
               "the schema is there")
    (tmp_path / "flow.yaml").write_text(SCHEMA + "---\n" + LEVEL)
    eventually(lambda: files.followed(tmp_path / "flow.yaml")["errors"], "the level is there twice")
    (said,) = files.followed(tmp_path / "flow.yaml")["errors"]
    assert f"{files.directory}/web.yaml" in said and f"{tmp_path}/flow.yaml" in said and "low" in said
    assert files.followed()["in_force"]
    files.write("web.yaml", files.throttle(site, [user(4)]))  # now it is there once
    eventually(lambda: files.followed(tmp_path / "flow.yaml")["in_force"], "there is one level")
    files.becomes({"user": 4})
    os.unlink(tmp_path / "flow.yaml")
    eventually(lambda: not files.followed(tmp_path / "flow.yaml")["in_force"], "the file is missed")
    assert "low" in files.weir("export")  # what it said before


def test_beside_the_command_line(files, site):
    site.attach()
    files.weir("limit", "set", "user", "--qps", "0", "--burst", "5")
    text = "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: web}\nspec:\n  limits:\n  - " + user(3) + "\n"
    path = files.write("web.yaml", text)
    eventually(lambda: files.followed()["errors"], "there is another limit")
    (said,) = files.followed()["errors"]
    assert str(path) in said and "command line" in said and "weir limit delete user" in said
    assert files.limits() == {"user": (5, "command line")}
    files.weir("limit", "delete", "user")
    files.becomes({"user": 3})  # at once, without the file being touched
    files.weir("detach", "web")  # a command attached it
    eventually(lambda: files.followed()["errors"], "there is no server")
    assert 'there is no server "web"' in files.followed()["errors"][0]
    site.attach()
    files.becomes({"user": 3})


def test_restarts(files, site):
    files.write("web.yaml", files.throttle(site, [user(3)]))
    (files.directory / "pointed").mkdir()
    (files.directory / "pointed" / "events.yaml").write_text(EVENTS)
    files.write("admission.yaml", ADMISSION)
    files.becomes({"user": 3, "event-user": 50})
    (files.directory / "pointed" / "events.yaml").write_text(EVENTS.replace("50", "70"))
    files.becomes({"user": 3, "event-user": 70})
    alice = site.client("alice")
    assert [alice.get(PODS) for _ in range(4)] == [200] * 3 + [429]
    files.weir.kill()
    files.follow()
    assert alice.get(PODS) == 429
    files.weir.kill()
    files.follow(files.directory / "web.yaml")
    assert "admission.yaml" not in str(files.limits()) and files.limits()["user"][0] == 3
    assert f"{files.directory} is not followed any more" in files.weir.log()
    assert alice.get(PODS) == 429
    files.weir.stop()
    files.weir.start()
    assert site.status()["mode"] == "draining"
    assert alice.get(PODS) == 200


@pytest.mark.alone
def test_a_new_server(files, site):
    """Killed before all that its file says is in force, the next agent knows that a file had attached it. It is starting until then."""
    path = files.write("web.yaml", files.throttle(site, [user(1)]))
    eventually(files.weir.servers, "it is there, and most likely starting")
    files.weir.kill()
    path.unlink()
    files.follow()
    eventually(lambda: files.weir.servers() == [], "it is gone")
    files.write("web.yaml", files.throttle(site, [user(1)]))
    eventually(lambda: [server["mode"] for server in files.weir.servers()] == ["limiting"], "it limits")
    assert site.client("alice").drive(2) == [200, 429]


def test_a_hostile_name(files, tmp_path):
    """No control character of it reaches the terminal of whoever asks for the status."""
    directory = tmp_path / "a\x1b[31m"
    directory.mkdir()
    (directory / "b\x1b[32m.yaml").write_text("kind: nosuch\n")
    files.follow(directory)
    eventually(lambda: "policy " in files.weir("status"), "the status says that it is wrong")
    for words in ((), ("--wide",)):
        text = files.weir("status", *words)
        assert rf"policy {tmp_path}/a\x1b[31m: " in text and rf"a\x1b[31m/b\x1b[32m.yaml:1:1: " in text
        assert all(line.isprintable() for line in text.splitlines())


def test_usage(world, tmp_path):
    for path, said in (("policy.d", "absolute path"), ("-", "absolute path"), ("", "absolute path")):
        assert said in world.weir.refused("agent", "--policy", path, status=2)
    assert "twice" in world.weir.refused("agent", "--policy", tmp_path, "--policy", tmp_path, status=2)
