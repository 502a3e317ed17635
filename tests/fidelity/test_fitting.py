"""Error bands are those of networks that the fit left out, and the page and the code agree on them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ethosu_sdk.npu import timing
from ethosu_sdk.npu.timing.fitted import BANDS
from tests.fidelity.comparison import DATA, rows
from tests.fidelity.fitting import bands, kept_errors
from tests.places import ROOT

PAGE = (ROOT / "docs" / "reference" / "fidelity.md").read_text(encoding="utf-8")


def test_bands_follow_from_the_errors_of_networks_left_out() -> None:
    assert bands(kept_errors()) == BANDS


def test_a_larger_error_makes_a_wider_band() -> None:
    first, *others = kept_errors()
    worse = replace(first, error=0.5)
    assert bands([worse, *others])[first.npu][first.macs] >= 50


def test_every_published_network_has_an_error() -> None:
    tables = ("networks.csv", "networks_more.csv", "learning_path.csv")
    published = {f"{row['model']} {row['npu']} {row['mode']}" for name in tables for row in rows(DATA / name)}
    assert {row.run for row in kept_errors()} == published


def test_networks_left_out_are_within_twelve_percent() -> None:
    assert {row.run for row in kept_errors() if abs(row.error) > 0.12} == set()


@pytest.mark.parametrize(("npu", "macs"), [(npu, macs) for npu in BANDS for macs in BANDS[npu] if macs])
def test_the_page_quotes_the_bands(npu: str, macs: int) -> None:
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {npu}-{macs} |"))
    assert line.endswith(f"| {timing.band(npu, macs)} |")


def test_a_size_that_was_not_compared_has_the_band_of_its_family() -> None:
    assert "none of 32 MACs per cycle was compared" in timing.band("ethos-u55", 32)
    assert f"±{BANDS['ethos-u55'][0]} %" in timing.band("ethos-u55", 32)
