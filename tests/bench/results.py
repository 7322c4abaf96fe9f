# SPDX-License-Identifier: GPL-2.0
"""What a run has measured, kept as it comes: a part that fails takes nothing with it, neither of others nor of its own."""
import contextlib
import signal
import time
import traceback
from pathlib import Path

from targets import TARGETS, targets_table

REASON_LENGTH = 200


class TooLong(Exception):
    pass


@contextlib.contextmanager
def bounded(seconds):
    """Whatever takes longer fails."""
    def give_up(*_):
        raise TooLong(f"it took longer than {seconds} s")
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def reason(error):
    """In one line of a table."""
    text = " ".join(f"{type(error).__name__}: {error}".replace("|", "/").split())
    return text if len(text) <= REASON_LENGTH else text[:REASON_LENGTH] + "..."


class Results:
    """Files have all that was measured so far, at each moment."""

    def __init__(self, directory, parts, introduction, further):
        """`further`: a file, if any, where all of it goes, too."""
        self.directory = directory
        self.files = [directory / "results.md", *([Path(further)] if further else [])]
        self.begin = time.monotonic()
        self.parts = parts
        self.introduction = introduction
        self.texts = {}  # of each part that has begun
        self.values = {}  # of targets: numbers, or why there is none
        self.failures = {}
        directory.mkdir(parents=True, exist_ok=True)

    def take(self, part, measured, bound_s):
        """What a part yields, piece by piece: a text, and {target: value}. Returns whether it came to its end."""
        self.texts[part] = []
        try:
            with bounded(bound_s):
                for text, values in measured():
                    self.keep(part, text, values)
        except Exception as error:  # whatever it is: the others go on
            traceback.print_exc()
            self.failures[part] = reason(error)
            self.keep(part, f"**The part `{part}` has not come to its end**: {self.failures[part]}\n", {})

    def keep(self, part, text, values):
        if unknown := values.keys() - TARGETS.keys():
            raise KeyError(f"no such target: {unknown}")
        self.values.update(values)
        self.texts[part].append(text)
        (self.directory / f"{part}.md").write_text("\n".join(self.texts[part]))
        for file in self.files:
            file.write_text(self.text())
        print(text, flush=True)

    def is_whole(self):
        return self.texts.keys() == set(self.parts) and not self.failures and not any(isinstance(value, str) for value in self.values.values())

    def table(self):
        minutes = round((time.monotonic() - self.begin) / 60)
        return f"""## Against the targets

The run took {"a minute" if minutes == 1 else f"{minutes} minutes"}.

{targets_table(self.parts, self.values, self.failures)}"""

    def text(self):
        return "\n".join([self.introduction, self.table(), *(text for texts in self.texts.values() for text in texts)])
