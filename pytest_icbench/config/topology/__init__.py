# SPDX-License-Identifier: BSD-3-Clause
"""Topologies: who the endpoints are and where they run, in a TOML file that can be written out, edited and used."""
