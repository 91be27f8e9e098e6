# SPDX-License-Identifier: BSD-3-Clause
"""The applications by name: built-in and third-party ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_icbench.driver.application.dns import Dns
from pytest_icbench.driver.application.iperf3 import Iperf3
from pytest_icbench.driver.application.memcached import Memcached
from pytest_icbench.driver.application.netperf import Netperf, NetperfStream
from pytest_icbench.driver.application.netpipe import NetPipe
from pytest_icbench.driver.application.nginx import Nginx, Tls
from pytest_icbench.driver.application.open_loop import HttpOpen, MemcachedOpen, RedisOpen, TcpRr, UdpRr
from pytest_icbench.driver.application.protocol import Application
from pytest_icbench.driver.application.redis import Redis
from pytest_icbench.driver.application.sockperf import Sockperf
from pytest_icbench.driver.unique_names import index_by_name
from pytest_icbench.model.application import label_of, load_of

_BUILTIN: tuple[type[Application], ...] = (
    Iperf3,
    Redis,
    Memcached,
    Nginx,
    Tls,
    Sockperf,
    Netperf,
    NetperfStream,
    NetPipe,
    Dns,
    TcpRr,
    UdpRr,
    RedisOpen,
    MemcachedOpen,
    HttpOpen,
)

_known: dict[str, type[Application]] = {cls.name: cls for cls in _BUILTIN}

#: Stands for all applications.
ALL = "all"


def applications() -> Mapping[str, type[Application]]:
    """Returns all applications by name."""
    return dict(_known)


def bring(classes: Iterable[type[Application]]) -> None:
    """Replaces the third-party applications of this process. Raises UsageError if two have the same name."""
    known = index_by_name(_BUILTIN, classes, hook="pytest_icbench_applications", plural="applications")
    _known.clear()
    _known.update(known)


def labels(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """Returns the distinct labels of the loads in ``texts``; ``all`` stands for every application.

    Raises UsageError for an unknown one; ``where`` begins the message.
    """
    chosen: dict[str, None] = {}
    for text in texts:
        names = tuple(_known) if text == ALL else (text,)
        for name in names:
            load = load_of(name, _known, where)
            chosen[label_of(load, _known[load.name])] = None
    return tuple(chosen)


def application(label: str, versions: Mapping[str, str] | None = None) -> Application:
    """Returns the application of a case's label. Raises UsageError for an unknown one.

    ``versions``: known versions of its programs, by name.
    """
    load = load_of(label, _known, "app")
    return _known[load.name](load, versions)
