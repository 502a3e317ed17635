"""`run --resident`: the program goes into a firmware that is there already, in place of one built for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ethosu_sdk import boards, cache, pte, resources
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.evidence import input_image
from ethosu_sdk.files import hashing
from ethosu_sdk.firmware_build import resident
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.protocol import PROGRAM_HEADER_SYMBOL, PROGRAM_MEMORY_SYMBOL
from ethosu_sdk.records import Record
from ethosu_sdk.results import locations
from ethosu_sdk.steps import build_command
from ethosu_sdk.steps.run.job import RunJob


@dataclass(frozen=True)
class Loaded:
    """A `.pte` that was read, the resident firmware, and what must lie in memory for it to run the one."""

    program: pte.Pte
    firmware: Executable
    record: Record
    images: tuple[tuple[int, bytes], ...] = field(repr=False)


def load(job: RunJob, reporter: Reporter) -> Loaded:
    """The resident firmware of the job's board, built if it is missing or stale, and the images of its program.

    Raises BuildError when the program does not fit; the option `allow_spill` as in `build`.
    """
    path, program, board = job.path, job.program, job.choice.board
    areas = None if job.priced is None else job.priced.areas
    with reporter.stage("preparing the resident firmware (built the first time only)"):
        firmware = resident.build(_folder(board), board)
    notes = resident.check_fit(
        program, job.plan.name, firmware.board, areas, allow_spill=job.options.allow_spill
    )
    for note in notes:
        reporter.warn(escape(note))
    mode = resident.mode_number(program.target(), areas)
    images = (
        (firmware.symbols[PROGRAM_MEMORY_SYMBOL].address, locations.content(path, program)),
        (
            firmware.symbols[PROGRAM_HEADER_SYMBOL].address,
            input_image.encode_program_header(program.size, mode),
        ),
    )
    regions = [build_command.use(row.name, row.used_bytes, row.size_bytes) for row in firmware.regions]
    return Loaded(program, firmware, {"memory": {"regions": regions}, "notes": notes}, images)


def _folder(board: str | None) -> Path:
    """In the cache, one for each firmware tree."""
    tree = hashing.sha256_bytes(str(resources.directory("firmware")).encode())
    return cache.directory(f"resident/{board or boards.BOARDS[0]}-{tree[:16]}")
