# SPDX-License-Identifier: GPL-2.0
"""The audit log, and what it is compared with."""
import collections
import json

# Of each request that both know by its target (weir) or URI (the server): what both say of it.
FIELDS = ("verb", "user", "namespace", "group", "resource", "subresource", "name")
ITSELF = "system:apiserver"
SHOWN = 400


class Log:
    """What is written to the log from now on. A watch has an event when it begins and one when it ends: it is one."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as log:
            self.offset = log.seek(0, 2)

    def events(self):
        with open(self.path, "rb") as log:
            log.seek(self.offset)
            events = [json.loads(line) for line in log.read().splitlines(keepends=True) if line.endswith(b"\n")]
        first = {}
        for event in events:
            if event["user"].get("username") != ITSELF:
                first.setdefault(event["auditID"], event)
        return list(first.values())


def of_server(event):
    about = event.get("objectRef", {})
    verb = event["verb"]
    # The server has the name of what is made from the body; the request does not say it.
    name = None if verb == "create" and not named(event) else about.get("name")
    namespace = about.get("namespace")
    return (verb, user_of_server(event), namespace, about.get("apiGroup"), about.get("resource"),
            about.get("subresource"), name)


def user_of_server(event):
    """None: it knows nobody, whether it then lets anybody in or not."""
    user = event["user"].get("username")
    return None if user == "system:anonymous" else user


def named(event):
    """Is the name of what is made in the path, as in .../pods/NAME/binding?"""
    about = event.get("objectRef", {})
    return f"/{about.get('resource')}/{about.get('name')}" in event["requestURI"]


def of_weir(request):
    user = request["user"] if request["identified_by"] == "request_header" else None
    return (request["verb"], user, *(request[field] for field in FIELDS[2:]))


def compare(requests, events):
    """A line for each request that only one of them has, or of which they say different things."""
    weir, server = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for request in requests:
        weir[beginning(request["target"])][of_weir(request)] += 1
    for event in events:
        server[beginning(event["requestURI"])][of_server(event)] += 1
    differences = []
    for target in sorted(weir.keys() | server.keys(), key=str):
        differences += [f"{target}\n  weir:   {describe(weir[target] - server[target])}\n"
                        f"  server: {describe(server[target] - weir[target])}"
                        ] if weir[target] != server[target] else []
    return differences


def beginning(target):
    """As much of it as the trace shows of the longest ones."""
    return target and target[:SHOWN]


def describe(counter):
    return "; ".join(f"{n} x " + " ".join(f"{field}={value}" for field, value in zip(FIELDS, said) if value)
                     for said, n in counter.items()) or "nothing"


def report(requests, unread):
    """What the session was made of."""
    for field in "verb", "user", "subresource":
        counts = collections.Counter(request[field] for request in requests if request[field])
        print(f"{field}: " + ", ".join(f"{value} {n}" for value, n in counts.most_common()))
    if unread:
        print("unread: " + ", ".join(f"{reason} {n}" for reason, n in unread.items()))
