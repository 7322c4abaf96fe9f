# SPDX-License-Identifier: GPL-2.0
"""Whose request it is follows from the path as the server itself understands it, however it is spelt."""
import collections
import random
import re
import shutil

import pytest

from lib.others import NGINX

pytestmark = pytest.mark.together

TENANTS = ("a", "b", "B", "a.b", "...", "t")
PIECES = ("t", "a", "b", "B", "a.b", "...", "%74", "%61", "%42", "a%2eb", "%2e..", ".", "..", "%2e", "%2E%2e", ".%2e", "",
          "", "a%2Fb", "%2f..%2fb", "t%2Fa", "..%2F", "a#b", "..#")
SPELLINGS = (
    "/t/a/x", "//t//a", "/t/./a", "/t/b/../a", "/t/b/%2e%2e/a", "/t/b/.%2e/a/", "/%74/%61", "/t%2Fa%2Fx", "/x/../t/a/x",
    "/x/y/../../t/a", "/t/a/..", "/t/a/../", "/t/a/.", "/t/a?/t/b", "/t/a?../b", "/t/a#/../b", "/t/a%23/../b", "/t/b/..;/a",
    "/t/B/x", "/t//../t/a", "/t/...", "/t/a/x/y/z/1/2/3/4/5/6/../../../../../../../../../../b", "/..", "/../t/a",
    "/t/../../t/a", "/t/a/%2e%2e/%2e%2e/%2e%2e/x", "/t/a%00", "/t/%", "/t/%6", "/t/%zz", "/%2e%2e/t/a", "/t", "/", "/t/",
)


def random_spellings(count):
    dice = random.Random(1)
    return ["/" + "/".join(dice.choice(PIECES) for _ in range(dice.randint(1, 6))) for _ in range(count)]


class Tenants:
    """A server that is attached dry: each request of a tenant is counted as one to be shed, and answered all the same."""

    def __init__(self, site, *options):
        self.site = site
        site.attach("--dry-run", *options)
        site.limit("namespace", burst=0)
        self.before = collections.Counter()

    def charged(self):
        """Who has been charged since this was asked last: a tenant's name, or None."""
        now = collections.Counter({entry["subject"]: entry["dry_run_shed"] for entry in self.site.status()["top"]})
        news = now - self.before
        self.before = now
        assert sum(news.values()) <= 1
        return next(iter(news), None)

    def ask(self, target):
        """The answer, and who was charged for it."""
        client = self.site.client()
        client.ask(target)
        answer = client.read()
        client.close()
        return answer, self.charged()

    def introduce(self, form):
        """A name is shown as it was first spelt."""
        for name in TENANTS:
            assert self.ask(form.format(name))[1] == name


@pytest.mark.skipif(not shutil.which("nginx"), reason="there is no nginx")
def test_nginx(world):
    place = world.veth()
    config = re.sub(r"location / .*", 'location / {{ return 200 "$uri"; }}', NGINX)
    tenants = Tenants(world.site(place, world.real_server("nginx", place, text=config)),
                      "--paths", "nginx", "--namespace-from", "segment=2")
    tenants.introduce("/t/{}/x")
    served = refused = 0
    for target in (*SPELLINGS, *random_spellings(150)):
        answer, tenant = tenants.ask(target)
        if answer.status == 400:
            refused += 1
            assert tenant is None, target
            continue
        uri = answer.body.decode().strip("/").split("/")
        assert tenant == (uri[1] if len(uri) > 1 else None), target
        served += 1
    assert served > 50 and refused > 20


KUBERNETES = {
    "/api/v1/namespaces/a/pods": "a",
    "//api/v1/namespaces/a/pods/": "a",
    "/%61pi/v1/n%61mespaces/%61/pods": "a",
    "/api%2Fv1/namespaces%2Fa": "a",
    "/api/v1/namespaces/b/../a/pods": "b",
    "/api/v1/./namespaces/a": None,
    "/api/v1//namespaces/a": None,
    "/api/v1/Namespaces/a": None,
    "/api/v1/namespaces/B": "B",
    "/api/v1/namespaces//a": None,
    "/apis/g/v/watch/namespaces/a/r?watch=0": "a",
    "/api/v1/namespaces/a%2Eb": "a.b",
}

PREFIX = {"/x/y/a/z": "a", "/x/y/a": "a", "/x%2Fy/%61": "a", "//x/y/a": "a", "/x/y//a": None, "/x/y": None, "/x/y/": None,
          "/x/z/a": None, "/z/x/y/a": None, "/X/y/a": None, "/x/y/../a": None, "/x/y/B?x/y/a": "B"}

RAW = {"/t/a": "a", "/t/a/": "a", "//a/b": "a", "/t/%61": None, "/t%2Fa": None, "/%zz/b": "b", "/t/./a": None, "/t//a": None}


@pytest.mark.parametrize("options,introduction,expected", [
    ((), "/api/v1/namespaces/{}", KUBERNETES),
    (("--namespace-from", "prefix=/x/y/"), "/x/y/{}", PREFIX),
    (("--paths", "raw", "--namespace-from", "segment=2"), "/t/{}", RAW),
], ids=["kubernetes", "prefix", "raw"])
def test_namespace_from(world, options, introduction, expected):
    tenants = Tenants(world.site(), *options)
    tenants.introduce(introduction)
    for target, tenant in expected.items():
        answer, charged = tenants.ask(target)
        assert answer.status == 200
        assert (charged if charged in TENANTS else None) == tenant, target


def test_kept_over_a_restart(world):
    """What a server was attached with is in force again, whoever loads it."""
    tenants = Tenants(world.site(), "--paths", "nginx", "--namespace-from", "prefix=/x/y/")
    world.weir.kill()
    world.weir.start()
    status = tenants.site.status()
    assert (status["paths"], status["namespace_from"]) == ("nginx", "prefix=/x/y/")
    assert tenants.ask("/x/./y/a")[1] == "a"
