"""The comparison with published runs, where no other version of Vela is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ethosu_sdk.npu import program, timing
from tests import processes
from tests.fidelity import networks
from tests.fidelity.comparison import priced
from tests.fidelity.systems import system_of
from tests.fidelity.vela import compile_network
from tests.places import ROOT


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
