# SPDX-License-Identifier: BSD-3-Clause
"""What a driver says of itself, as the kernel answers."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import pytest
from pyroute2.ethtool.ioctl import IoctlEthtool

from pytest_icbench.host.net import ethtool

_INFO_BYTES = 196


@pytest.mark.parametrize(
    ("firmware", "said"),
    [(b"1.63, 0x8000ad55", "igb 6.1.0, firmware 1.63, 0x8000ad55"), (b"N/A", "igb 6.1.0"), (b"", "igb 6.1.0")],
)
def test_the_version_of_a_driver_is_read(monkeypatch: pytest.MonkeyPatch, firmware: bytes, said: str) -> None:
    def answer(device: Any) -> None:
        assert bytes(device.ifreq.ifr_name).rstrip(b"\0") == b"eth7"
        address = ctypes.cast(device.ifreq.gstats, ctypes.c_void_p).value
        assert address is not None
        assert int.from_bytes(ctypes.string_at(address, 4), sys.byteorder) == 3  # ETHTOOL_GDRVINFO
        texts = b"".join(text.ljust(32, b"\0") for text in (b"igb", b"6.1.0", firmware))
        ctypes.memmove(address + 4, texts.ljust(_INFO_BYTES - 4, b"\xff"), _INFO_BYTES - 4)

    monkeypatch.setattr(IoctlEthtool, "ioctl", answer)
    assert ethtool.driver_version("eth7") == said


def test_what_has_no_driver_has_no_version() -> None:
    assert ethtool.driver_version("lo") is None
    assert ethtool.driver_version("nonic9") is None
