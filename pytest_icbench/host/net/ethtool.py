# SPDX-License-Identifier: BSD-3-Clause
"""What ethtool(8) shows of a NIC: queues, offloads, its driver's version."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pytest_icbench.errors import ProvisionError

_CHANNELS = ("rx_count", "tx_count", "other_count", "combined_count")
#: Large receive offload.
LRO = "rx-lro"
_ETHTOOL_GDRVINFO = 3


class _DriverInfo(ctypes.Structure):
    """The kernel's ``struct ethtool_drvinfo``. pyroute2 lacks it, and netlink has no message for it."""

    _fields_ = [
        ("cmd", ctypes.c_uint32),
        ("driver", ctypes.c_char * 32),
        ("version", ctypes.c_char * 32),
        ("firmware", ctypes.c_char * 32),
        ("others", ctypes.c_char * 96),
    ]


@contextmanager
def _device(name: str) -> Iterator[Any]:
    """Opens pyroute2's ethtool of a NIC. A setting that the driver lacks raises OSError."""
    from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

    device = IoctlEthtool(name)
    try:
        yield device
    except EthtoolError as error:
        raise OSError(str(error)) from None
    finally:
        device.close()


def channels(name: str) -> list[int] | None:
    """Returns the queues (receive, transmit, other, combined; ``ethtool -l``), None if their number is fixed."""
    with suppress(OSError), _device(name) as device:
        current = device.get_channels()
        return [getattr(current, kind) for kind in _CHANNELS]
    return None


def driver_version(name: str) -> str | None:
    """Returns ``DRIVER VERSION, firmware VERSION`` of an interface; None if unknown."""
    with suppress(OSError), _device(name) as device:
        info = _DriverInfo(cmd=_ETHTOOL_GDRVINFO)
        # pyroute2's pointers are typed by request, and this one is to anything.
        device.ifreq.gstats = ctypes.cast(ctypes.byref(info), ctypes.c_void_p)
        device.ioctl()
        driver, version, firmware = (text.decode() for text in (info.driver, info.version, info.firmware))
        return f"{driver} {version}" + (f", firmware {firmware}" if firmware and firmware != "N/A" else "")
    return None


def single(channels: Sequence[int]) -> list[int]:
    """Returns the same queues with at most one of each kind; ``other`` stays."""
    receive, transmit, other, combined = channels
    return [min(receive, 1), min(transmit, 1), other, min(combined, 1)]


def set_channels(name: str, channels: Sequence[int]) -> None:
    """Sets the numbers of queues. Raises ProvisionError if the driver refuses them."""
    try:
        with _device(name) as device:
            settings = device.get_channels()
            for kind, count in zip(_CHANNELS, channels, strict=True):
                setattr(settings, kind, count)
            device.set_channels(settings)
    except OSError:
        raise ProvisionError(f"{name} refuses {list(channels)} queues (receive, transmit, other, combined)") from None


def lro(name: str) -> bool | None:
    """Returns whether large receive offload is on; None if it is missing or fixed. A bridge switches it off."""
    with suppress(OSError), _device(name) as device:
        features = device.get_features()
        if LRO in features and features.is_available(LRO):
            return bool(features.is_active(LRO))
    return None


def feature(name: str, feature_name: str) -> bool | None:
    """Returns whether an offload is on; None if the driver lacks it.

    Args:
        feature_name: the kernel's name of the offload.
    """
    with suppress(OSError), _device(name) as device:
        features = device.get_features()
        if feature_name in features:
            return bool(features.is_active(feature_name))
    return None


def set_feature(name: str, feature: str, on: bool) -> None:
    """Switches an offload on or off. Raises ProvisionError if the driver lacks it or refuses.

    Args:
        feature: the kernel's name of the offload.
    """
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
