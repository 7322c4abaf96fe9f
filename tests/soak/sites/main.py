# SPDX-License-Identifier: GPL-2.0
"""Many kinds of clients, and everything that can happen to an agent."""
from limits import InFlightLimit, RateLimit
from places import LINE_SOURCES
from servers import Server, Site


def whose(request):
    return request.user or request.source


def below(path):
    """Requests below this path, by user."""
    return lambda request: request.user if request.path.startswith(path) else None


class Main(Site):
    def make_servers(self):
        web = Server("web", 8080, ("--new-subjects", "0"))
        web.limits = [RateLimit("user", whose), RateLimit("namespace", lambda r: r.namespace),
                      RateLimit("heavy", below("/heavy/")), InFlightLimit("slow", below("/slow/")),
                      InFlightLimit("slow-all", lambda r: "all" if r.path.startswith("/slow/") else None)]
        churn = Server("churn", 8081, comes_and_goes=True)
        churn.limits = [RateLimit("user", whose), RateLimit("total", lambda r: "total")]
        exact = Server("exact", 8082)
        exact.limits = [RateLimit("user", whose)]
        tls = Server("tls", 8443, tls=True)
        tls.limits = [RateLimit("user", whose)]
        return [web, churn, exact, tls]

    async def set_up(self):
        for server in self.servers.values():
            await self.attach(server)
        web = self.servers["web"]
        await self.set_rate(web, "user", 20, 10)
        await self.set_rate(web, "user", 100, 30, subject="alice")
        await self.set_rate(web, "user", 2, 3, subject="bob")
        # Enough for those that wait for each other: what is held is brought again ever less often.
        for source in LINE_SOURCES:
            await self.set_rate(web, "user", 60, 20, subject=source)
        await self.set_rate(web, "namespace", 60, 30)
        await self.set_rate(web, "heavy", 3, 5, "--key", "user", "--path", "/heavy/*")
        await self.set_in_flight(web, "slow", 3, "--key", "user", "--path", "/slow/*")
        await self.set_in_flight(web, "slow-all", 16, "--key", "total", "--path", "/slow/*")
        await self.command("limit", "set", "everything", "--key", "total", "--in-flight", 100000, "--server", "web")
        await self.set_churn()
        await self.set_rate(self.servers["exact"], "user", 30, 20)
        await self.set_rate(self.servers["tls"], "user", 30, 10)

    async def set_churn(self):
        await self.set_rate(self.servers["churn"], "user", 10, 10)
        await self.set_rate(self.servers["churn"], "total", 100, 50)


SITE = Main
