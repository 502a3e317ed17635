"""The files of `export` say what a run's record says, and no line of theirs is one of the record's."""

from collections.abc import Callable

import pytest
import yaml

from ethosu_sdk.analysis import export_command
from ethosu_sdk.program import pte
from ethosu_sdk.records import kinds
from tests.places import GOLDEN_PTE
from tests.records import run_by_executorch

# Each ends a line for one of the formats, or for an editor that shows them.
LINE_ENDS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029")
FORGED = "".join(f'{end}set(FORGED "1")\nCONFIG_FORGED=y{end}    - FORGED: 1' for end in LINE_ENDS)
FORMATS = (export_command.cmake_text, export_command.kconfig_text, export_command.clayer_text)


def _facts(version: str) -> export_command.ExportFacts:
    program = pte.read(GOLDEN_PTE / "softmax.pte")
    run = run_by_executorch()
    run["runtime"]["version"] = version
    found = export_command.pool_sizes(program, "forward", kinds.RUN.convert(run))
    return export_command.ExportFacts(
        "softmax.pte", program.sha256, program.target(), ["aten::_softmax.out"], [], found
    )


@pytest.mark.parametrize("make", FORMATS, ids=lambda make: make.__name__)
def test_a_forged_version_stays_in_its_comment(make: Callable[[export_command.ExportFacts], str]) -> None:
    honest, forged = make(_facts("1.5.1")).splitlines(), make(_facts(f"1.5.1{FORGED}")).splitlines()
    assert any("FORGED" in line for line in forged)
    assert len(forged) == len(honest)
    for before, after in zip(honest, forged, strict=True):
        assert before == after or after.lstrip().startswith("# measured: used in a run by 1.5.1\\x0a")


def test_a_forged_version_defines_nothing() -> None:
    read = [
        yaml.safe_load(export_command.clayer_text(_facts(version))) for version in ("1.5.1", f"1.5.1{FORGED}")
    ]
    assert read[0]["layer"]["define"]
    assert read[0] == read[1]
