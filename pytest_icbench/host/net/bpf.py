# SPDX-License-Identifier: BSD-3-Clause
"""BPF programs of a few instructions, loaded by bpf(2) and attached by netlink. They need no compiler and no library.

A program and its map live as long as a link or a descriptor holds them, so they end with the link's namespace.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.namespaces import check_result
from pytest_icbench.host.net.links import link_index, netlink

#: Number of bpf(2) on x86-64.
_SYS_BPF = 321
_MAP_CREATE, _MAP_UPDATE, _PROG_LOAD = 0, 2, 5
_DEVMAP_HASH = 25
_TYPES = {"classifier": 3, "xdp": 6}
#: A program may be given frames of several buffers, which jumbo frames are.
_XDP_HAS_FRAGS = 1 << 5
_LICENSE = b"BSD"
_LOG_BYTES = 1 << 16
_XDP_FLAGS = {"native": 1 << 2, "skb": 1 << 1}
#: The handle of the filters that see a link's arriving frames (TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)).
_INGRESS = 0xFFFFFFF2
_EVERY_PROTOCOL = 0x0003
_NO_CLASS = 0

#: Offsets in ``struct xdp_md`` and ``struct __sk_buff``.
XDP_INGRESS_IFINDEX = 12
#: Helpers (bpf-helpers(7)).
REDIRECT, REDIRECT_MAP, REDIRECT_PEER = 23, 51, 155

_libc = ctypes.CDLL(None, use_errno=True)


def instruction(opcode: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    """Returns one instruction (``struct bpf_insn``)."""
    return struct.pack("<BBhi", opcode, target | source << 4, offset, value)


def load_word(target: int, source: int, offset: int) -> bytes:
    """Returns ``target = *(u32 *)(source + offset)``."""
    return instruction(0x61, target, source, offset)


def move(target: int, value: int) -> bytes:
    """Returns ``target = value``."""
    return instruction(0xB7, target, value=value)


def load_map(target: int, descriptor: int) -> bytes:
    """Returns ``target = &map``, which takes two instructions."""
    return instruction(0x18, target, 1, value=descriptor) + instruction(0)


def call(helper: int) -> bytes:
    """Returns the call of a helper: arguments are in r1 to r5, the result is in r0."""
    return instruction(0x85, value=helper)


def redirect_by_address(offset: int, first: int, count: int, index: int) -> bytes:
    """Returns a classifier that sends a frame out of the link of its IPv4 address, or else of the first link.

    Args:
        offset: the address's place in the frame.
        first: the first of ``count`` addresses in a row, as a number below 2^31.
        index: the first link's index; further links have the next ones.
    """
    return (
        instruction(0xBF, 6, 1)  # r6 = the frame, as the next one wants it
        + instruction(0x20, value=offset)  # r0 = its word at the offset
        + instruction(0xBF, 1, 0)
        + instruction(0x14, 1, value=first)  # r1 = (u32)(r0 - first)
        + instruction(0xA6, 1, offset=1, value=count)  # if r1 < count, skip the next one
        + instruction(0xB4, 1)
        + instruction(0x07, 1, value=index)
        + move(2, 0)
        + call(REDIRECT)
        + leave()
    )


def leave() -> bytes:
    """Returns the end of a program, whose result is r0."""
    return instruction(0x95)


def _bpf(command: int, attributes: bytes) -> int:
    """Calls bpf(2). Raises OSError."""
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), 128))
    return check_result(int(_libc.syscall(_SYS_BPF, command, buffer, len(buffer))))


def _address(buffer: Any) -> int:
    return ctypes.addressof(buffer)


@contextmanager
def device_map(devices: Mapping[int, int]) -> Iterator[int]:
    """Yields the descriptor of a map from a link's index to the index of the link that gets its frames.

    Raises ProvisionError.
    """
    try:
        descriptor = _bpf(_MAP_CREATE, struct.pack("<IIIII", _DEVMAP_HASH, 4, 4, max(len(devices), 1), 0))
    except OSError as error:
        raise ProvisionError(f"the kernel refused a map of devices ({error.strerror}){_remedy(error)}") from None
    try:
        for source, target in devices.items():
            key, value = (ctypes.create_string_buffer(struct.pack("<I", index), 4) for index in (source, target))
            try:
                _bpf(_MAP_UPDATE, struct.pack("<IxxxxQQQ", descriptor, _address(key), _address(value), 0))
            except OSError as error:
                raise ProvisionError(f"the kernel refused link {target} in a map ({error.strerror})") from None
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def load_program(kind: Literal["classifier", "xdp"], program: bytes, *, name: str) -> Iterator[int]:
    """Yields the descriptor of a program. ``name``: the subject of error messages.

    Raises ProvisionError with the verifier's last line if the kernel refuses it.
    """
    try:
        descriptor = _load(kind, program)
    except OSError as error:
        said = _verifier_says(kind, program)
        raise ProvisionError(
            f"the kernel refused the BPF program {name} ({error.strerror}){_remedy(error)}{said and f': {said}'}"
        ) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _load(kind: str, program: bytes, log: Any = None) -> int:
    code, licence = ctypes.create_string_buffer(program, len(program)), ctypes.create_string_buffer(_LICENSE)
    level, size, place = (0, 0, 0) if log is None else (1, len(log), _address(log))
    flags = _XDP_HAS_FRAGS if kind == "xdp" else 0
    head = struct.pack("<IIQQ", _TYPES[kind], len(program) // 8, _address(code), _address(licence))
    return _bpf(_PROG_LOAD, head + struct.pack("<IIQII", level, size, place, 0, flags))


def _verifier_says(kind: str, program: bytes) -> str:
    """Returns the verifier's last line about a program that it refused, without its statistics."""
    log = ctypes.create_string_buffer(_LOG_BYTES)
    try:
        os.close(_load(kind, program, log))
    except OSError:
        lines = [line.strip() for line in log.value.decode(errors="replace").splitlines()]
        reasons = [line for line in lines if line and not line.startswith(("processed ", "verification time"))]
        return reasons[-1] if reasons else ""
    return ""


def _remedy(error: OSError) -> str:
    return ", run as root" if error.errno in (errno.EPERM, errno.EACCES) and os.geteuid() != 0 else ""


def attach_xdp(name: str, descriptor: int, mode: Literal["native", "skb"], netns: str | None = None) -> None:
    """Attaches a program to a link: in its driver (``native``), or on the kernel's buffers. Raises ProvisionError."""
    with netlink(netns, doing=f"an XDP program on {name} in {mode} mode") as route:
        attributes = [("IFLA_XDP_FD", descriptor), ("IFLA_XDP_FLAGS", _XDP_FLAGS[mode])]
        route.link("set", index=link_index(route, name), xdp={"attrs": attributes})


def attach_classifier(name: str, descriptor: int, netns: str | None = None) -> None:
    """Makes a program decide about a link's arriving frames. The link has the discipline ``clsact``."""
    with netlink(netns, doing=f"a classifier on {name}") as route:
        route.tc(
            "add-filter",
            "bpf",
            link_index(route, name),
            parent=_INGRESS,
            prio=1,
            fd=descriptor,
            name="icbench",
            direct_action=True,
        )


def add_clsact(name: str, netns: str | None = None) -> None:
    """Gives a link the queueing discipline ``clsact``, which has filters. Raises ProvisionError."""
    with netlink(netns, doing=f"the discipline clsact on {name}") as route:
        route.tc("add", "clsact", link_index(route, name))


def redirect_frames(name: str, target: str, netns: str | None = None) -> None:
    """Sends a link's arriving frames out of another link of the namespace, by ``mirred``. Raises ProvisionError."""
    with netlink(netns, doing=f"to redirect {name} to {target}") as route:
        _redirect(route, link_index(route, name), link_index(route, target))


def gather_frames(indexes: Iterable[int], target: str, netns: str) -> None:
    """Sends the frames of many links, by their indexes, out of one link of the namespace. Raises ProvisionError."""
    with netlink(netns, doing=f"to redirect links to {target}") as route:
        there = link_index(route, target)
        for index in indexes:
            route.tc("add", "clsact", index)
            _redirect(route, index, there)


def _redirect(route: Any, index: int, target: int) -> None:
    route.tc(
        "add-filter",
        "u32",
        index,
        parent=_INGRESS,
        prio=1,
        protocol=_EVERY_PROTOCOL,
        target=_NO_CLASS,
        keys=["0x0/0x0+0"],
        action={"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": target},
    )
