"""`ethosu-sdk advise`: what to change about a program, by the records of a run of it."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk import pte, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import json_text, locks
from ethosu_sdk.readers.advise import advice_record, advise_tables, facts
from ethosu_sdk.readers.advise.judgement import judge
from ethosu_sdk.records import Record
from ethosu_sdk.results import bundle, locations, reading as results
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.profile import profile_command
from ethosu_sdk.steps.profile.options import ProfileOptions
from ethosu_sdk.steps.run.options import RunOptions

_NO_COMPILE = "there is no record of `compile` beside the program: `ethosu-sdk advise MODEL` makes one"
_VALIDATE = "make the run again; `ethosu-sdk validate RUN_DIR` names records that were changed"
_NO_DEBUG = f"there is no {results.DEBUG_NAME} beside the run: `ethosu-sdk debug MODEL -o RUN_DIR` makes one"


def advise(
    subject: str,
    compile_options: CompileOptions,
    run_options: RunOptions,
    out_dir: Path | None,
    reporter: Reporter,
) -> Record:
    """Judge `subject`, the folder of a run, or a model or program that is profiled first; the record that was
    written."""
    done = profile_command.profile(
        subject, compile_options, run_options, ProfileOptions(), out_dir, reporter.for_step()
    )
    found, files = _facts(done)
    try:
        record = advice_record.make(found, judge(found), files)
    except OverflowError as error:  # JSON has numbers without end, floats do not
        raise InputError("a number in a record of the run is too large to be judged", _VALIDATE) from error
    schema.check(record, "the advice")
    with locks.locked(done.folder), bundle.published(done.folder, "advise") as add:
        json_text.write_json(done.folder / advice_record.RECORD_NAME, record)
        add(advice_record.RECORD_NAME)
    reporter.show(*advise_tables.tables(record, done.folder))
    reporter.emit(record)
    return record


def _facts(done: profile_command.Profiled) -> tuple[facts.Facts, list[tuple[str, Path]]]:
    """The facts of a profiled program, and the files that they are from."""
    compiled_file = locations.compile_record(done.pte)
    debug_file = done.run_folder / results.DEBUG_NAME
    compiled, why = _read(compiled_file, results.COMPILE, done, _NO_COMPILE)
    debug, why_not = _read(debug_file, results.DEBUG, done, _NO_DEBUG)
    missing = {facts.COMPILE: why, facts.DEBUG: why_not}
    found = facts.of(pte.read(done.pte), done.record, compiled or {}, debug or {}, missing)
    files = [("model", done.pte), ("profile", done.folder / profile_command.RECORD_NAME)]
    files += [("compile", compiled_file)] if compiled is not None else []
    files += [("debug", debug_file)] if debug is not None else []
    return found, files


def _read(path: Path, kind: str, done: profile_command.Profiled, absent: str) -> tuple[Record | None, str]:
    """The record of `kind` at `path`, or why there is none. InputError when it is not what it says."""
    if not path.is_file():
        return None, absent
    record = results.read(path)
    if record["schema"] != kind:
        raise InputError(
            f"{path} is a {record['schema']}, not a {kind}", "give the folder of a run as it was made"
        )
    if record["model"]["sha256"] != done.record["model"]["sha256"]:
        return None, f"{path.name} is about another program"
    return record, ""
