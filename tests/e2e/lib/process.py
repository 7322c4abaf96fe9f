# SPDX-License-Identifier: GPL-2.0
"""Commands that must succeed, processes that must end, and conditions that come true in their own time."""
import contextlib
import os
import subprocess
import time

# What weir itself reads from its environment (WEIR_STATE_DIR, WEIR_PERSIST_DIR, ...) is each test's to say, not that of whoever runs
# the tests. Every module of the library imports this one.
OF_TESTS = ("WEIR_LONG", "WEIR_TEST_")
for name in [name for name in os.environ if name.startswith("WEIR_") and not name.startswith(OF_TESTS)]:
    del os.environ[name]

# Of a machine that is busy enough an agent that loads its programs gets too little in a minute. It is waited for this long only where a test
# fails.
PATIENCE_S = int(os.environ.get("PATIENCE_S", 180))


def run(*words, timeout=PATIENCE_S, **options):
    """The output of a command that must succeed."""
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, **options)
    assert done.returncode == 0, f"{' '.join(done.args)}: {done.stderr.strip() or done.stdout.strip()}"
    return done.stdout


def eventually(condition, what, patience_s=PATIENCE_S):
    """Waits until the condition holds, and returns what it said. It is slow only where it fails."""
    end = time.monotonic() + patience_s
    pause_s = 0.01
    while not (value := condition()):
        assert time.monotonic() < end, f"never came true: {what}"
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.1)  # what asks takes CPU from what it waits for
    return value


def end(process):
    """Ends a process that we started; returns its exit status."""
    if process.poll() is None:
        process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(PATIENCE_S / 2)
    process.kill()
    process.wait()
    raise AssertionError(f"{process.args} did not end when told to")
