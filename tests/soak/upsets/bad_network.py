# SPDX-License-Identifier: GPL-2.0
"""Delay, loss, duplicates and reordering, where the kernel has netem."""
import asyncio
import subprocess

WEIGHT = 2
WORDS = ("delay 1ms 1ms loss 2%", "delay 2ms 2ms duplicate 5%", "delay 3ms 1ms reorder 30%", "delay 20ms 5ms",
         "delay 1ms 1ms loss 1% duplicate 2% reorder 20% corrupt 0.5%")


def netem(namespace, *words):
    return subprocess.run(namespace.command("tc", "qdisc", *words), stderr=subprocess.DEVNULL, check=False).returncode == 0


async def upset(site, chance):
    ends = (site.places.client_ns, site.places.server_ns)
    words = chance.choice(WORDS)
    if not all([netem(namespace, "replace", "dev", "eth0", "root", "netem", *words.split(" ")) for namespace in ends]):
        return
    site.note(f"netem {words}")
    await asyncio.sleep(chance.random() * 4)
    for namespace in ends:
        netem(namespace, "delete", "dev", "eth0", "root")
    site.note("netem ends")
