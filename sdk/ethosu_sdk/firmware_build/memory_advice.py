"""What to type when a program does not fit its memory mode: whole command lines, not names of options alone."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import BuildError, SdkError
from ethosu_sdk.base.targets import families
from ethosu_sdk.compile.model_spec import parse_model_spec
from ethosu_sdk.firmware_build.memory_fit import MemoryFitError
from ethosu_sdk.records import result_files
from ethosu_sdk.records.bundle import read_record
from ethosu_sdk.records.compile import Compilation

_SPILL = ("--allow-spill",)
_SIZE = "--optimise=Size"


@contextlib.contextmanager
def advice_added(path: Path, *, compiled_here: bool) -> Iterator[None]:
    """Add commands to the hint of a MemoryFitError from the block, which is about the program at `path`.

    With `compiled_here` the command at hand compiles the program itself, and takes the options of `compile`.
    """
    try:
        yield
    except MemoryFitError as error:
        remedies = [("--memory-mode", error.mode)] if error.mode and compiled_here else []
        again = "" if compiled_here or not error.mode else _compile_command(path, error.mode)
        tried = f"try: {again}, then the same again" if again else ""
        schedule = _smaller_schedule(path) if error.less_scratch else ""
        raise BuildError(
            error.message,
            "\n".join(text for text in (error.hint, schedule, tried) if text),
            remedies=(*remedies, *([_SPILL] if error.spill else [])),
        ) from error


def _smaller_schedule(path: Path) -> str:
    """What Vela's other goal could bring, for a program that `compile` made without it; empty for others."""
    with contextlib.suppress(SdkError, OSError):
        record = read_record(result_files.compile_record_path(path))
        if not isinstance(record, Compilation) or record.model.sha256 != filesystem.sha256_file(path):
            return ""
        spec = parse_model_spec(record.source)
        is_there = spec.path is None or spec.path.is_file()
        if record.delegates and _SIZE not in record.options.vela_flags and is_there:
            return (
                f"--extra-vela-flag={_SIZE} has Vela schedule for the least SRAM; `ethosu-sdk advise "
                f"{shlex.quote(record.source)} --try` tries that and other changes, and shows which fit"
            )
    return ""


def _compile_command(path: Path, mode: str) -> str:
    """How the program at `path` is compiled for another memory mode, by the record that `compile` left beside it.

    Empty where there is no record, or it lacks what is needed.
    """
    try:
        record = read_record(result_files.compile_record_path(path))
        if not isinstance(record, Compilation):
            return ""
        if record.model.sha256 != filesystem.sha256_file(path) or not _is_complete(record):
            return ""
        return result_files.recompile_command(record, *_folder(path, record), memory_mode=mode)
    except (SdkError, OSError):  # the record may name a file whose name no file system takes
        return ""


def _is_complete(record: Compilation) -> bool:
    """Whether the record has everything that the command needs: it has the names of files, not their folders."""
    spec = parse_model_spec(record.source)
    target = record.target
    return (
        (spec.path is None or spec.path.is_file())
        and not any(result_files.recompile_files(record))
        and target is not None
        and target.system_config in families()[target.npu].system_configs
    )


def _folder(path: Path, record: Compilation) -> list[str]:
    """-o, unless the program lies where `compile` puts it by itself."""
    usual = Path(result_files.BUILD_FOLDER) / f"{path.stem}-{record.target_name}"
    return [] if path.parent.resolve() == usual.resolve() else ["-o", str(path.parent)]
