# SPDX-License-Identifier: BSD-3-Clause
"""The packaged scenarios, so that ``pytest --pyargs pytest_icbench.scenarios`` finds them.

The build puts the files of the checkout's ``scenarios/`` here.
"""
