"""`ethosu-sdk advise`: suggest changes to a program, based on the records of its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, get_args

from ethosu_sdk import schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.files import json_text, locks
from ethosu_sdk.readers.advise import advice_record, advise_tables, facts
from ethosu_sdk.readers.advise.candidates import candidates as candidates_of
from ethosu_sdk.readers.advise.verdict import judge
from ethosu_sdk.records import kinds
from ethosu_sdk.records.advice import Advice, CandidateKind
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.records.kind import RecordKind
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.results import bundle, locations
from ethosu_sdk.results.reading import read_record
from ethosu_sdk.results.run_facts import ProgramFacts
from ethosu_sdk.results.trials import Candidate, Tries
from ethosu_sdk.targets import suggestion

About = TypeVar("About", Compilation, Debug)

_NO_COMPILE = "there is no record of `compile` beside the program: `ethosu-sdk advise MODEL` makes one"
_VALIDATE = "make the run again; `ethosu-sdk validate RUN_DIR` names records that were changed"
_NO_DEBUG = f"there is no {kinds.DEBUG.file} beside the run: `ethosu-sdk debug MODEL -o RUN_DIR` makes one"


@dataclass(frozen=True)
class Inputs:
    """What is judged: a `profile`, written to `folder`, with the folder of its run, the program and its facts."""

    folder: Path
    run_folder: Path
    pte: Path
    profile: Profile
    program: ProgramFacts


def kinds_of_changes(names: str | None) -> tuple[CandidateKind, ...]:
    """The kinds of changes in the list `names`; all without one. UsageError for a name that is none."""
    known: tuple[CandidateKind, ...] = get_args(CandidateKind)
    wanted = known if names is None else tuple(word.strip() for word in names.split(","))
    for word in wanted:
        if word not in known:
            raise UsageError(f"there are no changes of the kind '{word}'", suggestion(word, known))
    return tuple(row for row in known if row in wanted)


def candidates(inputs: Inputs, wanted: Sequence[CandidateKind]) -> tuple[Candidate, ...]:
    """What can be tried of the `wanted` kinds. InputError without a record of `compile`."""
    found, _ = _facts(inputs)
    if found.compilation is None:
        raise InputError(f"nothing can be tried: {found.missing[facts.COMPILE]}")
    return tuple(row for row in candidates_of(found, judge(found).advice) if row.kind in wanted)


def advise(inputs: Inputs, reporter: Reporter, tries: Tries | None = None) -> Advice:
    """Judge a profiled program, with what came of `tries`; the record that was written."""
    found, files = _facts(inputs)
    try:
        record = advice_record.make(found, judge(found), files, tries)
    except OverflowError as error:  # JSON has numbers without end, floats do not
        raise InputError("a number in a record of the run is too large to be judged", _VALIDATE) from error
    content = record.to_json()
    schema.check(content, "the advice")
    with locks.locked(inputs.folder), bundle.published(inputs.folder, "advise") as add:
        json_text.write_json(inputs.folder / advice_record.RECORD_NAME, content)
        add(advice_record.RECORD_NAME)
    reporter.show(*advise_tables.tables(record, inputs.folder))
    reporter.emit(content)
    return record


def _facts(inputs: Inputs) -> tuple[facts.Facts, list[tuple[str, Path]]]:
    """The facts of a profiled program, and the files that they are from."""
    compiled_file = locations.compile_record(inputs.pte)
    debug_file = inputs.run_folder / kinds.DEBUG.file
    compiled, why = _read(compiled_file, kinds.COMPILE, inputs, _NO_COMPILE)
    debug, why_not = _read(debug_file, kinds.DEBUG, inputs, _NO_DEBUG)
    missing = {facts.COMPILE: why, facts.DEBUG: why_not}
    found = facts.of(inputs.program, inputs.profile, compiled, debug, missing)
    files = [("model", inputs.pte), ("profile", inputs.folder / kinds.PROFILE.file)]
    files += [("compile", compiled_file)] if compiled is not None else []
    files += [("debug", debug_file)] if debug is not None else []
    return found, files


def _read(path: Path, kind: RecordKind[About], inputs: Inputs, absent: str) -> tuple[About | None, str]:
    """The record of `kind` at `path`, or why there is none. InputError when it is not what it says."""
    if not path.is_file():
        return None, absent
    record = read_record(path)
    if not isinstance(record, kind.content):
        raise InputError(
            f"{path} is a {kinds.schema(record)}, not a {kind.schema}",
            "give the folder of a run as it was made",
        )
    if record.model.sha256 != inputs.profile.model.sha256:
        return None, f"{path.name} is about another program"
    return record, ""
