# SPDX-License-Identifier: BSD-3-Clause
"""Settings of links: queues, offloads, threaded NAPI, packet steering, and the version of the driver."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.host_session import HostSession
from pytest_icbench.host.namespaces import enter_netns

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


def read_channels(name: str) -> list[int] | None:
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


def limit_to_single(channels: Sequence[int]) -> list[int]:
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


def read_lro(name: str) -> bool | None:
    """Returns whether large receive offload is on; None if it is missing or fixed. A bridge switches it off."""
    with suppress(OSError), _device(name) as device:
        features = device.get_features()
        if LRO in features and features.is_available(LRO):
            return bool(features.is_active(LRO))
    return None


def read_feature(name: str, feature_name: str) -> bool | None:
    """Returns whether an offload is on; None if the driver lacks it.

    ``feature_name``: the kernel's name of the offload.
    """
    with suppress(OSError), _device(name) as device:
        features = device.get_features()
        if feature_name in features:
            return bool(features.is_active(feature_name))
    return None


def set_feature(name: str, feature: str, on: bool) -> None:
    """Switches an offload on or off. Raises ProvisionError if the driver lacks it or refuses."""
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


#: The kernel's names of offloads that can be switched, by ours.
FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "checksum": "tx-checksum-ip-generic",
        "gro": "rx-gro",
        "gso": "tx-generic-segmentation",
        "tso": "tx-tcp-segmentation",
        "udp-gro": "rx-udp-gro-forwarding",
    }
)
#: Settings in a link's directory of sysfs, by our names: a flag, and a mask of CPUs.
THREADED, RPS = "threaded-napi", "rps"
_FILES = {THREADED: "threaded", RPS: "queues/rx-0/rps_cpus"}
KEYS = (*FEATURES, *_FILES)
_MASK = re.compile(r"[0-9a-f]+(,[0-9a-f]+)*", re.ASCII)
#: /sys shows the links of the namespace in which it was mounted, so a child mounts it again in a private namespace.
_WRITE = 'mount -t sysfs none /sys && printf %s "$3" >"/sys/class/net/$1/$2"'
_WRITE_S = 5.0


def check_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns a user's settings. Raises ProvisionError in one sentence for an unknown key or value."""
    for key, value in settings.items():
        if key not in KEYS:
            raise ProvisionError(f"offloads: there is no '{key}': the offloads are {', '.join(KEYS)}")
        if key == RPS and not _MASK.fullmatch(value):
            raise ProvisionError(f"offloads: rps = '{value}' is not a mask of CPUs: write it in hexadecimal, as \"3\"")
        if key != RPS and value not in ("true", "false"):
            raise ProvisionError(f"offloads: {key} = '{value}' is neither true nor false")
    return dict(settings)


def apply_settings(session: HostSession, links: Sequence[tuple[str, str]], settings: Mapping[str, str]) -> None:
    """Applies settings to links, each given by its name and its namespace. The settings end with the links.

    Raises ProvisionError if a link cannot have a setting.
    """
    for name, netns in links:
        with enter_netns(netns):
            for key, value in settings.items():
                if key in FEATURES and read_feature(name, FEATURES[key]) != (value == "true"):
                    set_feature(name, FEATURES[key], value == "true")
        for key in _FILES.keys() & settings.keys():
            text = settings[key] if key == RPS else str(int(settings[key] == "true"))
            argv = ["unshare", "--mount", "sh", "-c", _WRITE, "sh", name, _FILES[key], text]
            try:
                session.spawner.run(argv, timeout_s=_WRITE_S, netns=netns)
            except ProvisionError as error:
                raise ProvisionError(f"{name} cannot have {key} = {settings[key]}: {error}") from None


def read_offloads(name: str, netns: str) -> dict[str, bool]:
    """Returns whether each offload of a link is on, by our names, without those that the link lacks."""
    with enter_netns(netns):
        states = {key: read_feature(name, feature) for key, feature in FEATURES.items()}
    return {key: state for key, state in states.items() if state is not None}
