# SPDX-License-Identifier: BSD-3-Clause
"""VPP's binary API and statistics, by ``vpp-papi``, which is imported on first use."""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import queue
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pytest_icbench.errors import ProvisionError, Unsupported

#: Seconds within which VPP has to answer, also if other pollers share its cores.
_ANSWER_S = 10
#: The version of the layout of statistics.
_STATISTICS = 2


def check_installed() -> None:
    """Raises Unsupported without ``vpp-papi``."""
    try:
        import vpp_papi  # noqa: F401
    except ImportError:
        raise Unsupported("vpp-papi is not installed: pip install 'pytest-icbench[vpp]'") from None


class VppClient:
    """A connection to a VPP, which lists its messages itself.

    Args:
        api: socket of its binary API.
        stats: socket of its statistics.

    Raises ProvisionError if it does not answer.
    """

    def __init__(self, api: Path, stats: Path) -> None:
        from vpp_papi import VPPApiClient

        quiet = logging.getLogger("pytest_icbench.vpp_papi")
        quiet.setLevel(logging.CRITICAL)
        self._stats_socket = stats
        with warnings.catch_warnings():  # papi uses deprecated functions
            warnings.simplefilter("ignore", DeprecationWarning)
            self._client = VPPApiClient(
                bootstrapapi=True, server_address=str(api), read_timeout=_ANSWER_S, async_thread=False, logger=quiet
            )
        try:
            self._client.connect("icbench")
        except Exception as error:  # whatever papi's transport raises
            raise ProvisionError(f"vpp does not answer on {api}: {error}") from None

    def knows(self, message: str) -> bool:
        """Whether this VPP has the message."""
        return hasattr(self._client.api, message)

    def call(self, message: str, **arguments: Any) -> Any:
        """Sends a request and returns its reply. Raises ProvisionError for a refusal, or without an answer."""
        try:
            reply = getattr(self._client.api, message)(**arguments)
        except AttributeError:
            raise ProvisionError(f"this vpp has no API message {message}: its plugin is missing or too old") from None
        except Exception as error:
            raise ProvisionError(f"vpp did not answer {message}: {error}") from None
        code = getattr(reply, "retval", 0)
        if code != 0:
            raise ProvisionError(f"vpp refused {message}({_shown(arguments)}): {_reason(self._client, code)}")
        return reply

    def command(self, line: str, timeout_s: float = _ANSWER_S) -> str:
        """Runs a line of its command line; returns the output. Raises ProvisionError with VPP's reason."""
        try:
            reply = self._client.api.cli_inband(cmd=line, _timeout=timeout_s)
        except Exception as error:
            raise ProvisionError(f"vpp did not answer the command '{line}': {error}") from None
        if reply.retval != 0:
            reason = reply.reply.strip() or _reason(self._client, reply.retval)
            raise ProvisionError(f"vpp refused the command '{line}': {reason}")
        return str(reply.reply)

    @contextmanager
    def statistics(self) -> Iterator[Any]:
        """Yields its shared statistics. Raises ProvisionError."""
        try:
            stats = _open_statistics(self._stats_socket)
        except Exception as error:
            raise ProvisionError(f"vpp's statistics on {self._stats_socket} cannot be read: {error}") from None
        try:
            yield stats
        finally:
            stats.disconnect()

    def close(self) -> None:
        """Closes the connection and ends its threads, also if VPP has died."""
        try:
            self._client.disconnect()
        except Exception:
            logging.getLogger(__name__).debug("vpp did not say goodbye", exc_info=True)
        # papi does not end the threads that feed its queues. They are in the switch's control group and would keep it.
        for waiting in (self._client.transport.q, self._client.transport.sque):
            with suppress(queue.Empty):
                while True:  # a full pipe would block its thread
                    waiting.get_nowait()
            waiting.close()
            waiting.join_thread()


class _Lock:
    """Replaces papi's lock of statistics, whose wait has no end if VPP is stopped within a change, or damages them."""

    def __init__(self, stats: Any) -> None:
        self._stats, self._deadline, self._epoch = stats, time.monotonic() + _ANSWER_S, 0

    def __enter__(self) -> None:
        self._epoch = self._stats.epoch
        while (late := time.monotonic() > self._deadline) or self._stats.in_progress:
            if late:  # papi would try again after an OSError
                raise ProvisionError(f"vpp's statistics did not get readable within {_ANSWER_S} s")

    def __exit__(self, *error: object) -> None:
        if self._stats.in_progress or self._stats.epoch != self._epoch:
            raise OSError("they were changed meanwhile")


def _open_statistics(path: Path) -> Any:
    """Returns papi's statistics, whose memory their VPP, which may be that of a node, cannot take away.

    Without that seal, which VPP puts on it, the next reading would end this process. Raises whatever papi raises.
    """
    from vpp_papi.vpp_stats import VPPStats, recv_fd

    stats = VPPStats(str(path))
    stats.lock = _Lock(stats)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(_ANSWER_S)
        connection.connect(str(path))
        descriptor = recv_fd(connection)
    try:
        if not fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
            raise ProvisionError("their memory is not sealed, as VPP does")
        stats.size = os.fstat(descriptor).st_size
        stats.statseg = mmap.mmap(descriptor, stats.size, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)
    if stats.version != _STATISTICS:
        raise ProvisionError(f"their layout has version {stats.version}, and papi knows {_STATISTICS}")
    stats.refresh()
    stats.connected = True
    return stats


def _shown(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in arguments.items())


def _reason(client: Any, code: int) -> str:
    try:
        return str(client.vpp_dictionary_error(code))
    except Exception:
        return f"error {code}"
