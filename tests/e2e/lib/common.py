# SPDX-License-Identifier: GPL-2.0
"""What the tests that are marked `together` have in common, one after the other."""
import functools
import shutil

from lib import inside, netns
from lib.world import World

KEEPER = "keeper"
KEEPER_PORT = 7
KEEPER_INSIDE_PORT = 8


def pair(*ends):
    return {4: netns.veth(*ends, 4), 6: netns.Place(*ends, *netns.add_addresses(*ends, 6))}


class Common(World):
    """
    An agent, and a server's namespace with its loopback and one end of a veth pair. A server there that nobody asks keeps the
    programs while no test has one attached: loading them takes a second. Programs that look into servers take another one: behind
    a test that had them, a server that is looked into keeps these, too.
    """

    def __init__(self, name, directory, bpffs, options):
        super().__init__(name, directory, bpffs)
        ends = self.namespace("s"), self.namespace("c")
        self.places = {"loopback": {family: netns.loopback(ends[0], family) for family in (4, 6)}, "veth": pair(*ends)}
        self.home = self.places["loopback"][4]
        self.as_made = {namespace: namespace.configuration() for namespace in ends}
        self.seen = None  # the keeper that can be looked into
        self.echo(self.home, KEEPER_PORT)
        self.weir.usual = ("off", *options)
        self.weir.start(*self.weir.usual)

    def pair_anew(self):
        """Other devices, of the same names and addresses; what was stacked on them goes."""
        ends = self.places["veth"][4]
        for namespace in ends.namespaces():
            for device in "over", "bridge", "eth0":
                if device in namespace.devices():
                    namespace.ip("link", "del", device)
        self.places["veth"] = pair(ends.server_ns, ends.client_ns)

    def changes(self):
        """What a test has left in the namespaces, or taken away from them: others are to find them as they were."""
        changes = []
        for namespace, before in self.as_made.items():
            now = namespace.configuration()
            changes += [f"{namespace.name}: {line}" for line in before ^ now]
            self.as_made[namespace] = now  # the next test is not blamed for it
        return changes

    def keep(self):
        """Beside the servers that are attached now."""
        servers = self.weir.servers()
        if KEEPER in {server["name"] for server in servers}:
            return
        looked_into = any(server["inside"]["lane"] != "off" for server in servers)
        if looked_into and not self.seen:
            self.seen = inside.GoServer("plain", self.home, KEEPER_INSIDE_PORT)
            self.at_end(self.seen.close)
        port = ("--port", KEEPER_INSIDE_PORT, "--inside", "see") if looked_into else ("--port", KEEPER_PORT)
        self.weir("attach", KEEPER, "--netns", self.home.server_ns.path, *port)

    def let_go(self):
        if KEEPER in {server["name"] for server in self.weir.servers()}:
            self.weir("detach", KEEPER, "--force")


class Lent(World):
    """
    A common world for the time of one test. What its connections still send goes to a port that is not used again. The test may
    end the agent and start it with options: the next one takes over the programs, and loads none.
    """

    def __init__(self, name, directory, bpffs, common, alters):
        super().__init__(name, directory, bpffs)
        self.common = common
        self.alters = alters  # its devices
        common.weir.log_begin()

    @functools.cached_property
    def pins(self):
        return self.common.pins

    @functools.cached_property
    def ports(self):
        return self.common.ports

    @functools.cached_property
    def weir(self):
        return self.common.weir

    def loopback(self, family=4):
        return self.common.places["loopback"][family]

    def veth(self, family=4):
        return self.common.places["veth"][family]

    def attached(self):
        """The test sees no server but its own."""
        self.common.let_go()

    def keep(self):
        self.common.keep()

    def forget(self, *names):
        """Files and folders of the agent's are not there any more: the next one begins them anew."""
        weir = self.weir
        weir.stop()
        for path in (weir.state_dir / name for name in names):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        weir.start(*weir.usual)

    def end_weir(self):
        weir = self.common.weir
        weir.start_as_usual()
        self.keep()
        for server in weir.servers():
            if server["name"] != KEEPER:
                weir("detach", server["name"], "--force")
        for namespace in self.common.namespaces:
            namespace.run("nft", "flush", "ruleset")
        return [text for namespace in self.namespaces for text in namespace.leftovers()]

    def changes(self):
        if self.alters:
            self.common.pair_anew()
        return self.common.changes()
