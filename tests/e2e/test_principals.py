# SPDX-License-Identifier: GPL-2.0
"""Tokens and addresses: whom they stand for, and that a token is found nowhere else."""
import json
import subprocess

import pytest

from lib.process import eventually
from test_identity import ask, counted

pytestmark = pytest.mark.together

SECRET = "correct-horse-battery-staple"


def bearer(token):
    return f"Authorization: Bearer {token}"


def write(path, *lines):
    path.write_text("".join(line + "\n" for line in lines))
    return path


def tokens(world):
    return write(world.directory / "tokens.csv", f"{SECRET},alice,1", 'second,bob,2,"dev,system:masters"',
                 "third,system:serviceaccount:dev:builder,3")


def test_each_way_in_its_turn(world):
    site = world.site()
    site.attach("--token-file", tokens(world), "--address", "127.0.0.0/8,local")
    site.limit("user", burst=100)
    for user in "carol", "alice", "local":
        site.limit("user", user, burst=1)
    client = site.client()
    token = bearer(SECRET)
    assert [ask(client, "X-Remote-User: carol", token) for _ in range(2)] == [200, 429]
    assert [ask(client, token) for _ in range(2)] == [200, 429]
    assert [ask(client) for _ in range(2)] == [200, 429]
    assert ask(client, bearer("unknown")) == 429
    assert counted(site, request_header=2, token=2, address_table=3) == {}
    site.check(passed=3, shed=4)
    shed = {row["subject"]: row["shed"] for row in site.status()["top"]}
    assert shed == {"carol": 1, "alice": 1, "local": 2}


def test_tokens_as_the_server_reads_them(world):
    site = world.site()
    site.attach("--token-file", tokens(world))
    site.limit("user", "alice", burst=0)
    client = site.client()
    for line in f"authorization: bEARER {SECRET}", f"AUTHORIZATION:   Bearer {SECRET} and more":
        assert ask(client, line) == 429
    for line in (f"Authorization: Bearer  {SECRET}", f"Authorization: Basic {SECRET}", f"Authorization: {SECRET}",
                 f"Authorization: Bearer {SECRET}x", "Authorization: Bearer"):
        assert ask(client, line) == 200
    assert ask(client, bearer(SECRET), bearer(SECRET)) == 200
    assert counted(site, token=2, anonymous=6) == {"repeated_token": 1}


def test_groups_of_tokens_and_addresses(world):
    site = world.site()
    site.attach("--token-file", tokens(world), "--exempt-group", "system:masters",
                "--exempt-group", "system:serviceaccounts:dev", "--address", '127.0.0.0/8,local,"ops"',
                "--exempt-group", "ops", "--exempt-user", "alice")
    site.limit("total", burst=0)
    client = site.client()
    assert ask(client, bearer(SECRET)) == 200
    assert ask(client, bearer("second")) == 200
    assert ask(client, bearer("third")) == 200
    assert ask(client) == 200
    assert ask(client, "X-Remote-User: eve") == 429
    site.check(passed=0, shed=1, exempt=4)


def test_the_longest_prefix_and_its_namespace(world):
    place = world.veth(6)
    site = world.site(place)
    table = write(world.directory / "addresses.csv", "fd00::/16,wide", "fd00:7::/32,narrow,,shop",
                  "fd00:7::99,single,,shop")
    site.attach("--trusted-proxy", "192.0.2.1", "--address-file", table)
    world.address(place.client_ns, "fd00:7::99/64")
    site.limit("user", burst=2)
    site.limit("namespace", burst=5)
    client, single = site.client(source=(place.client_address, 0)), site.client(source=("fd00:7::99", 0))
    assert client.drive(3) == [200, 200, 429]
    assert single.drive(3) == [200, 200, 429]
    top = {(row["limit"], row["subject"]): row["passed"] for row in site.status()["top"]}
    assert top == {("user", "narrow"): 2, ("user", "single"): 2}
    site.weir("limit", "delete", "user")
    # Of the namespace's five, four are gone; a path that names another one is not charged to it.
    assert client.drive(2) == [200, 429]
    assert client.get("/api/v1/namespaces/other/pods") == 200
    assert [row["subject"] for row in site.status()["top"] if row["limit"] == "namespace"] == ["shop"]
    assert counted(site, address_table=9) == {}


def test_reload(world):
    path = tokens(world)
    site = world.site()
    site.attach("--token-file", path)
    site.limit("user", "alice", burst=0)
    client = site.client()
    assert ask(client, bearer(SECRET)) == 429
    write(path, "other,alice,1")
    assert ask(client, bearer(SECRET)) == 429
    assert site.weir("reload") == 'server "web" has 1 token and 0 addresses\n'
    assert ask(client, bearer(SECRET)) == 200
    assert ask(client, bearer("other")) == 429
    assert site.weir.json("reload", "web") == {"servers": [{"name": "web", "tokens": 1, "addresses": 0}]}
    assert "nosuch" in site.weir.refused("reload", "nosuch")
    write(path, f"{SECRET},alice,1")
    world.weir.process.send_signal(1)
    eventually(lambda: ask(client, bearer(SECRET)) == 429, "the file was read again")


def test_a_bad_file_changes_nothing(world):
    path = tokens(world)
    site = world.site()
    site.attach("--token-file", path)
    site.limit("user", "alice", burst=0)
    client = site.client()
    write(path, f"{SECRET},bob,1", "too,few", '"open,eve,1')
    said = site.weir.refused("reload")
    assert f"{path}:2:1: " in said and f"; {path}:3:2: " in said and SECRET not in said and "too" not in said
    assert ask(client, bearer(SECRET)) == 429
    assert str(path) in site.status()["problem"]
    # Nor does it when the agent starts.
    world.weir.kill()
    world.weir.start()
    assert site.status()["mode"] == "limiting" and str(path) in site.status()["problem"]
    assert ask(client, bearer(SECRET)) == 429
    tokens(world)
    site.weir("reload")
    assert site.status()["problem"] is None


@pytest.mark.alone
def test_attach_needs_good_files(world):
    world.weir.start()
    port = 8080
    path = write(world.directory / "bad.csv", "10.0.0.0/8,alice", "ten,bob")
    assert f"{path}:2:1: " in world.weir.refused("attach", "web", "--port", port, "--address-file", path)
    assert "No such file" in world.weir.refused("attach", "web", "--port", port, "--token-file", "/nowhere")
    assert "/proc/self/mem" in world.weir.refused("attach", "web", "--port", port, "--token-file", "/proc/self/mem")
    assert "columns" in world.weir.refused("attach", "web", "--port", port, "--address", "10.0.0.0/8", status=2)
    assert world.weir.servers() == []
    assert list(world.weir.pins.glob("net-*")) == []


def test_tokens_of_nobody(world):
    """There may be none yet, or a script has written the file and failed: it is done, and said."""
    path = world.directory / "tokens.csv"
    path.touch(0o600)
    site = world.site()
    done = site.weir.run("attach", "web", "--port", site.server.port, "--netns", site.place.server_ns.path, "--token-file", path)
    warning = f"the token file {path} has no tokens: no user is known by one"
    assert (done.returncode, done.stderr) == (0, f"weir: warning: {warning}\n")
    assert site.status()["warning"] == warning
    tokens(world)
    site.weir("reload")
    assert "no tokens" not in site.weir("status")
    write(path, "token-1,alice,1")
    site.weir("reload")
    assert '"web": 1 token and 0 addresses were read' in site.weir.log()


def test_files_are_read_again_by_the_next_agent(world):
    path = tokens(world)
    site = world.site()
    site.attach("--token-file", path, "--address", "127.0.0.0/8,local")
    site.limit("user", "carol", burst=0)
    world.weir.stop()
    write(path, "fourth,carol,4")
    client = site.client()
    assert ask(client, bearer("fourth")) == 200
    world.weir.start()
    assert ask(client, bearer("fourth")) == 429
    assert counted(site, address_table=1, token=1) == {}


def test_a_token_is_found_nowhere(world):
    site = world.site()
    site.attach("--token-file", tokens(world))
    site.limit("user", burst=1)
    client = site.client()
    assert [ask(client, bearer(SECRET)) for _ in range(2)] == [200, 429]
    site.weir("reload")
    said = [json.dumps(site.weir.json("status")), site.weir("status"), site.weir("metrics"), site.weir.log()]
    said += [path.read_text(errors="replace") for path in world.weir.state_dir.iterdir() if path.is_file()]
    assert not [text for text in said if SECRET in text]
    needle = " ".join(f"{byte:02x}" for byte in SECRET.encode()[:8])
    for pin in sorted(world.weir.pins.glob("net-*/*")):
        if pin.name.startswith(("prog-", "link-")) or pin.name in ("settings", "conns"):
            continue
        dump = subprocess.run(["bpftool", "map", "dump", "pinned", pin, "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        assert SECRET not in dump.stdout and needle not in dump.stdout.replace('"', "").replace(",", " ").replace("0x", "")
    with open(f"/proc/{world.weir.process.pid}/mem", "rb", buffering=0) as memory:
        for line in open(f"/proc/{world.weir.process.pid}/maps"):
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            if " rw" not in line or end - start > 1 << 26:
                continue
            memory.seek(start)
            assert SECRET.encode() not in memory.read(end - start), line
