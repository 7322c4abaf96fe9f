# SPDX-License-Identifier: GPL-2.0
"""Programs of somebody else's, by the bpf() system call alone."""
import ctypes
import os
import struct

from lib.netns import SYS_BPF, TCX_INGRESS, libc
from lib.process import run

PROG_LOAD, OBJ_PIN, LINK_CREATE = 5, 6, 28
SCHED_CLS, XDP, SK_MSG = 3, 6, 16
TCX_NEXT, XDP_PASS, SK_PASS = -1, 2, 1
VERDICTS = {SCHED_CLS: TCX_NEXT, XDP: XDP_PASS, SK_MSG: SK_PASS}
ATTACH_XDP = 37


def bpf(command, attr):
    """attr: the bytes of union bpf_attr. Returns what the kernel did: a descriptor, or 0."""
    buffer = ctypes.create_string_buffer(attr, len(attr))
    result = libc.syscall(SYS_BPF, command, buffer, len(attr))
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result


def passing_program(name, kind=SCHED_CLS):
    """A program for tc that leaves every packet to the next one; or one for XDP, or for a map of sockets, that lets it pass."""
    code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, VERDICTS[kind], 0x95, 0, 0, 0))  # r0 = verdict; exit
    license_text = ctypes.create_string_buffer(b"GPL")
    return bpf(PROG_LOAD, struct.pack("<IIQQIIQII16s", kind, 2, ctypes.addressof(code),
                                      ctypes.addressof(license_text), 0, 0, 0, 0, 0, name.encode()))


def tcx_link(program, ifindex):
    """The link, as long as the descriptor is open. In this thread's namespace. None: this kernel has no tcx."""
    try:
        return bpf(LINK_CREATE, struct.pack("<IIIIIIQ", program, ifindex, TCX_INGRESS, 0, 0, 0, 0))
    except AssertionError:
        return None


def xdp_link(program, ifindex):
    """The link, in generic mode, as long as the descriptor is open. In this thread's namespace."""
    return bpf(LINK_CREATE, struct.pack("<IIIIIIQ", program, ifindex, ATTACH_XDP, 2, 0, 0, 0))


def clsact_filter(namespace, device, program, pin, priority):
    """A filter on the device's ingress; the qdisc is there afterwards."""
    path = ctypes.create_string_buffer(str(pin).encode())
    bpf(OBJ_PIN, struct.pack("<QII", ctypes.addressof(path), program, 0))
    try:
        namespace.run("tc", "qdisc", "add", "dev", device, "clsact")
        namespace.run("tc", "filter", "add", "dev", device, "ingress", "prio", priority, "bpf", "direct-action",
                      "object-pinned", pin)
    finally:
        run("rm", pin)
