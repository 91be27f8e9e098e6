# SPDX-License-Identifier: BSD-3-Clause
"""What a container keeps from root is named once, with what each kind of runner grants. Real rights are dropped."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_icbench.host import rights
from pytest_icbench.host.root import Root

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="rights are dropped: run pytest as root")

_EXPLAIN = """
from pytest_icbench.host import rights
from pytest_icbench.host.root import Root
print(rights.explain_missing_rights(Root()))
print(rights.explain_missing_capabilities(Root()))
"""
_CGROUPS = """for mount in $(awk '$3 ~ /^cgroup/ { print $2 }' /proc/mounts); do mount -o remount,bind,ro $mount; done
exec "$@\""""
_PAGES = 'mount --bind /sys/devices /sys/devices && mount -o remount,bind,ro /sys/devices && exec "$@"'


def explain(*within: str) -> list[str]:
    """All that is missing, and what keeps every case from running, in a process that is started so."""
    done = subprocess.run([*within, sys.executable, "-c", _EXPLAIN], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", rights.CAPABILITIES)
def test_a_missing_capability_is_named_with_what_grants_it(name: str) -> None:
    capability = name.lower().removeprefix("cap_")
    found = explain("setpriv", f"--bounding-set=-{capability}", f"--inh-caps=-{capability}")
    for sentence in found:
        assert f"root lacks {name} (" in sentence
        assert all(f"{runner}: {grant}" in sentence for runner, grant in rights.GRANTS.items())
    assert "no case can run" in found[1]


@pytest.mark.parametrize(("mounts", "name"), [(_CGROUPS, "/sys/fs/cgroup"), (_PAGES, "huge pages")])
def test_what_is_mounted_read_only_is_named_and_keeps_other_cases_going(mounts: str, name: str) -> None:
    missing, every_case = explain("unshare", "--mount", "sh", "-c", mounts, "sh")
    assert name in missing
    assert every_case == "None"


def test_a_refusal_has_the_remedy_of_its_kind() -> None:
    import errno

    assert rights.remedy_of(errno.EPERM, "modprobe veth") == rights.remedy(Root())
    assert rights.remedy_of(errno.EOPNOTSUPP, "modprobe veth") == "modprobe veth"


def test_root_of_a_rootless_container_is_told_what_an_engine_of_root_grants() -> None:
    missing, _ = explain("unshare", "--user", "--map-root-user", "--net")
    assert missing.startswith("root is that of a user namespace, as in a rootless container, and ")
    assert all(f"{runner}: {grant}" in missing for runner, grant in rights.ROOTLESS_GRANTS.items())
    assert rights.ROOTLESS_GRANTS.keys() == rights.GRANTS.keys()
    dropped = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    without = explain("unshare", "--user", "--map-root-user", *dropped)
    for sentence in without:
        assert "lacks CAP_NET_ADMIN (links)" in sentence
        assert rights.ROOTLESS_GRANTS["Kubernetes"] in sentence
    assert explain() == ["None", "None"]
