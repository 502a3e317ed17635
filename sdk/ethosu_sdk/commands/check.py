"""The check of `compile`: the program that was made, executed once on the host simulator, against the model that it
was made from."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import aot, cache, npz, records
from ethosu_sdk.commands import check_record
from ethosu_sdk.commands.check_record import Checked
from ethosu_sdk.commands.evaluate import in_float
from ethosu_sdk.commands.reporter import Reporter
from ethosu_sdk.errors import SdkError, ToolError
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.records import Record
from ethosu_sdk.report import rounding
from ethosu_sdk.simulators import host
from ethosu_sdk.simulators.host.npu_model import NpuModel

Array = npt.NDArray[Any]

_NO_KERNEL = "(ExecuTorch error 0x14)"  # OperatorMissing


@dataclass(frozen=True)
class Check:
    """A check that is asked for: the compiler fills `folder`."""

    folder: Path
    reporter: Reporter

    def extend(self, record: Record, output: aot.CompileOutput) -> Record:
        """The record of the compilation with what the check found."""
        start = time.monotonic()
        checked = self._checked(output)
        seconds = output.timings_s["check"] + time.monotonic() - start
        return check_record.extend(record, checked, seconds)

    def _checked(self, output: aot.CompileOutput) -> Checked:
        if output.check is None:
            return Checked(unavailable="the compiler left nothing to compare with")
        try:
            with self.reporter.stage("building the host runner (the first time only)"):
                runner = host.build_runner(cache.directory(host.CACHE_PART))
        except ToolError as error:
            return Checked(unavailable=f"the host simulator cannot be built: {error.message}")
        with self.reporter.stage("checking the program on the host simulator"):
            try:
                executed = _execute(runner, output)
            except UnsupportedCommand as error:
                return Checked(unavailable=error.message)
            except SdkError as error:
                if _NO_KERNEL in error.message:
                    return Checked(unavailable=f"ExecuTorch's host runtime lacks a kernel: {error.message}")
                return Checked(failure=error)
            return Checked(
                executed=executed,
                distances=self._distances(output.check, executed),
                facts=output.check,
                runner=runner,
            )

    def _distances(self, facts: aot.CheckFacts, executed: Sequence[Array]) -> list[rounding.Distance]:
        return [
            rounding.distance(
                array,
                self._load(f"reference{index}"),
                [self._load(f"trial{number}_{index}") for number in range(facts.trials)],
                None if row.quantisation is None else row.quantisation.scale,
                exact=row.exact,
            )
            for index, (row, array) in enumerate(
                zip(facts.outputs, in_float(facts.outputs, executed), strict=True)
            )
        ]

    def _load(self, name: str) -> Array:
        array: Array = np.load(self.folder / f"{name}.npy")
        return array


@contextmanager
def prepared(wanted: bool, folder: Path, reporter: Reporter) -> Iterator[Check | None]:
    """A folder below `folder` for what the compiler leaves; None when no check is wanted."""
    if not wanted:
        yield None
        return
    # Not in the system's temporary folder, which may be in memory: outputs can be large.
    with tempfile.TemporaryDirectory(prefix=".check-", dir=records.make_directory(folder)) as spool:
        yield Check(Path(spool).resolve(), reporter)


def _execute(runner: Path, output: aot.CompileOutput) -> list[Array]:
    """The program's outputs for its example inputs. Errors of host simulator and NPU model pass through."""
    content = npz.read_npz(output.io)
    inputs = [content[f"input{index}"] for index in range(len(output.inputs))]
    with host.open_pte(runner, output.pte, NpuModel()) as runtime:
        return runtime.run(inputs)
