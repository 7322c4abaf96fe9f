# SPDX-License-Identifier: GPL-2.0
"""What the kernel has complained about since we began."""
import os
import re

WARNING = re.compile(r"BUG|WARNING|Oops|Call Trace|rcu_.*stall|refcount_t|soft lockup|hung_task|general protection")
LINES_AFTER = 30
RECORD_BYTES = 1 << 13


class KernelLog:
    def __init__(self):
        self.unreadable = None
        try:
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.fd, 0, os.SEEK_END)
        except OSError as error:
            self.fd = None
            self.unreadable = error.strerror

    def lines(self):
        while self.fd is not None:
            try:
                record = os.read(self.fd, RECORD_BYTES).decode(errors="replace")
            except BlockingIOError:
                return
            except BrokenPipeError:  # older ones were overwritten
                continue
            yield record.partition(";")[2].partition("\n")[0]

    def warnings(self):
        """The first complaint that has come since the last call, with what stands behind it."""
        lines = list(self.lines())
        for i, line in enumerate(lines):
            if WARNING.search(line):
                return lines[i:i + LINES_AFTER]
        return []
