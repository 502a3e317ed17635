"""Files of results: where they lie, the files of a program, CSV, and how a program is compiled once more."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ethosu_sdk.base import file_kinds, filesystem
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import AnyTarget, Target
from ethosu_sdk.program import pte
from ethosu_sdk.records import kinds, provenance, rules
from ethosu_sdk.records.common import ProvenanceInput
from ethosu_sdk.records.compile import Compilation

BUILD_FOLDER = (
    "build"  # in the working folder: results go to `build/<model>-<target>…/`, unless -o says otherwise
)
DATA_ROLE = "data"  # of a data file (`.ptd`) that a program uses
BOARD_PROFILE = "board profile"
_MAKE_ONE = "give a .pte file; `ethosu-sdk compile` makes one from a model"
# The options that name files, by the role of the file in the record.
_FILES = {
    "calibration": "--calibration",
    "example inputs": "--inputs",
    "vela configuration": "--vela-config",
    BOARD_PROFILE: "--system",
}


def folder_for_pte(pte: Path, target: Target | None, chosen: Path | None) -> Path:
    """The output folder for a ready `.pte`, created: the folder that `compile` made for it, else a new one."""
    return filesystem.make_directory(place_for_pte(pte, target, chosen))


def place_for_pte(pte: Path, target: Target | None, chosen: Path | None) -> Path:
    """Where :func:`folder_for_pte` has it."""
    if chosen is None and compile_record_path(pte).is_file():
        return pte.parent
    return place_for_model(pte.stem, target, chosen)


def place_for_model(
    name: str, target: AnyTarget | None, chosen: Path | None, settings: Sequence[str] = ()
) -> Path:
    """The output folder for the model `name`, which need not exist. A program that delegates nothing has no target.

    `settings` are words for what else makes it another program than the one that `name` and `target` alone stand for.
    """
    words = (name, target.name if target is not None else "cpu", *settings)
    return chosen or Path(BUILD_FOLDER) / "-".join(words)


def compile_record_path(pte: Path) -> Path:
    """The record that `compile` writes beside its `.pte`."""
    return pte.with_name(kinds.COMPILE.name(pte.stem))


def example_io_path(pte: Path, method: str | None = None) -> Path:
    """The example inputs and outputs of a method that `compile` writes beside its `.pte`; None: of the first."""
    own = pte.with_name(f"{pte.stem}.{method}.io.npz")
    return own if method is not None and own.is_file() else pte.with_name(f"{pte.stem}.io.npz")


def require_pte(path: Path) -> Path:
    """`path`, if it is a file whose name ends in .pte. InputError otherwise."""
    if not path.exists():
        hint = file_kinds.nearest_file(path, ".pte") or _MAKE_ONE
        model = path.with_suffix(".py")
        if model.is_file():
            hint = f"`ethosu-sdk compile {model}` makes a program of the model"
        raise InputError(f"there is no file {path}", hint)
    if path.suffix != ".pte":
        kind = file_kinds.recognise(path)
        if kind is not None and kind.id == "pte":
            raise InputError(
                f"{path} does not end in .pte", "it is a compiled program: rename it so that it ends in .pte"
            )
        raise file_kinds.not_a(path, "a .pte file", _MAKE_ONE)
    if rules.leaves(path.name):
        raise InputError(
            f"the name of {path} cannot be recorded: on other systems it would be a path",
            "rename it without a backslash and without a colon after the first letter",
        )
    return path


def pte_content(path: Path, program: pte.Pte) -> bytes:
    """The bytes of `program`, read again from `path`. InputError if the file has changed."""
    data = filesystem.file_content(path, program.size)
    if filesystem.sha256_bytes(data) != program.sha256:
        raise InputError(f"{path} changed while it was being read")
    return data


def program_entries(path: Path, program: pte.Pte) -> list[Record]:
    """The rows of `provenance.inputs` for the program at `path`: the `.pte` and the data files that it uses."""
    return [
        provenance.file_entry("model", path, program.sha256),
        *(
            {"role": DATA_ROLE, "file": row.path.name, "bytes": row.size, "sha256": row.sha256}
            for row in program.data_files
        ),
    ]


def program_of_run(path: Path, rows: Sequence[ProvenanceInput], data: Sequence[Path] = ()) -> pte.Pte:
    """The program at `path` with the data files of a record, whose inputs are `rows`; see :func:`pte.read`."""
    program = pte.read(path, data)
    check_program_data(program, rows)
    return program


def check_program_data(program: pte.Pte, rows: Sequence[ProvenanceInput]) -> None:
    """InputError when the data files of `program` are not those of a record, whose inputs are `rows`."""
    recorded = {row.sha256: row.file for row in rows if row.role == DATA_ROLE}
    here = {row.sha256: row.path for row in program.data_files}
    other = next((path for sha256, path in here.items() if sha256 not in recorded), None)
    missing = next((name for sha256, name in recorded.items() if sha256 not in here), None)
    if other is not None or missing is not None:
        raise InputError(
            f"the program's data file {other or missing} is not the one of the record: its SHA-256 differs",
            "give the data files of that run, or run the program again",
        )


def recompile_command(record: Compilation, *more: str, **changed: str) -> str:
    """The command line that makes the program of `record`, with what `changed` names in place of its own value
    (`source`, `target`, `system_config`, `memory_mode`, `quantize`, `io`, `fallback`), and `more` behind it."""
    return shlex.join(["ethosu-sdk", "compile", *recompile_arguments(record, **changed), *more])


def recompile_arguments(record: Compilation, **changed: str) -> Iterator[str]:
    """The same, word by word, without the command's name. A record has only the names of files, not their folders."""
    target, options = record.target, record.options
    yield changed.get("source", record.source)
    yield from ("--target", changed.get("target", record.target_name))
    if target is not None:
        yield from ("--system-config", changed.get("system_config", target.system_config))
        yield from ("--memory-mode", changed.get("memory_mode", target.memory_mode))
    if record.board_profile is not None and all(
        row.role != BOARD_PROFILE for row in record.provenance.inputs
    ):
        yield from ("--system", record.board_profile.name)
    quantize = changed.get("quantize", options.quantize)
    if not record.prequantized and quantize is not None:
        yield from ("--quantize", quantize)
    if options.quantize_per is not None:
        yield from ("--quantize-per", options.quantize_per)
    yield from ("--io", changed.get("io", options.io))
    yield from (() if options.delegate else ("--no-delegate",))
    yield from (("--as-written",) if options.as_written else ())
    fallback = changed.get("fallback", options.fallback)
    yield from (() if fallback is None else ("--fallback", fallback))
    for flag in options.vela_flags:
        yield f"--extra-vela-flag={flag}"


def recompile_files(record: Compilation) -> Iterator[str]:
    """The options that name files, which lie where the user had them."""
    for row in record.provenance.inputs:
        if row.role in _FILES:
            yield from (_FILES[row.role], row.file)


def csv_table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """A line with the names of `columns`, then one for each row, empty where a row has no such value."""
    return csv_lines(columns, ([row.get(name, "") for name in columns] for row in rows))


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The same for rows that are in the order of `columns`; lines end as on Unix."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
