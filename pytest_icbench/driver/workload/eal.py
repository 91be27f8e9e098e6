# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of DPDK's environment abstraction layer for one endpoint of the workload. Pure."""

from __future__ import annotations

from pytest_icbench.model.endpoint import Endpoint, Memif, Nic, Pci, Tap, Veth, VhostUser

#: The huge-page memory of one endpoint in MiB, for its packet pool and its driver.
ENDPOINT_MIB = 64
#: The same for frames above 1518 bytes, whose buffers are five times as long.
JUMBO_ENDPOINT_MIB = 256

#: net_af_xdp takes this many buffers from the receive pool at once, regardless of the ring. The pool is sized by the
#: ring.
AF_XDP_LEAST_RING = 2048


def endpoint_ring(api: str, ring: int) -> int:
    """Returns the descriptors to request: ``ring``, unless the driver needs more."""
    return max(ring, AF_XDP_LEAST_RING) if api == "af_xdp" else ring


def endpoint_mib(jumbo: bool, queues: int = 1) -> int:
    """Returns the MiB of huge pages that one endpoint takes."""
    return (JUMBO_ENDPOINT_MIB if jumbo else ENDPOINT_MIB) * queues


def eal_arguments(endpoint: Endpoint, api: str, *, cpu: int, ring: int, jumbo: bool, queues: int = 1) -> list[str]:
    """Returns the arguments after ``--`` on the workload's command line.

    Args:
        api: ``dpdk``, or for a ``Veth`` endpoint ``af_packet`` or ``af_xdp``.
        cpu: the one CPU that runs the application (its main lcore).
        ring: descriptors per ring, a power of two.
        jumbo: whether frames may exceed 1518 bytes.
        queues: queue pairs of its port.
    """
    arguments = [
        "--lcores",
        f"0@{cpu}",
        "--in-memory",
        # Without it virtio-user has more memory regions than the eight that vhost-user can share.
        "--single-file-segments",
        "--no-telemetry",
        "-m",
        str(endpoint_mib(jumbo, queues)),
    ]
    if isinstance(endpoint, Pci):
        return [*arguments, "-a", endpoint.pci]
    device = virtual_device(endpoint, api, ring=ring, jumbo=jumbo, queues=queues)
    # A root's EAL would choose physical addresses for some virtual devices, which have no use for them. If free huge
    # pages are scattered, a packet pool then takes more pages than -m allows.
    return [*arguments, "--no-pci", "--iova-mode", "va", f"--vdev={device}"]


def virtual_device(endpoint: Endpoint, api: str, *, ring: int, jumbo: bool, number: int = 0, queues: int = 1) -> str:
    """Returns the value of ``--vdev`` for an endpoint; ``number`` distinguishes the devices of a process.

    A virtio-user port with several queues needs a control queue. A memif has as many rings as its port has queues.
    """
    match endpoint:
        case VhostUser(role="front-end"):
            several = f"{queues},cq=1" if queues > 1 else "1"
            device = f"net_virtio_user{number},path={endpoint.socket},mac={endpoint.address.mac},queues={several}"
            device += f",queue_size={ring}"
            return device + (",server=1" if endpoint.serves else "") + (",packed_vq=1" if endpoint.packed else "")
        case VhostUser():
            return f"net_vhost{number},iface={endpoint.socket},queues={queues},client={int(not endpoint.serves)}"
        case Memif():
            return (
                f"net_memif{number},role={endpoint.role},id={endpoint.id},socket={endpoint.socket},socket-abstract=no,"
                f"mac={endpoint.address.mac},rsize={ring.bit_length() - 1},bsize={16384 if jumbo else 2048}"
            )
        case Veth():
            return netdev(endpoint.interface, api, ring=ring, jumbo=jumbo)
        case Nic():
            return netdev(endpoint.interface, endpoint.driver, ring=ring, jumbo=jumbo)
        case Pci() | Tap():
            raise ValueError(f"api {api}: a {endpoint.kind} port is no virtual device of DPDK")


def netdev(interface: str, api: str, *, ring: int, jumbo: bool) -> str:
    """Returns the value of ``--vdev`` for a kernel interface, by ``af_packet`` or ``af_xdp``. Raises ValueError."""
    if api == "af_xdp":
        return f"net_af_xdp0,iface={interface},start_queue=0,queue_count=1"
    if api == "af_packet":
        frame = 16384 if jumbo else 2048
        frames = max(ring, 512)
        return (
            f"net_af_packet0,iface={interface},qpairs=1,blocksz=16384,framesz={frame},framecnt={frames},qdisc_bypass=1"
        )
    raise ValueError(f"{api} is not a DPDK driver for a kernel interface")
