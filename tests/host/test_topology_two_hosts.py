# SPDX-License-Identifier: BSD-3-Clause
"""A topology in which one pair is on this host and one across two, as in the thesis' listing 4.1."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_icbench.config.topology import default, to_toml
from tests.host.remote_runs import Run, clean_on_both
from tests.second_host import SecondHost, other, unsupported_reason

__all__ = ["other"]  # a fixture

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.slow,
    pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason())),
]

SCENARIO = """
import pytest

@pytest.mark.icbench(switch="linux-bridge", api="raw", rate="2k", burst=1, pairs=[1, 2], repeats=1, warmup=0.05,
                     duration=0.2, drain=0.3, max_duration=1, reference=False)
def test_rate(icbench):
    icbench.gate(icbench.throughput())
"""


def test_pairs_of_both_kinds_in_one_file(other: SecondHost, tmp_path: Path) -> None:
    """The first pair alone needs no second host; with the second pair one container is there."""
    text = to_toml(default(2)).replace('name = "c3"\nhost = "local"', 'name = "c3"\nhost = "remote"')
    text = text.replace("198.18.2.", "10.0.3.").replace("02:00:00:00:02:", "02:00:00:00:77:")
    assert text.count("remote") == 1
    (tmp_path / "lab.toml").write_text(text)
    with clean_on_both(other):
        run = Run(tmp_path, other, "--icbench-topology=lab.toml", scenario=SCENARIO)
        assert run.wait() == 0, run.output
    one, two = sorted(run.results(), key=lambda result: str(result["case"]), reverse=False)
    assert (one["case"].endswith("1vs1-R2k"), two["case"].endswith("2vs2-R2k-remote")) == (True, True)
    assert two["treatment"]["away"] == [3]
    assert [pair["received"] > 0 for pair in two["figures"]["per_pair"]] == [True, True]
    assert two["treatment"]["topology"]["containers"][3]["ip"] == "10.0.3.2"
