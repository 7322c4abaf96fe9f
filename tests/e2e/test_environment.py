# SPDX-License-Identifier: GPL-2.0
"""The tests' agents and commands have none of the WEIR_ variables of whoever runs the tests."""
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = "import os, lib.weir; print(sorted(name for name in os.environ if name.startswith('WEIR_')))"


def test_variables_of_others_are_cleared():
    others = {"WEIR_STATE_DIR": "/other", "WEIR_PERSIST_DIR": "/other", "WEIR_DEBUG": "1", "WEIR_LONG": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, **others}, cwd=Path(__file__).parent,
                          capture_output=True, text=True, check=True)
    assert done.stdout == "['WEIR_LONG']\n"
