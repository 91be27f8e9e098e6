# SPDX-License-Identifier: BSD-3-Clause
"""The groups in which ``pytest --help`` shows the options, those first that most users need. Pure."""

from __future__ import annotations

#: Titles with the names of their options, in order; each option is in one group.
GROUPS: dict[str, str] = {
    "icbench, first of all": "switch packet_size rate plan budget variant save compare",
    "icbench, what is measured": (
        "mix flows header direction queues burst pairs switch_cores api app birth port blocking check_payload binary"
        " switch_config topology function function_count chain share cap function_config active neighbour isolation"
    ),
    "icbench, how long and how often": (
        "precision max_duration duration repeats window skip keep protocol warmup max_warmup drain soak_duration"
        " reference order rounds turns"
    ),
    "icbench, searches for ndr and pdr": "search_preset search_width search_trial search_sum",
    "icbench, comparing and gating": "baselines thresholds must_match fail_on exit_codes plain_exit_codes strict",
    "icbench, host": (
        "wait_quiet ring placement frequency precedence node hugepage_size rebuild pf remote remote_python uplink"
        " host_names"
    ),
    "icbench, reports": "reports resume history debug",
}

#: The group of each option.
GROUP_OF = {name: title for title, names in GROUPS.items() for name in names.split()}
