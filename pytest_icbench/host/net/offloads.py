# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel link leaves to its driver or does in another way: offloads, threaded NAPI, packet steering."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pytest_icbench.errors import ProvisionError
from pytest_icbench.host.namespaces import entered
from pytest_icbench.host.net import ethtool
from pytest_icbench.host.session import HostSession

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
#: /sys shows the links of the namespace in which it was mounted, so a child mounts it anew for itself.
_WRITE = 'mount -t sysfs none /sys && printf %s "$3" >"/sys/class/net/$1/$2"'
_WRITE_S = 5.0


def checked(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns a user's settings. Raises ProvisionError with one sentence for a key or a value that there is not."""
    for key, value in settings.items():
        if key not in KEYS:
            raise ProvisionError(f"offloads: there is no '{key}': the offloads are {', '.join(KEYS)}")
        if key == RPS and not _MASK.fullmatch(value):
            raise ProvisionError(f"offloads: rps = '{value}' is no mask of CPUs: write it in hexadecimal, as \"3\"")
        if key != RPS and value not in ("true", "false"):
            raise ProvisionError(f"offloads: {key} = '{value}' is neither true nor false")
    return dict(settings)


def apply(session: HostSession, links: Sequence[tuple[str, str]], settings: Mapping[str, str]) -> None:
    """Applies settings to links, each given by its name and its namespace. They end with the links.

    Raises ProvisionError if a link cannot have a setting.
    """
    for name, netns in links:
        with entered(netns):
            for key, value in settings.items():
                if key in FEATURES and ethtool.feature(name, FEATURES[key]) != (value == "true"):
                    ethtool.set_feature(name, FEATURES[key], value == "true")
        for key in _FILES.keys() & settings.keys():
            text = settings[key] if key == RPS else str(int(settings[key] == "true"))
            argv = ["unshare", "--mount", "sh", "-c", _WRITE, "sh", name, _FILES[key], text]
            try:
                session.spawner.run(argv, timeout_s=_WRITE_S, netns=netns)
            except ProvisionError as error:
                raise ProvisionError(f"{name} cannot have {key} = {settings[key]}: {error}") from None


def read(name: str, netns: str) -> dict[str, bool]:
    """Returns which offloads of a link are on, by our names; those that it does not have are left out."""
    with entered(netns):
        states = {key: ethtool.feature(name, feature) for key, feature in FEATURES.items()}
    return {key: state for key, state in states.items() if state is not None}
