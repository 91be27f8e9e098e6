# SPDX-License-Identifier: BSD-3-Clause
"""The direct link over vhost-user and memif."""

from __future__ import annotations

from pathlib import Path

from pytest_icbench.driver.switch.dpdk.direct import DirectLink
from pytest_icbench.model.endpoint import Address, Memif, VhostUser
from tests.unit.recording_host import attachments_of, spec_of

A, B = Address.of(1, "a"), Address.of(1, "b")


def test_direct_ends_share_a_socket_and_one_serves() -> None:
    places = attachments_of(Path("/tmp"), 2)
    spec = spec_of(Path("/tmp"))
    a, b, c, d = DirectLink().start(None, spec, places)  # type: ignore[arg-type]
    assert (a, b) == (
        VhostUser(A, "/tmp/s/d0", "front-end", serves=True),
        VhostUser(B, "/tmp/s/d0", "back-end", serves=False),
    )
    assert (c.serves, d.serves) == (True, False)
    assert isinstance(c, VhostUser)
    assert c.socket == "/tmp/s/d2"


def test_side_b_serves_a_memif() -> None:
    a, b = DirectLink().start(None, spec_of(Path("/tmp"), port="memif"), attachments_of(Path("/tmp")))  # type: ignore[arg-type]
    assert (a, b) == (Memif(A, "/tmp/s/d0", "client"), Memif(B, "/tmp/s/d0", "server"))
