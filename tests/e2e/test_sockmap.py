# SPDX-License-Identifier: GPL-2.0
"""Programs on maps of sockets may hand a request to the server's socket without a packet, past all that weir reads."""
import os

import pytest

from lib.bpf import SK_MSG, passing_program

pytestmark = [pytest.mark.together, pytest.mark.skipif("VM_PARTS" not in os.environ, reason=(
    "other tests would be warned of the program, too: it runs in guests (docs/internals/kernels.md)"))]


def test_such_a_program_is_warned_of(world):
    """While the kernel has one, whoever attaches a server, and whoever looks."""
    site = world.site()
    site.attach()
    assert "local socket" not in site.weir("status")
    program = passing_program("redirects", SK_MSG)
    try:
        done = site.weir.run("attach", "second", "--port", world.port(), "--netns", site.place.server_ns.path)
        (warning,) = [line for line in done.stderr.splitlines() if "local socket" in line]
        assert warning.startswith("weir: warning: what BPF programs hand from one local socket to another is in no packet, and is limited "
                                  "only inside a server: redirects (id ")
        site.weir("detach", "second")
        text = warning.removeprefix("weir: ")
        assert f"all servers: {text}\n" in site.weir("status") and site.weir.json("status")["agent"]["sockmap"] in text
    finally:
        os.close(program)
    assert site.weir.json("status")["agent"]["sockmap"] is None
