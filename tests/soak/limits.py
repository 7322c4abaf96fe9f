# SPDX-License-Identifier: GPL-2.0
"""What limits allow, held against what the server says that it served.

Only what is certain counts. A request is decided after it was sent and before the server began it; so, whatever was
delayed on its way, those that were sent after a moment A and begun before a moment B are at most burst + qps * (B - A).
While a command changes a limit nothing is known of it, and requests that were sent before the change was done are
not counted afterwards.
"""
import collections
import contextlib
import time

ROUNDING = 1e-6
REMEMBERED = 50


class Epoch:
    """A stretch of time in which a limit does not change."""

    def __init__(self, amount):
        self.start_ns = time.monotonic_ns()
        self.amount = amount


class Limit:
    """subject_of: whose a request is under this limit, None where it is not under it."""

    def __init__(self, name, subject_of):
        self.name = name
        self.subject_of = subject_of
        self.epochs = {None: None}  # of the default (None), and of subjects; None: nothing is known
        self.followers = set()      # subjects whose own limit was deleted: under the default again
        self.fullest = 0.0          # the most that a subject had, of what it may have

    def unknown(self):
        """From now on nothing is known of it: the server is paused, or detached."""
        self.epochs = {subject: None for subject in self.epochs}

    @contextlib.contextmanager
    def changing(self, amount, subject=None):
        """Around a command that sets the default, or a subject's own. amount None: there is no limit."""
        subjects = {subject} if subject else {None, *self.followers}
        self.epochs.update(dict.fromkeys(subjects))
        yield
        self.followers.discard(subject)
        self.epochs.update(dict.fromkeys(subjects, Epoch(amount) if amount is not None else None))

    @contextlib.contextmanager
    def deleting(self, subject):
        """Around a command that deletes a subject's own."""
        self.epochs[subject] = None
        yield
        default = self.epochs[None]
        self.epochs[subject] = Epoch(default.amount) if default else None
        self.followers.add(subject)

    def epoch(self, subject, request):
        """In which a request was decided, if that is certain."""
        epoch = self.epochs[subject] if subject in self.epochs else self.epochs[None]
        return epoch if epoch and request.since_ns >= epoch.start_ns else None

    def began(self, request, at_ns):
        """What is wrong with the server's having begun this request, or None."""
        subject = self.subject_of(request)
        epoch = self.epoch(subject, request) if subject is not None else None
        return self.check(subject, epoch, request, at_ns) if epoch else None

    def ended(self, request):
        """The request has been answered, or is none any more."""


class Window:
    __slots__ = ("epoch", "since_ns", "n", "last")

    def __init__(self, epoch, since_ns):
        self.epoch, self.since_ns, self.n = epoch, since_ns, 0
        self.last = collections.deque(maxlen=REMEMBERED)  # (when it was begun, when it was sent, which)

    def __str__(self):
        return "\n".join(f"  begun {(at - self.since_ns) / 1e9:.6f} sent {(sent - self.since_ns) / 1e9:.6f} request {number}"
                         for at, sent, number in self.last)


class RateLimit(Limit):
    """amount: (qps, burst)"""

    def __init__(self, name, subject_of):
        super().__init__(name, subject_of)
        self.windows = {}

    def check(self, subject, epoch, request, at_ns):
        """Of all stretches that end now, the fullest: it begins anew where nothing before makes it fuller."""
        qps, burst = epoch.amount
        window = self.windows.get(subject)
        if window is None or window.epoch is not epoch:
            window = self.windows[subject] = Window(epoch, request.since_ns)
        if request.since_ns < window.since_ns:
            return None
        window.n += 1
        window.last.append((at_ns, request.since_ns, request.id))
        used = window.n - qps * (at_ns - window.since_ns) / 1e9
        alone = 1 - qps * (at_ns - request.since_ns) / 1e9
        if alone >= used:
            window.since_ns, window.n, used = request.since_ns, 1, alone
        self.fullest = max(self.fullest, used / burst) if burst else self.fullest
        if used <= burst + ROUNDING:
            return None
        return (f"limit {self.name}: {subject} had {window.n} requests in {(at_ns - window.since_ns) / 1e9:.6f} s at "
                f"{qps}/s with a burst of {burst}:\n{window}\n")


class InFlightLimit(Limit):
    """amount: requests at one time"""

    def __init__(self, name, subject_of):
        super().__init__(name, subject_of)
        self.taken = {}  # (subject, epoch): requests

    def check(self, subject, epoch, request, _at_ns):
        if request.over:
            return None
        taken = self.taken.setdefault((subject, epoch), set())
        taken.add(request)
        request.seats.append((self, subject, epoch))
        self.fullest = max(self.fullest, len(taken) / epoch.amount)
        if len(taken) <= epoch.amount:
            return None
        return f"limit {self.name}: {subject} has {len(taken)} requests in flight, of {epoch.amount}"

    def release(self, subject, epoch, request):
        taken = self.taken[subject, epoch]
        taken.discard(request)
        if not taken:
            del self.taken[subject, epoch]
