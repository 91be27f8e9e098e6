# SPDX-License-Identifier: BSD-3-Clause
"""The output of VPP, and the version in its binary. Pure."""

from __future__ import annotations

import re

from pytest_icbench.driver.switch.protocol import Batches
from pytest_icbench.driver.switch.vpp.load import Rounds

_LIBRARY = re.compile(rb"libvlib\.so\.(\d+\.\d+(?:\.\d+)?)")
_NODE = re.compile(r"^(\S+)\s+(active|polling|any wait|event wait|done|interrupt wait)\s+(\d+)\s+(\d+)\s+\d+\s", re.M)
_THREAD = re.compile(r"^Thread \d+ (\S+)", re.M)


def linked_version(program: bytes) -> str | None:
    """Returns the version of the VPP libraries that a program is linked with, such as ``26.06``; None if it is no VPP.

    The program is not asked: before 26.02, ``vpp --version`` starts a VPP.
    """
    match = _LIBRARY.search(program)
    return match.group(1).decode() if match else None


def parse_batches(text: str, node: str) -> Batches:
    """Returns the calls of a node and the frames in them, of all threads together, from ``show runtime``."""
    calls = frames = 0
    for name, _, called, handled in _NODE.findall(text):
        if name == node:
            calls, frames = calls + int(called), frames + int(handled)
    return Batches(frames=frames, calls=calls)


def parse_frames(text: str, node: str) -> dict[str, int]:
    """Returns the frames that each thread handled in a node, by the thread's name, from ``show runtime``."""
    parts = _THREAD.split(text)[1:]
    return {
        thread: sum(int(handled) for name, _, _, handled in _NODE.findall(part) if name == node)
        for thread, part in zip(parts[::2], parts[1::2], strict=True)
    }


def parse_rounds(text: str, node: str) -> dict[str, Rounds]:
    """Returns the rounds of each polling thread, by its name, with its calls of the node, from ``show runtime``.

    A polling node is called once a round.
    """
    rounds = {}
    parts = _THREAD.split(text)[1:]
    for thread, part in zip(parts[::2], parts[1::2], strict=True):
        nodes = _NODE.findall(part)
        loops = max((int(called) for _, state, called, _ in nodes if state == "polling"), default=0)
        if loops:
            rounds[thread] = Rounds(loops, sum(int(called) for name, _, called, _ in nodes if name == node))
    return rounds
