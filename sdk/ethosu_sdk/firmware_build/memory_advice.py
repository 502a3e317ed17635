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
from ethosu_sdk.records.bundle import compilation_of
from ethosu_sdk.records.compile import Compilation

_SIZE = "--optimise=Size"


@contextlib.contextmanager
def advice_added(path: Path, *, compiled_here: bool) -> Iterator[None]:
    """Add commands to the hint of a MemoryFitError from the block, which is about the program at `path`.

    With `compiled_here` the command at hand compiles the program itself, and takes the options of `compile`.
    """
    try:
        yield
    except MemoryFitError as error:
        remedies: list[tuple[str, ...]] = []
        if error.mode and compiled_here:
            remedies.append(("--memory-mode", error.mode))
        if error.spill:
            remedies.append(("--allow-spill",))
        hints = [error.hint]
        # The record may be damaged, or name a file whose name no file system takes.
        with contextlib.suppress(SdkError, OSError):
            record = compilation_of(result_files.compile_record_path(path), filesystem.sha256_file(path))
            if record is not None and _has_model(record):
                hints += _other_ways(path, record, error, compiled_here=compiled_here)
        raise BuildError(error.message, "\n".join(filter(None, hints)), remedies=tuple(remedies)) from error


def _has_model(record: Compilation) -> bool:
    """Whether the model is there: the record has the names of files, not their folders."""
    spec = parse_model_spec(record.source)
    return spec.path is None or spec.path.is_file()


def _other_ways(
    path: Path, record: Compilation, error: MemoryFitError, *, compiled_here: bool
) -> Iterator[str]:
    """What to try with the program that `compile` made with `record`: Vela's other goal, another memory mode."""
    if error.less_scratch and record.delegates and _SIZE not in record.options.vela_flags:
        yield (
            f"--extra-vela-flag={_SIZE} has Vela schedule for the least SRAM; `ethosu-sdk advise "
            f"{shlex.quote(record.source)} --try` tries that and other changes, and shows which fit"
        )
    target = record.target
    if compiled_here or not error.mode or target is None or any(result_files.recompile_files(record)):
        return
    if target.system_config in families()[target.npu].system_configs:
        usual = Path(result_files.BUILD_FOLDER) / f"{path.stem}-{record.target_name}"
        folder = [] if path.parent.resolve() == usual.resolve() else ["-o", str(path.parent)]
        again = result_files.recompile_command(record, *folder, memory_mode=error.mode)
        yield f"try: {again}, then the same again"
