# SPDX-License-Identifier: BSD-3-Clause
"""Applications: the rate and the response times of an application's own client."""
