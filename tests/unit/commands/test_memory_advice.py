"""What to type when a program does not fit its memory: a record that is none says nothing, and stops nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.errors import BuildError
from ethosu_sdk.files import hashing
from ethosu_sdk.firmware_build import MemoryFitError
from ethosu_sdk.steps.shared import memory_advice
from tests.places import ROOT

EXAMPLE = ROOT / "schemas" / "examples" / "valid" / "compile-add.json"
MODE = "Shared_Sram"

Record = dict[str, Any]


def _hint(folder: Path, change: Callable[[Record], object], *, less_scratch: bool = True) -> str:
    """The hint for a program whose record went through `change`; `less_scratch` would make it fit."""
    program = folder / "add.pte"
    program.write_bytes(b"a program")
    record = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    record["model"]["sha256"] = hashing.sha256_file(program)
    change(record)
    (folder / "add.compile.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(BuildError) as caught, memory_advice.added(program, compiled_here=False):
        raise MemoryFitError("too large", "", mode=MODE, less_scratch=less_scratch)
    return caught.value.hint


def test_the_record_tells_how_to_compile_again(tmp_path: Path) -> None:
    hint = _hint(tmp_path, lambda record: None)
    assert "try: ethosu-sdk compile zoo:add --target ethos-u55-128" in hint
    assert f"--memory-mode {MODE}" in hint
    assert "--optimise=Size" in hint
    assert "--optimise=Size" not in _hint(tmp_path, lambda record: None, less_scratch=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(model=[]),
        lambda record: record.update(options=None),
        lambda record: record["options"].update(vela_flags=3),
        lambda record: record["target"].update(npu=[]),
        lambda record: record.update(source=3),
        lambda record: record.update(source=f"{'a' * 300}.py"),
        lambda record: record["provenance"].update(inputs="text"),
    ],
    ids=["model", "options", "flags", "target", "source", "name", "inputs"],
)
def test_a_forged_record_tells_nothing(change: Callable[[Record], object], tmp_path: Path) -> None:
    assert "compile" not in _hint(tmp_path, change)
