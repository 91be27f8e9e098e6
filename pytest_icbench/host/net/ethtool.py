# SPDX-License-Identifier: BSD-3-Clause
"""Settings of a NIC that ethtool(8) knows: queues, large receive offload. By the same ioctls."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from pytest_icbench.errors import ProvisionError

_SIOCETHTOOL = 0x8946
_GCHANNELS, _SCHANNELS = 0x3C, 0x3D
_LRO = "rx-lro"


def channels(name: str) -> list[int] | None:
    """Queues: receive, transmit, other, combined (``ethtool -l``); None: it has a fixed number."""
    found = _request(name, struct.pack("9I", _GCHANNELS, *[0] * 8))
    return None if found is None else list(struct.unpack("9I", found)[5:])


def single(channels: Sequence[int]) -> list[int]:
    """The same with one queue of each kind that there is; ``other`` stays."""
    receive, transmit, other, combined = channels
    return [min(receive, 1), min(transmit, 1), other, min(combined, 1)]


def set_channels(name: str, channels: Sequence[int]) -> None:
    """Raises ProvisionError if the driver refuses the numbers."""
    if _request(name, struct.pack("9I", _SCHANNELS, *[0] * 4, *channels)) is None:
        raise ProvisionError(f"{name} refuses {list(channels)} queues (receive, transmit, other, combined)")


def _request(name: str, data: bytes) -> bytes | None:
    buffer = array.array("B", data)
    request = struct.pack("16sP8x", os.fsencode(name), buffer.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control, suppress(OSError):
        fcntl.ioctl(control, _SIOCETHTOOL, request)
        return buffer.tobytes()
    return None


def lro(name: str) -> bool | None:
    """Whether large receive offload is on, which a bridge switches off; None: there is none, or it is fixed."""
    from pyroute2.ethtool.ioctl import IoctlEthtool

    try:
        device = IoctlEthtool(name)
    except OSError:
        return None
    try:
        features = device.get_features()
        return bool(features.is_active(_LRO)) if _LRO in features and features.is_available(_LRO) else None
    except OSError:
        return None  # a driver without ethtool has nothing to be put back
    finally:
        device.close()
