# SPDX-License-Identifier: GPL-2.0
"""A kernel that refuses one of the programs (refuse.c): what goes without it goes on, and it is said what does not."""
import json
import platform

import pytest

from lib.held import Held
from lib.weir import OTHER_PROGRAMS

WHY = "Permission denied: R1 has been made up (WEIR_DEBUG=1 weir agent shows all)"
HINT = f"this kernel ({platform.release()}) refuses the program "


@pytest.fixture
def refusing(world):
    """Has the kernel refuse a program from now on, to an agent that is started."""
    return lambda program: world.weir.preload("refuse.c", WEIR_TEST_REFUSE=program)


def test_without_hold(world, refusing):
    """What can be read is limited as ever."""
    refusing("weir_hold")
    site = world.site()
    site.attach("--hold", "drop")
    site.limit("user", burst=2)
    assert site.client().drive(3) == [200, 200, 429]
    hold = site.status()["hold"]
    assert (hold["on"], hold["why"]) == (False, HINT + "weir_hold: " + WHY)
    assert "web: TLS and other unreadable traffic is not limited: this kernel" in site.weir("status")
    assert f"warning: TLS and other unreadable traffic is not limited: {HINT}weir_hold: {WHY}\n" in site.weir.log()


@pytest.mark.parametrize("program", ["weir_hold", "weir_sockops"])
def test_probe_without_what_is_at_the_sockets(world, refusing, program):
    """As the agent does: it goes on without, and says so."""
    refusing(program)
    facts = {fact["probe"]: fact for fact in json.loads(world.weir.run("probe", "--json").stdout)["facts"]}
    assert facts["programs"]["result"] == "yes", facts["programs"]
    hold = facts["hold_program"]
    assert (hold["result"], hold["why"]) == ("no", f"{HINT}{program}: {WHY}")


@pytest.mark.parametrize("program", ["weir_ingress", "weir_egress", "weir_override_end"])
def test_without_what_is_needed(world, refusing, program):
    refusing(program)
    world.weir.start()
    line = world.weir.refused("attach", "web", "--port", 8080)
    assert line == f"weir: {HINT}{program}: {WHY}"
    assert world.weir.servers() == []
    assert not any(world.pins.glob("net-*/*"))


def test_next_agent_without_hold(world, refusing):
    """
    What held before is taken off, as an agent of another build says, which has to load its own; and put back by one whose
    kernel takes it.
    """
    held = Held(world, world.loopback())
    held.attach()
    assert any(world.pins.glob("net-*/link-cgroup-*"))
    world.weir.stop()
    refusing("weir_hold")
    world.weir.binary = OTHER_PROGRAMS
    world.weir.start()
    assert world.weir.server("web")["hold"]["on"] is False
    assert not any(world.pins.glob("net-*/link-cgroup-*"))
    world.weir.stop()
    world.weir.preloaded = {}
    world.weir.start()
    assert world.weir.server("web")["hold"]["on"] is True
    assert any(world.pins.glob("net-*/link-cgroup-*"))
