# SPDX-License-Identifier: BSD-3-Clause
"""Runs the command by ``python -m pytest_icbench.cli``."""

import sys

from pytest_icbench.cli.main import main

sys.exit(main())
