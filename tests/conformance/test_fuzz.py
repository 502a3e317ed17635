"""A small campaign in every session; scripts/npu-fuzz runs the large one."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from campaigns.fuzz import campaign
from campaigns.fuzz.mutations import Sample, sample
from ethosu_sdk.base import proc
from ethosu_sdk.npu.machine import Machine
from tests.conformance.conftest import Corpus
from tests.conformance.selection import Pair
from tests.places import ROOT

pytestmark = pytest.mark.torch

PAIRS = [
    Pair("networks", "encoder_layer", "ethos-u55-64"),
    Pair("networks", "inverted_residual", "ethos-u65-512"),
    Pair("networks", "encoder_layer", "ethos-u85-1024"),
    Pair("numeric", "convolution_ties", "ethos-u85-256"),
]


@pytest.mark.parametrize("count", [250, pytest.param(1200, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_damaged_streams_end_in_a_result_or_a_named_error(
    corpus: Corpus, pair: Pair, count: int, tmp_path: Path
) -> None:
    for number, delegate in enumerate(corpus(pair)):
        (tmp_path / f"{number}.bin").write_bytes(delegate.payload)
    argv = [sys.executable, "-m", "campaigns.fuzz.campaign", str(tmp_path), str(count), "1"]
    done = proc.run(argv, cwd=ROOT, timeout_s=count * campaign.TIME_LIMIT_S)
    report = json.loads(done.output)
    assert sum(report["outcomes"].values()) == count
    # Damage that is always refused at once would prove little.
    assert report["outcomes"]["result"] > count / 20
    assert len(report["outcomes"]) >= 4


def test_a_write_outside_of_a_region_would_be_noticed(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: a machine that writes behind a region."""
    pair = PAIRS[0]
    seed = campaign.seed_of(corpus(pair)[0].payload)

    def escaping(self: object, stream: bytes) -> None:
        regions = self._memory._regions  # type: ignore[attr-defined]
        whole = regions[1].base
        whole[-1] = 0

    monkeypatch.setattr(Machine, "run", escaping)
    with pytest.raises(campaign.Escaped):
        campaign.run_sample(seed, seed.sample)


def test_samples_are_the_streams_they_came_from() -> None:
    words = np.array([0x4000 | 0x021, 0xFFFF_FFFF, 0x0000_0002, 0xFFFF_0000], np.uint32)
    given = sample(words.tobytes(), b"\1\2")
    assert [command.size for command in given.commands] == [2, 1, 1]
    assert given.stream == words.tobytes()
    assert isinstance(given, Sample)
