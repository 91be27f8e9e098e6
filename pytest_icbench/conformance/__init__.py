# SPDX-License-Identifier: BSD-3-Clause
"""Whether a switch does with frames what its driver declares: one suite for all of them, also for one from outside.

``pytest --pyargs pytest_icbench.conformance --icbench-switch NAME``. Needs the extra ``conformance`` (Scapy, which is
GPL-2.0-only: nothing but the tests of this package imports it).
"""
