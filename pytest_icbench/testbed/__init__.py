# SPDX-License-Identifier: BSD-3-Clause
"""Rigs: a case built on one host or two, and where its threads run."""
