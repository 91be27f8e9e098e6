# SPDX-License-Identifier: BSD-3-Clause
"""Containers by an engine that users have, Podman or Docker, through its command line."""
