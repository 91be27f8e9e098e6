# SPDX-License-Identifier: BSD-3-Clause
"""API techniques: the ways in which an endpoint sends and receives frames. Pure."""

#: UDP in trains of datagrams, each of which is one buffer for the kernel's links and switches.
GSO = "udp-gso"
#: The workload's options for each technique over an interface of the kernel, in the order in which they are shown.
SOCKET_OPTIONS = {"udp": "", "udp-mmsg": "-m", GSO: "-G", "raw": "-R {}", "raw-mmsg": "-R {} -m", "xdp": "-X {}"}
SOCKET_APIS = tuple(SOCKET_OPTIONS)
#: The longest frame in bytes, with FCS, of an API technique that has a bound: AF_XDP keeps a frame in one page.
API_FRAME_BYTES = {"xdp": 3844}
#: API techniques by which DPDK applications use a kernel interface.
NETDEV_APIS = ("af_packet", "af_xdp")
#: The technique of endpoints over which applications' sockets go, and by which their paths are checked.
APPLICATION_API = "udp-mmsg"
#: Whole frames by the character device of a tap.
TAP_API = "tap"
APIS = (*SOCKET_APIS, TAP_API, "dpdk", *NETDEV_APIS)
