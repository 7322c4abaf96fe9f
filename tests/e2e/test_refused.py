# SPDX-License-Identifier: GPL-2.0
"""A kernel that refuses one of the programs (refuse.c): what goes without it goes on, and it is said what does not."""
import platform
import subprocess
from pathlib import Path

import pytest

from lib.held import Held
from lib.weir import OTHER_PROGRAMS

SOURCE = Path(__file__).with_name("refuse.c")
WHY = "Permission denied: R1 has been made up (WEIR_DEBUG=1 weir agent shows all)"
HINT = f"this kernel ({platform.release()}) refuses the program "


@pytest.fixture
def refusing(world, monkeypatch, tmp_path):
    """Has the kernel refuse a program from now on, to an agent that is started."""
    library = tmp_path / "refuse.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library, SOURCE, "-ldl"], check=True)
    environment = world.weir.environment

    def refuse(program):
        monkeypatch.setattr(world.weir, "environment", lambda: {**environment(), "LD_PRELOAD": str(library),
                                                                 "WEIR_TEST_REFUSE": program})
    return refuse


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
    environment = world.weir.environment
    world.weir.stop()
    refusing("weir_hold")
    world.weir.binary = OTHER_PROGRAMS
    world.weir.start()
    assert world.weir.server("web")["hold"]["on"] is False
    assert not any(world.pins.glob("net-*/link-cgroup-*"))
    world.weir.stop()
    world.weir.environment = environment
    world.weir.start()
    assert world.weir.server("web")["hold"]["on"] is True
    assert any(world.pins.glob("net-*/link-cgroup-*"))
