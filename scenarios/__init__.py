# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios that come with the package: `pytest --pyargs pytest_icbench.scenarios`."""
