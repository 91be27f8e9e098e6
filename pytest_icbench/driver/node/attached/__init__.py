# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints in what runs already: containers, pods, network namespaces."""
