# SPDX-License-Identifier: GPL-2.0
"""Small tables, which are always full: what finds no room waits, or shares a bucket."""
from limits import RateLimit
from servers import Server, Site


class Tight(Site):
    agent_options = ("--connections", "128")
    visitors = 6
    calm_s = 10

    def make_servers(self):
        crowd = Server("crowd", 8080, ("--keys", "256", "--new-subjects", "20:50", "--when-full", "closed"))
        crowd.limits = [RateLimit("total", lambda r: "total"), RateLimit("everybody", lambda r: "everybody")]
        return [crowd]

    async def set_up(self):
        crowd = self.servers["crowd"]
        await self.attach(crowd)
        await self.set_rate(crowd, "total", 200, 50)
        # New buckets are 20/s at most, and 50 at once; they, those that are there, and the one that others share, are full.
        qps, burst, keys, new_qps, new_burst = 0.01, 3, 256, 20, 50
        with crowd.limit("everybody").changing((new_qps * burst + (keys + 1) * qps, (new_burst + keys + 1) * burst)):
            await self.command("limit", "set", "user", "--qps", qps, "--burst", burst, "--server", "crowd")


SITE = Tight
