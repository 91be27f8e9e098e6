# SPDX-License-Identifier: BSD-3-Clause
"""The facts that a switch reports, as a result keeps them."""

from __future__ import annotations

from pytest_icbench.model.switch_facts import SwitchFacts


def test_the_same_configuration_in_another_session_reads_the_same() -> None:
    def facts(directory: str) -> SwitchFacts:
        argv = ["-m", "72", f"--vdev=net_vhost0,iface={directory}/s/p0,queues=1"]
        config = {
            "argv": argv,
            "startup": f"unix {{ cli-listen {directory}/cli }}",
            "nested": {"ports": (1, directory)},
        }
        return SwitchFacts("1.0", config, "/usr/bin/switch")

    first, second = (
        facts(f"/run/icbench/{name}/r5").in_rig(f"/run/icbench/{name}/r5") for name in ("abcdef", "uvwxyz")
    )
    assert first == second
    assert first.config["argv"][2] == "--vdev=net_vhost0,iface=RIG/s/p0,queues=1"
    assert first.config["startup"] == "unix { cli-listen RIG/cli }"
    assert (first.version, first.program) == ("1.0", "/usr/bin/switch")
