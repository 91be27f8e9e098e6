# SPDX-License-Identifier: BSD-3-Clause
"""Settings of a NIC that ethtool(8) knows: queues, large receive offload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pytest_icbench.errors import ProvisionError

_CHANNELS = ("rx_count", "tx_count", "other_count", "combined_count")
#: Large receive offload.
LRO = "rx-lro"


@contextmanager
def _device(name: str) -> Iterator[Any]:
    """pyroute2's ethtool of a NIC; what the NIC or its driver does not know is an OSError."""
    from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

    device = IoctlEthtool(name)
    try:
        yield device
    except EthtoolError as error:
        raise OSError(str(error)) from None
    finally:
        device.close()


def channels(name: str) -> list[int] | None:
    """Queues: receive, transmit, other, combined (``ethtool -l``); None: it has a fixed number."""
    with suppress(OSError), _device(name) as device:
        current = device.get_channels()
        return [getattr(current, kind) for kind in _CHANNELS]
    return None


def single(channels: Sequence[int]) -> list[int]:
    """The same with one queue of each kind that there is; ``other`` stays."""
    receive, transmit, other, combined = channels
    return [min(receive, 1), min(transmit, 1), other, min(combined, 1)]


def set_channels(name: str, channels: Sequence[int]) -> None:
    """Sets the numbers of queues. Raises ProvisionError if the driver refuses them."""
    try:
        with _device(name) as device:
            wanted = device.get_channels()
            for kind, count in zip(_CHANNELS, channels, strict=True):
                setattr(wanted, kind, count)
            device.set_channels(wanted)
    except OSError:
        raise ProvisionError(f"{name} refuses {list(channels)} queues (receive, transmit, other, combined)") from None


def lro(name: str) -> bool | None:
    """Whether large receive offload is on, which a bridge switches off; None: there is none, or it is fixed."""
    with suppress(OSError), _device(name) as device:
        features = device.get_features()
        if LRO in features and features.is_available(LRO):
            return bool(features.is_active(LRO))
    return None


def set_feature(name: str, feature: str, on: bool) -> None:
    """Switches an offload by the kernel's name for it. Raises ProvisionError if the driver lacks it, or keeps it."""
    refusal = f"{name} cannot switch {feature} {'on' if on else 'off'}"
    try:
        with _device(name) as device:
            features = device.get_features()
            if feature not in features or not features.is_available(feature):
                raise ProvisionError(refusal)
            features.set_value(feature, on)
            device.set_features(features)
    except OSError as error:
        raise ProvisionError(f"{refusal}: {error}") from None
