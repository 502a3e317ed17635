"""The commands that a reader of a run's page would give next."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ethosu_sdk.base import board_profiles
from ethosu_sdk.records import result_files
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.reporting.pages import run_rows
from ethosu_sdk.reporting.pages.report_inputs import ADVICE, ReportInputs


class Command(NamedTuple):
    """A command line, and what it is for."""

    line: str
    what: str


def next_commands(inputs: ReportInputs) -> Iterator[Command]:
    """The most useful one first."""
    folder, compiled = str(inputs.folder), inputs.record(Compilation)
    if inputs.record(Debug) is None and compiled is not None and _can_debug(compiled):
        words = _without(result_files.recompile_arguments(compiled), "--io")
        what = "compare each layer with the model in PyTorch"
        debug = [_command(what, "debug", *words, *result_files.recompile_files(compiled), "-o", folder)]
    else:
        debug = []
    if inputs.run.verdict.status == "fail":
        yield from debug
    if run_rows.time_of(inputs) is None and compiled is not None:
        yield from _on_a_board(inputs, compiled)
    if ADVICE in inputs.missing and inputs.program is not None and compiled is not None:
        yield _command(
            "compile and run the program with each change that may help", "advise", folder, "--try"
        )
    if inputs.run.verdict.status != "fail":
        yield from debug
    yield _command("run the same again and compare every bit", "verify", folder)


def _on_a_board(inputs: ReportInputs, compiled: Compilation) -> Iterator[Command]:
    """The run again for a board that has the target and clocks of both processors: a product before an FPGA."""
    target = run_rows.target_name(inputs)
    boards = map(board_profiles.find_profile, board_profiles.profile_names())
    for board in sorted(boards, key=lambda board: board.name.startswith("corstone")):
        core = board.cpu.core
        has_clocks = board.cpu.clock_hz is not None and (board.npu_hz is not None or target == core)
        if has_clocks and target in (*board.npus, core):
            own = result_files.recompile_arguments(compiled)
            words = _without(own, "--system-config", "--memory-mode", "--system")
            what = f"the time on a board, such as {board.name} (`ethosu-sdk boards` lists all)"
            yield _command(what, "run", *words, "--system", board.name)
            return


def _can_debug(compiled: Compilation) -> bool:
    """Whether `debug` compiles the same program: it has fewer options."""
    return compiled.options.io == "float" and compiled.options.delegate and compiled.target is not None


def _without(words: Iterator[str], *options: str) -> Sequence[str]:
    """The `words` of a command line without some options and their values."""
    found = list(words)
    before = itertools.chain([""], found)
    return [
        word for last, word in zip(before, found, strict=False) if word not in options and last not in options
    ]


def _command(what: str, *words: str) -> Command:
    return Command(shlex.join(["ethosu-sdk", *words]), what)
