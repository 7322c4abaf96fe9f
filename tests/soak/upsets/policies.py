# SPDX-License-Identifier: GPL-2.0
"""A server's limits come from a policy file: applied, applied again in another form, and deleted."""
import asyncio

WEIGHT = 3

THROTTLE = """\
apiVersion: weir/v1
kind: Throttle
metadata: {{name: churn}}
spec:
  limits:
  - {{name: filed, key: user, qps: {qps}, burst: {burst}, rules: [{{verbs: [get, list]}}]}}
  - {{name: namespace, qps: {qps}, burst: {burst}, overrides: [{{subject: ns1, qps: 1, burst: 2}}]}}
"""


async def upset(site, chance):
    path = site.directory / "policy.yaml"
    for _ in range(chance.randint(1, 3)):
        path.write_text(THROTTLE.format(qps=chance.randint(1, 50), burst=chance.randint(1, 50)))
        await site.command("apply", "-f", path, *["--prune"] * chance.randint(0, 1))
        await asyncio.sleep(chance.random())
    exported = site.directory / "exported.yaml"
    exported.write_text(await site.command("export"))
    await site.command("diff", "-f", exported)  # what is in force changes nothing
    await site.command("delete", "-f", path)
