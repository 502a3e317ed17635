"""Programs to report on, with the records beside them."""

import shutil
from pathlib import Path
from typing import Any

from ethosu_sdk.aot import CompileRequest
from ethosu_sdk.files import json_text
from ethosu_sdk.steps.compile import check_record, compile_record
from ethosu_sdk.targets import parse_target
from tests.conftest import DEFAULT_TARGET, ZooPte

Record = dict[str, Any]


def beside_its_record(name: str, zoo_pte: ZooPte, folder: Path) -> Path:
    """A compiled network in `folder`, with the record that `compile` writes beside it."""
    compiled = zoo_pte(name)
    asked = CompileRequest(f"zoo:{name}", parse_target(DEFAULT_TARGET), compiled.pte.parent)
    record = check_record.left_out(compile_record.make(asked, compiled, "0" * 64, 0.0))
    program = folder / f"{name}.pte"
    shutil.copy(compiled.pte, program)
    json_text.write_json(folder / f"{name}.compile.json", record)
    return program
