# SPDX-License-Identifier: GPL-2.0
"""The agent is killed in the middle of a command: it was carried out as a whole, or not at all."""
import asyncio

WEIGHT = 1
AMOUNTS = ((100, 30), (40, 60))


async def upset(site, chance):
    web = site.servers["web"]
    now, other = chance.sample(AMOUNTS, 2)
    await site.set_rate(web, "user", *now, subject="alice")
    with web.limit("user").changing(None, "alice"):
        site.note("a command, in which the agent is killed")
        words = ("limit", "set", "user", "alice", "--qps", other[0], "--burst", other[1], "--server", "web")
        command = asyncio.create_task(asyncio.to_thread(site.weir.run, *words))
        await asyncio.sleep(chance.random() * 0.03)
        site.kill_agent()
        done = await command
        await site.start_agent()
    limits = await asyncio.to_thread(site.weir.json, "limit", "list")
    found = [(override["qps"], override["burst"]) for limit in limits["limits"] for override in limit.get("overrides", ())
             if (limit["server"], limit["name"], override["subject"]) == ("web", "user", "alice")]
    said = (now, other) if done.returncode else (other,)
    if len(found) != 1 or found[0] not in said:
        site.violate(f"the limit of alice was to become one of {said} when the agent was killed, and is {found}")
    await site.set_rate(web, "user", *AMOUNTS[0], subject="alice")
