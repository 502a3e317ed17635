"""What the compile record beside a program says of its feeds."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk import pte
from ethosu_sdk.errors import SdkError
from ethosu_sdk.feeds import Feed, parse
from ethosu_sdk.records import Record
from ethosu_sdk.results import locations, reading as results


def feeds(path: Path, program: pte.Pte, plan: pte.ExecutionPlan) -> tuple[Feed, ...]:
    """The feeds that the model's file declares for the method `plan` of the `.pte` at `path`; none if nothing says
    so."""
    return parse(_sequence(path, program, plan).get("feeds", ()))


def reference(path: Path, program: pte.Pte, plan: pte.ExecutionPlan, wanted: tuple[Feed, ...]) -> Path | None:
    """The file with the outputs in PyTorch of steps that are fed as `wanted`; None if there is none."""
    found = _sequence(path, program, plan)
    if "file" not in found or parse(found["feeds"]) != wanted:
        return None
    return path.with_name(Path(found["file"]).name)


def _sequence(path: Path, program: pte.Pte, plan: pte.ExecutionPlan) -> Record:
    try:
        record = results.read(locations.compile_record(path))
    except SdkError:
        return {}
    if record["model"]["sha256"] != program.sha256 or record["model"]["entry"] != plan.name:
        return {}
    found: Record = record.get("sequence", {})
    return found
