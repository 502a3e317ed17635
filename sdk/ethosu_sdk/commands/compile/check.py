"""The check of `compile`: the program that was made, executed once on the host simulator, against the model that it
was made from."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import aot, cache, npz, records
from ethosu_sdk.commands.compile import check_record
from ethosu_sdk.commands.compile.check_record import Checked
from ethosu_sdk.commands.evaluate.command import in_float
from ethosu_sdk.commands.shared.reporter import Reporter
from ethosu_sdk.errors import SdkError, SimulationError, ToolError
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.records import Record
from ethosu_sdk.report import rounding
from ethosu_sdk.simulators import host
from ethosu_sdk.simulators.host.npu_model import NpuModel

Array = npt.NDArray[Any]

_STATE = (
    "the model keeps a state from inference to inference, and its outputs differ: the program may begin with another "
    "state than PyTorch"
)
_NO_KERNEL = "(ExecuTorch error 0x14)"  # OperatorMissing


@dataclass(frozen=True)
class Check:
    """A check that is asked for: the compiler fills `folder`. Without `locate`, nobody looks for the operation that
    is wrong first."""

    folder: Path
    reporter: Reporter
    locate: bool = True

    def extend(self, record: Record, request: aot.CompileRequest, output: aot.CompileOutput) -> Record:
        """The record of the compilation with what the check found."""
        start = time.monotonic()
        checked = self._checked(output)
        if self.locate and not all(row.explained for row in checked.distances):
            checked = replace(checked, start=self._start(request))
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
        try:
            with self.reporter.stage("checking the program on the host simulator"):
                executed = self._execute(runner, output)
                distances = self._distances(output.check, executed)
        except SdkError as error:
            limit = isinstance(error, UnsupportedCommand) or _NO_KERNEL in error.message
            return Checked(unavailable=error.message) if limit else Checked(failure=error)
        if output.check.stateful and not all(row.explained for row in distances):
            return Checked(unavailable=_STATE)
        return Checked(executed=executed, distances=distances, facts=output.check, runner=runner)

    def _distances(self, facts: aot.CheckFacts, executed: Sequence[Array]) -> list[rounding.Distance]:
        found = []
        rows = zip(facts.outputs, in_float(facts.outputs, executed), strict=True)
        for index, (row, array) in enumerate(rows):
            reference = self._load(f"reference{index}")
            if array.shape != reference.shape:
                raise SimulationError(
                    f"output {index} has the shape {list(array.shape)}, the model's {list(reference.shape)}"
                )
            trials = [self._load(f"trial{number}_{index}") for number in range(facts.trials)]
            step = None if row.quantisation is None else row.quantisation.scale
            near = rounding.distance(array, reference, trials, step, exact=row.exact)
            if facts.ties_up:
                near = replace(near, ties_up=rounding.near(array, self._load(f"ties_up{index}"), near.step))
            found.append(near)
        return found

    def _execute(self, runner: Path, output: aot.CompileOutput) -> list[Array]:
        """The program's outputs for its example inputs. Errors of host simulator and NPU model pass through."""
        content = npz.read_npz(output.io)
        inputs = [content[f"input{index}"] for index in range(len(output.inputs))]
        model = NpuModel()

        def delegate(call: host.DelegateCall) -> list[Array]:
            given = model(call)
            for kind, arrays in (("input", call.inputs), ("output", given)):
                for index, array in enumerate(arrays):
                    path = self.folder / aot.delegate_array(call.payload_sha256, kind, index)
                    if not path.is_file():  # the first call is the one that is looked at
                        np.save(path, array)
            return given

        with host.open_pte(runner, output.pte, delegate) as runtime:
            return runtime.run(inputs)

    def _start(self, request: aot.CompileRequest) -> aot.StartFacts | None:
        """Compile again, with a look at every value; None when no place is found, or this fails."""
        again = replace(request, out_dir=self.folder / "again", evaluation=None, locate=True)
        with self.reporter.stage("looking for the operation that is wrong first") as step:
            try:
                return aot.compile_model(again, step).start
            except SdkError:
                return None  # what the check found stands without it

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
    with records.temporary_directory(".check-", records.make_directory(folder)) as spool:
        yield Check(spool.resolve(), reporter)
