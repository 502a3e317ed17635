"""Vela compiles for every target, system configuration and memory mode that the SDK lets go together."""

import textwrap
from pathlib import Path

import pytest

from ethosu_sdk.base.targets import accelerator, families
from tests import warm
from tests.conftest import ZooPte
from tests.records import read

pytestmark = pytest.mark.torch

# One process for all: a Vela run of a tiny graph takes milliseconds, its import seconds.
COMPILE_ALL = """
import json, sys
from pathlib import Path
from ethosu_sdk.compile import lowering, vela_capture
from ethosu_sdk.base.targets import families, parse_target
from ethosu_sdk.npu import vela_blocks
from executorch.backends.arm.ethosu.backend import EthosUBackend
tosa, found = Path(sys.argv[1]).read_bytes(), []
sys.stdout = sys.stderr
for family in families().values():
    for system, modes in family.system_configs.items():
        for mode in modes:
            for macs in family.macs:
                target = parse_target(f"{family.name}-{macs}", system, mode)
                with vela_capture.runs_captured() as captures:
                    result = EthosUBackend._compile_tosa_flatbuffer(tosa, lowering.compile_spec(target))
                blocks = vela_blocks.parse(bytes(result.processed_bytes))
                (seen,) = captures
                found.append([target.name, system, mode, blocks.config_word, seen.estimates[0].value])
Path(sys.argv[2]).write_text(json.dumps(found))
"""


@pytest.mark.thorough
def test_every_allowed_combination_compiles(zoo_pte: ZooPte, tmp_path: Path) -> None:
    graph = zoo_pte("add").pte.with_name("delegate0.tosa")
    warm.python("-c", textwrap.dedent(COMPILE_ALL), graph, tmp_path / "found.json")
    found = read(tmp_path / "found.json")
    assert len(found) == 166
    assert {tuple(row[:3]) for row in found} == {
        (f"{family.name}-{macs}", system, mode)
        for family in families().values()
        for system, modes in family.system_configs.items()
        for mode in modes
        for macs in family.macs
    }
    for name, _, _, config_word, cycles in found:
        assert accelerator(config_word) == name
        assert cycles > 0
