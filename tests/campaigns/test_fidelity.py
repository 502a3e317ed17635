"""The comparison with published runs, without another version of Vela; bands of networks left out of the fit."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from campaigns.fidelity import networks, streams
from campaigns.fidelity.comparison import DATA, priced, rows
from campaigns.fidelity.fitting import bands, kept_errors
from campaigns.fidelity.vela import compile_network
from campaigns.grid import PAGES
from ethosu_sdk.npu import program, timing
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.timing.fitted import BANDS
from ethosu_sdk.program import pte
from tests import processes
from tests.places import GOLDEN_PTE, ROOT
from tests.published_systems import system_of
from tests.tables import each

PAGE = (PAGES / "fidelity.md").read_text(encoding="utf-8")


def test_runs_that_cannot_be_rebuilt_are_named(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(
        "model,npu,mode,total,active,rd0,wr0,rd1,wr1\n"
        "no_such_network,u55-128,Shared,30000,29000,,,,\n"
        "mv2_224,u99-128,Shared,30000,29000,,,,\n"
    )
    done = processes.run([ROOT / "scripts" / "fidelity", "--data", table], check=True)
    assert "no_such_network u55-128 Shared: cannot be rebuilt here: the network's layers" in done.stdout
    assert "mv2_224 u99-128 Shared: cannot be rebuilt here: the configuration" in done.stdout


@pytest.mark.torch
def test_a_rebuilt_network_is_priced_near_its_published_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the SDK's own Vela, whose stream differs a little from the published one; MicroNet, Ethos-U55-128."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    system = system_of("u55-128", "Shared")
    compiled = compile_network(
        networks.micronet_kws_medium(), "", system.accelerator, system.system_config, system.memory_mode, None
    )
    cycles, beats = priced(compiled, system)
    assert cycles == pytest.approx(404092, rel=0.10)
    assert beats[0, False] == pytest.approx(127826, rel=0.15)
    stream = program.described(compiled.stream, compiled.config)
    found = timing.price(stream.operations, compiled.config, system.priced, stream.waits)
    assert timing.started(system.priced) + found[-1].elapsed == cycles


def test_bands_follow_from_the_errors_of_networks_left_out() -> None:
    assert bands(kept_errors()) == BANDS


def test_a_larger_error_makes_a_wider_band() -> None:
    first, *others = kept_errors()
    worse = replace(first, error=0.5)
    assert bands([worse, *others])[first.npu][first.macs] >= 50


def test_every_published_network_has_an_error() -> None:
    tables = ("networks.csv", "networks_more.csv", "learning_path.csv")
    judged = (row for name in tables for row in rows(DATA / name) if int(row["total"]) > 25_000)
    published = {f"{row['model']} {row['npu']} {row['mode']}" for row in judged}
    assert {row.run for row in kept_errors()} == published


def test_networks_left_out_are_within_twelve_percent() -> None:
    assert {row.run for row in kept_errors() if abs(row.error) > 0.12} == set()


def test_the_page_quotes_the_bands() -> None:
    quoted = dict(re.findall(r"^\| (ethos-u\d+-\d+) \|.*\| (.+?) \|$", PAGE, re.MULTILINE))
    wanted = {f"{npu}-{macs}": timing.band(npu, macs) for npu in BANDS for macs in BANDS[npu] if macs}
    assert {name: quoted.get(name) for name in wanted} == wanted


def test_a_size_that_was_not_compared_has_the_band_of_its_family() -> None:
    assert "none of 32 MACs per cycle was compared" in timing.band("ethos-u55", 32)
    assert f"±{BANDS['ethos-u55'][0]} %" in timing.band("ethos-u55", 32)


def test_streams_of_a_board_are_within_ten_percent() -> None:
    """The streams that Renesas timed, priced with the memories of the board's profile."""
    found = {(row.network, row.place): row for row in streams.timed()}
    assert len(found) == len(rows(DATA / "streams.csv"))
    assert all(abs(row.error) <= 0.1 for row in found.values())
    # The keyword network has no part on the CPU: its stream alone is what was measured.
    assert all(abs(row.npu_error) <= 0.1 for row in found.values() if row.network == "kws_dscnn")
    assert found["kws_dscnn", "SRAM"].npu_ms > 1.2 * found["kws_dscnn", "MRAM"].npu_ms


@each("name", ("add_u55", "conv_u65_int8"))
def test_a_row_of_figures_costs_what_its_operation_costs(name: str) -> None:
    (delegate,) = pte.read(GOLDEN_PTE / f"{name}.pte").delegates
    assert delegate.vela is not None
    config = NpuConfig.from_word(delegate.vela.config_word)
    segment = program.described(bytes(delegate.vela.command_stream), config)
    again = [streams.operation_of(streams.row_of(op)) for op in segment.operations]
    expected = timing.price(segment.operations, config, None, segment.waits)
    assert timing.price(again, config, None, segment.waits) == expected
