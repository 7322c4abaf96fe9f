# SPDX-License-Identifier: GPL-2.0
"""Limits with rules come and go, while others are in force."""
import asyncio

WEIGHT = 3
RULES = (("--key", "user", "--verb", "list"), ("--key", "namespace,user", "--resource", "secrets"),
         ("--key", "source", "--path", "/heavy/*"), ("--key", "user", "--for-user", "bob", "--penalty", "exponential:1s..4s"),
         ("--key", "namespace", "--for-namespace", "ns1", "--for-namespace", "ns3"))


async def upset(site, chance):
    names = []
    for rules in chance.sample(RULES, chance.randint(1, len(RULES))):
        names.append(f"rule-{chance.randrange(10 ** 6)}")
        dry = ["--dry-run"] * chance.randint(0, 1)
        await site.command("limit", "set", names[-1], *rules, *dry, "--qps", 50, "--burst", 50, "--server", "web")
    await asyncio.sleep(chance.random() * 2)
    for name in names:
        await site.command("limit", "delete", name, "--server", "web")
