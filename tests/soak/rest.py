# SPDX-License-Identifier: GPL-2.0
"""What must be so when nobody asks for anything any more: nothing is taken, the sums are right, nothing has grown."""
import asyncio
import collections
import json
import time

from agent_size import agent_size
from lib.process import run
from upsets import questions

SEATS_S = 90       # a client's RST leaves its seats taken for ten seconds; the agent's sweep comes every ten
CONNECTIONS_S = 240  # those that were translated stay for a minute; those whose socket is gone, for two
SETTLE_S = 30
UNFOLLOWED = ("bad_response", "mid_stream", "gap", "unseen", "contradicted", "bucket_map_full", "in_flight_map_full")
LEAK_KIB = 4096
LEAK_SHARE = 0.25


async def until(condition, patience_s):
    """True when it came true in time."""
    end = time.monotonic() + patience_s
    while not await condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.5)
    return True


async def metrics(site):
    return await asyncio.to_thread(site.weir.metrics)


def map_entries(site, name):
    entries = []
    for pin in site.weir.pins.glob(f"net-*/{name}"):
        entries += json.loads(run("bpftool", "map", "dump", "pinned", pin, "--json"))
    return entries


async def check_settled(site):
    """Every request has one fate, on which client and server agree."""
    async def settled():
        return not site.ledger.unsettled()

    if not await until(settled, SETTLE_S):
        some = ", ".join(f"{request} ({request.fate or 'not answered'}, {'begun' if request.began else 'not begun'})"
                         for request in site.ledger.unsettled()[:5])
        site.violate(f"{len(site.ledger.unsettled())} requests have no end: {some}")


async def check_seats(site):
    """Nothing is in flight."""
    taken = {}

    async def free():
        nonlocal taken
        taken = {key: n for key, n in (await metrics(site)).get("weir_limit_in_flight", {}).items() if n}
        return not taken

    if not await until(free, SEATS_S):
        site.violate(f"seats are taken, and nothing is in flight: {taken}")


async def check_connections(site):
    """Nothing is left of connections that are over."""
    async def gone():
        return not sum((await metrics(site))["weir_connection_table_entries"].values())

    if not await until(gone, CONNECTIONS_S):
        site.violate(f"connections are followed that are over: {map_entries(site, 'conns')[:3]}")


async def check_sums(site):
    """What weir counted is what the server served and what clients got."""
    requests = (await metrics(site))["weir_requests_total"]
    for server in site.servers.values():
        if server.tls or server.comes_and_goes:
            continue
        said = collections.Counter({what: n for (what, name), n in requests.items() if name == server.name})
        fates = {fate: site.ledger.fates[server.name, fate] for fate in ("served", "shed", "rejected", "left")}
        lines = site.ledger.lines[server.name]
        begun = site.ledger.begun[server.name] - lines
        for what, counted, seen in (("passed", said["passed"] + said["exempt"], begun), ("shed", said["shed"], fates["shed"]),
                                    ("rejected", said["rejected"], fates["rejected"])):
            # Of a request that its client has left weir may have taken notice, and nobody else.
            if not seen <= counted <= seen + fates["left"]:
                site.violate(f"{server}: weir counted {counted:.0f} {what}, seen were {seen}; {fates}, of the server {said}")


async def check_followed(site):
    """No connection was lost sight of: on such a one requests are not limited, but packets are."""
    unread = (await metrics(site))["weir_unread_total"]
    lost = {(server, reason): n for (reason, server), n in unread.items()
            if n and reason in UNFOLLOWED and not site.servers[server].comes_and_goes}
    if lost:
        site.violate(f"connections were lost sight of: {lost}")


def check_growth(site, first, last, connections_gone):
    """first, last: agent_size() of a site at rest, early and late. Connections that are still kept take room in a map."""
    for what in ("fds", "maps", "pins"):
        if getattr(last, what) > getattr(first, what):
            site.violate(f"the agent of {site.name} had {first} at rest, and has {last}: {what} have grown")
    for what, slack in (("rss_kib", LEAK_KIB), ("map_bytes", LEAK_KIB << 10))[:1 + connections_gone]:
        if getattr(last, what) > getattr(first, what) * (1 + LEAK_SHARE) + slack:
            site.violate(f"the agent of {site.name} had {first} at rest, and has {last}: {what} has grown")


async def look(site):
    """What is loaded when it is asked for the first time is there, whatever has happened before."""
    await questions.ask(site, next(iter(site.servers)))
    return await asyncio.to_thread(agent_size, site.weir)
