"""What is tried on: a program that was profiled, and how its model is compiled again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk.aot.model.spec import parse_model_spec
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import hashing
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.results import compile_again, locations
from ethosu_sdk.results.reading import read_record
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.profile.profile_command import Profiled
from ethosu_sdk.steps.run.options import RunOptions

_GIVE_THE_MODEL = "give the model itself: `ethosu-sdk advise MODEL --try`"
_MODEL_SOURCE = "model source"


@dataclass(frozen=True)
class Subject:
    """The profile of a program, the folder of its run, the program, and the model's `source` with the options that it
    was compiled with. A trial runs as `run_options` say."""

    profile: Profile
    run_folder: Path
    pte: Path
    source: str
    options: CompileOptions
    run_options: RunOptions


def of(done: Profiled, given: str, compile_options: CompileOptions, run_options: RunOptions) -> Subject:
    """The subject behind what `profile` has done for the argument `given` of the command line.

    InputError when the record of `compile` is missing, or the model or a file of its options is not there as it was.
    """
    record = _compilation(done)
    source = record.source if Path(given).is_dir() or given.endswith(".pte") else given
    _check_source(source, record)
    target = record.target
    options = replace(
        compile_options,
        target=record.target_name,
        system_config=None if target is None else target.system_config,
        memory_mode=None if target is None else target.memory_mode,
        system=compile_options.system or _board_profile(record),
        quantize=None if record.prequantized else record.options.quantize,
        quantize_per=record.options.quantize_per or CompileOptions.quantize_per,
        io=record.options.io,
        delegate=record.options.delegate,
        vela_flags=record.options.vela_flags,
        fallback=record.options.fallback,
        calibration=tuple(_files(record, "calibration")),
        inputs=next(iter(_files(record, "example inputs")), None),
        vela_config=compile_options.vela_config or next(iter(_files(record, "vela configuration")), None),
    )
    profile = done.content
    return Subject(
        profile,
        done.run_folder,
        done.pte,
        source,
        options,
        replace(run_options, simulator=profile.simulator.name),
    )


def _compilation(done: Profiled) -> Compilation:
    path = locations.compile_record(done.pte)
    record = read_record(path) if path.is_file() else None
    if not isinstance(record, Compilation) or record.model.sha256 != hashing.sha256_file(done.pte):
        raise InputError(
            f"there is no record of `compile` beside {done.pte}, so it cannot be compiled again",
            _GIVE_THE_MODEL,
        )
    return record


def _check_source(source: str, record: Compilation) -> None:
    """InputError unless the model's file is there and is the one that was compiled."""
    spec = parse_model_spec(source)
    if spec.path is None:
        return
    known = [row.sha256 for row in record.provenance.inputs if row.role == _MODEL_SOURCE]
    if known and hashing.sha256_file(spec.path) not in known:
        raise InputError(f"{spec.path} is not the file any more that was compiled", _GIVE_THE_MODEL)


def _files(record: Compilation, role: str) -> list[Path]:
    """The files of `role`, from the working folder: the record has only their names. InputError without one."""
    found = []
    for row in record.provenance.inputs:
        if row.role == role:
            path = Path(row.file)
            if not path.is_file() or hashing.sha256_file(path) != row.sha256:
                raise InputError(
                    f"{row.file} ({role}) is not in this folder as it was when the program was compiled",
                    "run the command in the folder of that file",
                )
            found.append(path)
    return found


def _board_profile(record: Compilation) -> str | None:
    """The board profile by name; None where there is none, or it is a file of the user's own."""
    if record.board_profile is None:
        return None
    own = _files(record, compile_again.BOARD_PROFILE)
    return str(own[0]) if own else record.board_profile.name
