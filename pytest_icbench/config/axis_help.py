# SPDX-License-Identifier: BSD-3-Clause
"""Help of axes. Every pytest run loads it, and the parsers only where their options are given."""

from __future__ import annotations

#: How a list of whole numbers is written, for help.
SPEC = (
    "SPEC is a list (64 512 or 64,512) or a sequence, from .step .to (64 .32 .256) or from..step..to (64..32..256);"
    " the suffixes k and M are allowed"
)

#: Help of the options.
MIX_HELP = (
    "replace the packet sizes of all scenarios by mixes, with spaces between: simple (7 x 64, 4 x 570, 1 x 1518),"
    " nfvbench (7 x 64, 4 x 594, 1 x 1518), a genome of RFC 6985 (aaagb) or sizes and weights (64:7,594:4,1518:1)"
)
FLOWS_HELP = (
    "replace the flows: number (1 to 1M), then :addresses (the default), :ports or :macs for what differs, then"
    " :zipf unless all come equally often (1 64k 1M:macs:zipf); new: each frame is a flow of its own"
)
HEADER_HELP = (
    "replace the headers: udp4, tcp4, udp6 or tcp6, then +vlanN for a VLAN tag (udp4 tcp6 udp6+vlan100); the least"
    " frames have 64, 76, 84 and 96 bytes, with a tag 4 more"
)
DIRECTION_HELP = (
    "replace the directions: one (side a of a pair sends), both (both ends send at once; rates and losses are then also"
    " those of each direction)"
)
QUEUES_HELP = (
    "replace the numbers of queue pairs of an endpoint, 1 to 16: flows are spread over them by their"
    " Toeplitz hash, as a network card does"
)
PRECEDENCE_HELP = (
    "how the pollers stand against all other processes of this host: before them (all), or as the others (none)"
    " (default: all)"
)
BIRTH_HELP = (
    "replace the containers of the scenarios that create some one after the other: KIND:N, a kind of node or fork"
    " (netns:1000 fork:300), or KIND:N:TIMEms, by the first frames of clients that come so often (netns:200:25ms)"
)
