# SPDX-License-Identifier: BSD-3-Clause
"""The suite that checks whether a switch treats frames as its driver declares, for built-in and other switches.

Run it by ``pytest --pyargs pytest_icbench.conformance --icbench-switch NAME``. It needs the extra ``conformance``,
which installs Scapy. The licence of Scapy is GPL-2.0-only, so only the tests of this package import it.
"""
