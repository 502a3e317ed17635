"""How a program is compiled once more: the command line, by the record that `compile` left of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ethosu_sdk.records.compile import Compilation

BOARD_PROFILE = "board profile"
# The options that name files, by the role of the file in the record.
_FILES = {
    "calibration": "--calibration",
    "example inputs": "--inputs",
    "vela configuration": "--vela-config",
    BOARD_PROFILE: "--system",
}


def command(record: Compilation, *more: str, **changed: str) -> str:
    """The command line that makes the program of `record`, with what `changed` names in place of its own value
    (`source`, `target`, `system_config`, `memory_mode`, `quantize`, `io`, `fallback`), and `more` behind it."""
    return shlex.join(["ethosu-sdk", "compile", *arguments(record, **changed), *more])


def arguments(record: Compilation, **changed: str) -> Iterator[str]:
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
    fallback = changed.get("fallback", options.fallback)
    yield from (() if fallback is None else ("--fallback", fallback))
    for flag in options.vela_flags:
        yield f"--extra-vela-flag={flag}"


def files(record: Compilation) -> Iterator[str]:
    """The options that name files, which lie where the user had them."""
    for row in record.provenance.inputs:
        if row.role in _FILES:
            yield from (_FILES[row.role], row.file)
