# SPDX-License-Identifier: BSD-3-Clause
"""``icbench doctor``: missing requirements of a host, and what would disturb measurements on it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from typing import Any

from pytest_icbench.config.switches import resolve_switches
from pytest_icbench.config.values import parse_words
from pytest_icbench.driver.switch.protocol import Switch
from pytest_icbench.host.findings import Finding, exit_code, kernel_line, render
from pytest_icbench.model.codec import encode
from pytest_icbench.plugin.third_party import catalogue
from pytest_icbench.testbed.host_examination import examine
from pytest_icbench.testbed.remote.remote_host import examine_remote


def add_to(commands: Any) -> None:
    """Adds the subcommand."""
    command = commands.add_parser("doctor", help="show what this host lacks and what would disturb measurements on it")
    command.add_argument("--json", action="store_true", help="print the findings as JSON")
    command.add_argument(
        "--switch",
        metavar="NAME,…",
        help="examine only these switches or groups; the exit status is 1 if one cannot run"
        " (default: every switch; one that cannot run is a note)",
    )
    command.add_argument("--pf", help="the card for sriov: its interface or PCI address")
    command.add_argument("--remote", metavar="[USER@]HOST", help="examine this host, by ssh, instead")
    command.add_argument("--remote-python", metavar="PATH", help="the Python on that host with this package")
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the findings. Returns 1 if something is missing that was requested or that every session needs.

    Raises UsageError for an unknown switch, and for a second host that cannot be reached.
    """
    known = installed_switches()
    asked: list[str] = []
    if arguments.switch is not None:
        words = parse_words(arguments.switch, "doctor: --switch")
        asked = list(resolve_switches(words, known, "doctor: --switch"))
    findings = _findings(arguments, known, asked)
    if arguments.json:
        document = {
            "schema": 1,
            "ready": exit_code(findings) == 0,
            "kernel_parameters": kernel_line(findings),
            "findings": encode(findings),
        }
        print(json.dumps(document, indent=2))
    else:
        print(render(findings))
    return exit_code(findings)


def _findings(arguments: argparse.Namespace, known: Mapping[str, type[Switch]], asked: list[str]) -> list[Finding]:
    if arguments.remote is not None:
        return examine_remote(arguments.remote, arguments.remote_python, arguments.pf, asked)
    return examine(pf=arguments.pf, switches=known, asked=asked)


def installed_switches() -> dict[str, type[Switch]]:
    """Returns the switches of this package and of installed pytest plugins. Raises UsageError.

    Files of a project (``conftest.py``, ``pytest.ini``) are not read: the doctor examines a host.
    """
    import pytest

    return catalogue(pytest.Config.fromdictargs({}, ["-c", os.devnull, "--rootdir=.", "--noconftest"]))
