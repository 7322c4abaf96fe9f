# SPDX-License-Identifier: GPL-2.0
"""A world that tests have in common, one after the other."""
import functools

from lib import inside, netns
from lib.world import World

KEEPER = "keeper"
KEEPER_PORT = 7
KEEPER_INSIDE_PORT = 8


def pair(*ends):
    return {4: netns.veth(*ends, 4), 6: netns.Place(*ends, *netns.add_addresses(*ends, 6))}


class Common(World):
    """
    An agent, a loopback and a veth pair. In each of these places a server that nobody asks keeps the programs while no test
    has one attached: loading them takes a second. Programs that look into servers take another one: behind a test that had
    them, a server that is looked into keeps these, too.
    """

    def __init__(self, name, directory, bpffs):
        super().__init__(name, directory, bpffs)
        self.made = {}
        self.as_made = {}
        self.seen = {}  # the keepers that can be looked into
        self.weir.start()

    def lend(self, kind, family):
        if kind not in self.made:
            self.made[kind] = self.both_families(kind)
        return self.made[kind][family]

    def both_families(self, kind):
        if kind == "loopback":
            namespace = self.namespace("lo")
            places = {family: netns.loopback(namespace, family) for family in (4, 6)}
        else:
            places = pair(self.namespace("s"), self.namespace("c"))
        self.echo(places[4], KEEPER_PORT)
        for namespace in places[4].namespaces():
            self.as_made[namespace] = namespace.configuration()
        return places

    def pair_anew(self):
        """Other devices, of the same names and addresses; what was stacked on them goes."""
        ends = self.made["veth"][4]
        for namespace in ends.namespaces():
            for device in "over", "bridge", "eth0":
                if device in namespace.devices():
                    namespace.ip("link", "del", device)
        self.made["veth"] = pair(ends.server_ns, ends.client_ns)

    def changes_of(self, kind):
        """What a test has left in a place, or taken away from it: others are to find it as it was."""
        changes = []
        for namespace in self.made[kind][4].namespaces():
            now = namespace.configuration()
            changes += [f"{namespace.name}: {line}" for line in self.as_made[namespace] ^ now]
            self.as_made[namespace] = now  # the next test is not blamed for it
        return changes

    def keep(self, kind, looked_into):
        place = self.made[kind][4]
        if looked_into and kind not in self.seen:
            self.seen[kind] = inside.GoServer("plain", place, KEEPER_INSIDE_PORT)
            self.at_end(self.seen[kind].close)
        port = ("--port", KEEPER_INSIDE_PORT, "--inside", "see") if looked_into else ("--port", KEEPER_PORT)
        self.weir("attach", f"{KEEPER}-{kind}", "--netns", place.server_ns.path, *port)

    def let_go(self, kind):
        self.weir("detach", f"{KEEPER}-{kind}", "--force")

    def keeps(self):
        """The kinds of places where a keeper is attached."""
        return {server["name"].removeprefix(f"{KEEPER}-") for server in self.weir.servers()} & set(self.made)


class Lent(World):
    """
    A common world for the time of one test. What its connections still send goes to a port that is not used again. The test may
    end the agent and start it with options: the next one takes over the programs, and loads none.

    There is a common world for each kind of place: where an agent has both kinds, the keeper of the one that a test does not ask
    for would have to go, and with it the programs.
    """

    def __init__(self, name, directory, bpffs, commons, alters):
        super().__init__(name, directory, bpffs)
        self.commons = commons
        self.alters = alters  # its places' devices
        self.borrowed = set()

    def choose(self, kind):
        common = self.commons(kind)
        common.weir.log_begin()
        return common

    @functools.cached_property
    def common(self):
        """That of the first place that was borrowed. Who asks for the agent before any place gets the one of loopback."""
        return self.choose("loopback")

    @functools.cached_property
    def pins(self):
        return self.common.pins

    @functools.cached_property
    def ports(self):
        return self.common.ports

    @functools.cached_property
    def weir(self):
        return self.common.weir

    def chosen(self):
        return "common" in self.__dict__

    def borrow(self, kind, family):
        if not self.chosen():
            self.common = self.choose(kind)
        place = self.common.lend(kind, family)
        self.borrowed.add(kind)
        return place

    def loopback(self, family=4):
        return self.borrow("loopback", family)

    def veth(self, family=4):
        return self.borrow("veth", family)

    def attached(self):
        """The test sees no server but its own."""
        for kind in self.common.keeps():
            self.common.let_go(kind)

    def end_weir(self):
        if not self.chosen():
            return []
        weir = self.common.weir
        weir.start_as_usual()
        attached = {server["name"]: server for server in weir.servers()}
        looked_into = any(server["inside"]["lane"] != "off" for server in attached.values())
        for kind in self.borrowed:
            if f"{KEEPER}-{kind}" not in attached:
                self.common.keep(kind, looked_into)
        for name in attached:
            if not name.startswith(KEEPER):
                weir("detach", name, "--force")
        for kind in self.borrowed:
            for namespace in self.common.lend(kind, 4).namespaces():
                namespace.run("nft", "flush", "ruleset")
        return [text for namespace in self.namespaces for text in namespace.leftovers()]

    def changes(self):
        if self.alters and "veth" in self.borrowed:
            self.common.pair_anew()
        return [change for kind in self.borrowed for change in self.common.changes_of(kind)]
