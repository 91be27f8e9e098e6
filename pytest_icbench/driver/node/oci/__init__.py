# SPDX-License-Identifier: BSD-3-Clause
"""Containers by an OCI runtime (runc, crun) from a bundle, without a daemon."""
