# SPDX-License-Identifier: BSD-3-Clause
"""The interface to the workload, a C program: its command line, files and output."""
