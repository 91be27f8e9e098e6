# SPDX-License-Identifier: BSD-3-Clause
"""``nginx`` with wrk over persistent connections, and ``tls``: nginx with ab, one handshake per request."""

from __future__ import annotations

import hashlib
import re
from typing import ClassVar

from pytest_icbench.driver.application.protocol import (
    Application,
    ProcessSpec,
    Program,
    ProofFailed,
    SendRequest,
    count,
    number,
)
from pytest_icbench.model.application import Bounds, ClientFigures
from pytest_icbench.model.codec import DamagedData, from_json
from pytest_icbench.model.rig import FILES, Question

_SERVER = Program("nginx", "nginx-light", ("-v",), r"nginx/(\S+)")
_BODY = "body"
#: One process, no access log, and every path below the directory of its files.
_CONFIGURATION = """daemon off;
master_process off;
user root root;
pid @files/pid;
error_log stderr error;
events { worker_connections 2048; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path @files/1; proxy_temp_path @files/2; fastcgi_temp_path @files/3;
  uwsgi_temp_path @files/4; scgi_temp_path @files/5;
  server {
    listen LISTEN;
    CERTIFICATE
    root @files;
    location = /status { stub_status; }
  }
}
"""
#: wrk's hook for the end of a run, which prints exact numbers. Its report rounds them.
_REPORT = """done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('{"requests": %d, "bytes": %d, "us": %d, "errors": %d, "mean": %.3f, "max": %d',
    summary.requests, summary.bytes, summary.duration, e.connect + e.read + e.write + e.status + e.timeout,
    latency.mean, latency.max))
  for _, p in ipairs({50, 90, 99, 99.9}) do io.write(string.format(', "p%g": %d', p, latency:percentile(p))) end
  io.write('}\\n')
end
"""
_MAKE_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=icbench -days 30"
    " -keyout @files/key.pem -out @files/certificate.pem -config @files/request.conf"
)
#: Containers have no OpenSSL configuration.
_REQUEST = "[req]\ndistinguished_name = name\n[name]\n"


class _Http(Application):
    server: ClassVar[Program] = _SERVER
    connections: ClassVar[Bounds | None] = Bounds(4, 1, 1024)
    message_bytes: ClassVar[Bounds | None] = Bounds(64, 1, 10_000_000)
    _scheme: ClassVar[str] = "http"

    @property
    def _body(self) -> str:
        return ("icbench " * (self.load.message_bytes // 8 + 1))[: self.load.message_bytes]

    def _configuration(self, address: str, certificate: str = "") -> dict[str, str]:
        listen = f"{address}:{self.port}{' ssl' if certificate else ''}"
        return {
            "nginx.conf": _CONFIGURATION.replace("LISTEN", listen).replace("CERTIFICATE", certificate),
            _BODY: self._body,
        }

    def _get(self, ask: SendRequest, path: str) -> tuple[str, str]:
        request = f"GET /{path} HTTP/1.1\r\nHost: icbench\r\nConnection: close\r\n\r\n"
        answer = ask(Question(self.port, request, via="tls" if self._scheme == "https" else "tcp"))
        head, _, body = answer.partition("\r\n\r\n")
        if not head.startswith("HTTP/1.1 200 "):
            raise self.wrong_answer(f"GET /{path}", answer, "HTTP/1.1 200")
        return head, body

    def prepare(self, ask: SendRequest) -> tuple[str, ...]:
        _, body = self._get(ask, _BODY)
        sums = [hashlib.sha256(text.encode("latin-1")).hexdigest() for text in (body, self._body)]
        if sums[0] != sums[1]:
            raise ProofFailed(
                f"the server at port {self.port} answered with {len(body)} bytes whose SHA-256 is {sums[0][:12]}…, not"
                f" with the {len(self._body)} of the file, {sums[1][:12]}…"
            )
        return ("the SHA-256 of the body is the file's",)

    def count_served(self, ask: SendRequest) -> float | None:
        _, body = self._get(ask, "status")
        match = re.search(r"^\s*\d+ \d+ (\d+)\s*$", body, re.MULTILINE)
        if match is None:
            raise self.wrong_answer("GET /status", body)
        return float(count(match[1], "count", self.server))

    def tolerance(self, figures: ClientFigures) -> float:
        """Returns the requests outstanding at the end, one per connection, and the status request itself."""
        return self.load.connections + 1.0


class Nginx(_Http):
    """nginx with one process and wrk with one thread."""

    name: ClassVar[str] = "nginx"
    summary: ClassVar[str] = "nginx with wrk: HTTP over persistent connections"
    client: ClassVar[Program] = Program("wrk", "wrk", ("-v",), r"wrk (?:debian/)?(\S+)")
    port: ClassVar[int] = 8080

    def serve(self, address: str) -> ProcessSpec:
        return ProcessSpec(("nginx", "-p", FILES, "-c", f"{FILES}/nginx.conf"), self._configuration(address))

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        argv = ("wrk", "-t", "1", "-c", str(self.load.connections), "-d", f"{seconds:.0f}s")
        url = f"http://{address}:{self.port}/{_BODY}"
        return ProcessSpec((*argv, "-s", f"{FILES}/report.lua", url), {"report.lua": _REPORT})

    def parse(self, output: str, operations: int) -> ClientFigures:
        line = next((line for line in output.splitlines() if line.startswith('{"requests"')), "")
        try:
            values = {name: number(value, name, self.client) for name, value in from_json(line, "").items()}
            return ClientFigures(
                operations=int(values["requests"]),
                seconds=values["us"] / 1e6,
                errors=int(values["errors"]),
                payload_bytes=int(values["bytes"]),
                mean_ns=values["mean"] * 1e3,
                p50_ns=values["p50"] * 1e3,
                p90_ns=values["p90"] * 1e3,
                p99_ns=values["p99"] * 1e3,
                p99_9_ns=values["p99.9"] * 1e3,
                max_ns=values["max"] * 1e3,
            )
        except (DamagedData, KeyError):
            raise self.client.unreadable("line of figures", output) from None


class Tls(_Http):
    """nginx with one process and a certificate made for the launch; ab with one handshake per request."""

    name: ClassVar[str] = "tls"
    summary: ClassVar[str] = "nginx with ab: HTTPS, a handshake for each request"
    client: ClassVar[Program] = Program("ab", "apache2-utils", ("-V",), r"Version (\S+)")
    port: ClassVar[int] = 8443
    counted: bool = True
    #: A handshake takes milliseconds.
    first_operations: ClassVar[int] = 50
    _scheme: ClassVar[str] = "https"

    def serve(self, address: str) -> ProcessSpec:
        certificate = f"ssl_certificate {FILES}/certificate.pem; ssl_certificate_key {FILES}/key.pem;"
        line = f"{_MAKE_CERTIFICATE} && exec nginx -p {FILES} -c {FILES}/nginx.conf"
        return ProcessSpec(("sh", "-c", line), {"request.conf": _REQUEST, **self._configuration(address, certificate)})

    def drive(self, address: str, *, seconds: float, operations: int) -> ProcessSpec:
        argv = ("ab", "-q", "-n", str(operations), "-c", str(self.load.connections))
        return ProcessSpec((*argv, f"https://{address}:{self.port}/{_BODY}"))

    def parse(self, output: str, operations: int) -> ClientFigures:
        wanted = {
            "complete": r"^Complete requests:\s+(\S+)",
            "failed": r"^Failed requests:\s+(\S+)",
            "rate": r"^Requests per second:\s+(\S+)",
            "mean": r"^Time per request:\s+(\S+) \[ms\] \(mean\)",
            "bytes": r"^Document Length:\s+(\S+)",
        }
        values: dict[str, float] = {}
        for name, pattern in wanted.items():
            match = re.search(pattern, output, re.MULTILINE)
            if match is None:
                raise self.client.unreadable(f"line for {name}", output)
            values[name] = number(match[1], name, self.client)
        if not values["rate"]:
            raise self.client.unreadable("rate above 0", output)
        wrong = values["complete"] if values["bytes"] != len(self._body) else values["failed"]
        shares = {
            share: match
            for share in (50, 90, 99)
            if (match := re.search(rf"^\s+{share}%\s+(\d+)", output, re.MULTILINE)) is not None
        }
        p50, p90, p99 = (
            number(shares[share][1], f"{share}%", self.client) * 1e6 if share in shares else None
            for share in (50, 90, 99)
        )
        return ClientFigures(
            operations=values["complete"],
            seconds=values["complete"] / values["rate"],
            errors=round(wrong),
            mean_ns=values["mean"] * 1e6,
            p50_ns=p50,
            p90_ns=p90,
            p99_ns=p99,
        )
