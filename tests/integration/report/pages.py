"""Programs to report on, with the records beside them."""

import shutil
from pathlib import Path
from typing import Any

from ethosu_sdk.base import json_text
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import check_record, compile_record
from ethosu_sdk.compile.compile_facts import CompileRequest
from tests.conftest import DEFAULT_TARGET, ZooPte

Record = dict[str, Any]


def beside_its_record(name: str, zoo_pte: ZooPte, folder: Path) -> Path:
    """A compiled network in `folder`, with the record that `compile` writes beside it."""
    compiled = zoo_pte(name)
    asked = CompileRequest(f"zoo:{name}", parse_target(DEFAULT_TARGET), compiled.pte.parent)
    record = check_record.check_left_out(compile_record.compile_record(asked, compiled, "0" * 64, 0.0))
    program = folder / f"{name}.pte"
    shutil.copy(compiled.pte, program)
    json_text.write_json(folder / f"{name}.compile.json", record)
    return program
