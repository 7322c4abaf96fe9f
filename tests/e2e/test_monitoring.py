# SPDX-License-Identifier: GPL-2.0
"""monitoring/: each query of the dashboard returns data from a Prometheus that scrapes an agent; the rules pass their tests."""
import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from lib.process import end, eventually

MONITORING = Path(__file__).resolve().parents[2] / "monitoring"
REFERENCE = MONITORING.parent / "docs/reference/metrics.md"
RANGE_S = 15  # what the dashboard's rates look back on here


def needed(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Prometheus:
    def __init__(self, directory, agent_port):
        self.port = free_port()
        config = directory / "prometheus.yaml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(MONITORING / "rules.yaml"), str(MONITORING / "alerts.yaml")],
            "scrape_configs": [{"job_name": "weir", "static_configs": [{"targets": [f"127.0.0.1:{agent_port}"]}]}]}))
        with open(directory / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'prometheus'}",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def query(self, expression):
        """Samples; none while it does not answer yet."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            assert error.code == 503, f"{expression}: {error.read().decode()}"  # it is starting
            return []
        except OSError:
            return []


def queries():
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", f"{RANGE_S}s")
            yield panel["title"], expression.replace("$instance", ".*").replace("$server", ".*")


def test_every_query_of_the_dashboard(world, tmp_path):
    needed("prometheus")
    port = free_port()
    site = world.site()
    world.weir.stop()
    world.weir.preload("hasty.c")  # users are counted when a minute has ended
    world.weir.start(f"127.0.0.1:{port}", "--metrics-top", 10)
    site.attach()
    site.limit("user", burst=5)
    site.weir("limit", "set", "watched", "--key", "user", "--qps", 0, "--burst", 2, "--dry-run")
    site.weir("limit", "set", "slow", "--key", "user", "--in-flight", 9)
    prometheus = Prometheus(tmp_path, port)
    world.at_end(lambda: end(prometheus.process))
    eventually(lambda: prometheus.query("weir_requests_total"), "the agent was scraped")
    alice = site.client("alice")
    assert alice.drive(9) == [200] * 5 + [429] * 4
    (limit,) = prometheus.query('weir_limit_burst{limit="user"}')
    assert (limit["metric"]["server"], limit["value"][1]) == ("web", "5")
    for title, expression in queries():
        eventually(lambda: prometheus.query(expression), f"{title}: {expression}")
    assert [sample["value"][1] for sample in prometheus.query('weir_top_refused_total{user="alice"}')] == ["4"]
    assert prometheus.query("weir_answer_duration_seconds_count")[0]["value"][1] == "5"
    refused = 'weir_limit_requests_total{limit="user", outcome="refused"}'
    eventually(lambda: [sample["value"][1] for sample in prometheus.query(refused)] == ["4"], refused)
    watched = 'weir_limit_requests_total{limit="watched", outcome="dry_run_refused"}'
    assert int(prometheus.query(watched)[0]["value"][1]) >= 3
    eventually(lambda: prometheus.query("weir:requests:rate5m"), "rules are evaluated")


def test_rules():
    needed("promtool")
    for words in (["check", "rules", "alerts.yaml", "rules.yaml"], ["test", "rules", "alerts-test.yaml"]):
        done = subprocess.run(["promtool", *words], cwd=MONITORING, text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_asked_for_exists():
    there = set(re.findall(r"^\| `(\w+)", REFERENCE.read_text(), re.MULTILINE))
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    for name in "rules.yaml", "alerts.yaml":
        expressions += re.findall(r"^ +expr: (.*)", (MONITORING / name).read_text(), re.MULTILINE)
    asked = {name.removesuffix("_bucket") for expression in expressions
             for name in re.findall(r"\b(?:weir|process)_\w+", expression)}
    assert asked and asked <= there
