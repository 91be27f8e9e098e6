# SPDX-License-Identifier: BSD-3-Clause
"""The virtual switch of an SR-IOV card."""
