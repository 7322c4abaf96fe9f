# SPDX-License-Identifier: GPL-2.0
"""monitoring/: the rules are rules, and pass their tests; the dashboard asks for families that there are."""
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

MONITORING = Path(__file__).resolve().parents[2] / "monitoring"
REFERENCE = MONITORING.parent / "docs/reference/metrics.md"


def needed(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")


def test_rules():
    needed("promtool")
    for words in (["check", "rules", "alerts.yaml", "rules.yaml"], ["test", "rules", "alerts-test.yaml"]):
        done = subprocess.run(["promtool", *words], cwd=MONITORING, text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_asks_for_what_there_is():
    there = set(re.findall(r"^\| `(\w+)", REFERENCE.read_text(), re.MULTILINE))
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    asked = {name for panel in dashboard["panels"] for target in panel["targets"]
             for name in re.findall(r"(?:weir|process)_\w+", target["expr"])}
    assert asked and asked <= there
