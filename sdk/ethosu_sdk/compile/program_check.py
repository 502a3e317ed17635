"""The check of `compile`: the program, executed once on the host simulator, against the model it was made from."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base import cache, filesystem
from ethosu_sdk.base.errors import SdkError, SimulationError, ToolError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import check_record, compile_facts, distance
from ethosu_sdk.compile.check_record import Checked
from ethosu_sdk.compile.child_process import compile_model
from ethosu_sdk.compile.distance import Distance, linked_output
from ethosu_sdk.compile.evaluation import in_float
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.records.compile import Dialect, LinkOutput, Reading, Start
from ethosu_sdk.simulate import host_runtime
from ethosu_sdk.simulate.host_runtime import NpuModel

Array = npt.NDArray[Any]

_NO_KERNEL = "(ExecuTorch error 0x14)"  # OperatorMissing


@dataclass(frozen=True)
class ProgramCheck:
    """A check that is asked for: the compiler fills `folder`. Without `locate`, nobody looks for the operation that
    is wrong first. `least_db` is the lowest signal-to-noise ratio of the quantised model that passes."""

    folder: Path
    reporter: Reporter
    locate: bool = True
    least_db: float | None = None

    def extend(
        self, record: Record, request: compile_facts.CompileRequest, output: compile_facts.CompileOutput
    ) -> Record:
        """The record of the compilation with what the check of each method found."""
        start = time.monotonic()
        found = [
            self._of_method(request, output, number, row) for number, row in enumerate(output.all_methods)
        ]
        seconds = output.timings_s["check"] + time.monotonic() - start
        extended = check_record.extend_with_check(record, found[0], seconds)
        extended = check_record.extend_with_chain(extended, output.chain, found[0].linked, self.least_db)
        for number, (row, checked) in enumerate(zip(output.other_methods, found[1:], strict=True)):
            extended = check_record.extend_with_methods(extended, number, row, checked, self.least_db)
        return extended

    def _of_method(
        self,
        request: compile_facts.CompileRequest,
        output: compile_facts.CompileOutput,
        number: int,
        row: compile_facts.MethodFacts,
    ) -> Checked:
        folder = compile_facts.method_folder(self.folder, row.name)
        checked = _MethodCheck(folder, self.reporter, output.pte, row).checked()
        if self.locate and request.core is None and not checked.explained:
            checked = replace(checked, start=self._start(request, number))
        return checked

    def _start(self, request: compile_facts.CompileRequest, number: int) -> Start | None:
        """Compile again, with a look at every value; None when no place is found, or this fails."""
        again = replace(request, out_dir=self.folder / "again", evaluation=None, locate=True)
        with self.reporter.stage("looking for the operation that is wrong first") as step:
            try:
                return compile_model(again, step).all_methods[number].start
            except SdkError:
                return None  # what the check found stands without it


@dataclass(frozen=True)
class _MethodCheck:
    folder: Path
    reporter: Reporter
    pte: Path
    method: compile_facts.MethodFacts

    def checked(self) -> Checked:
        facts, reporter = self.method.check, self.reporter
        if facts is None:
            return Checked(unavailable="the compiler left nothing to compare with")
        if facts.readings and all(row.reason for row in facts.readings):
            reasons = "; ".join(f"{row.interpreter}: {row.reason}" for row in facts.readings)
            return Checked(unavailable=f"no other interpreter ran the model: {reasons}")
        try:
            with reporter.stage("building the host runner (the first time only)"):
                runner = host_runtime.build_runner(cache.directory_or_own(host_runtime.CACHE_PART))
        except ToolError as error:
            reason = error.message.partition("\n")[0]
            return Checked(unavailable=f"the host simulator cannot be built: {reason}")
        try:
            with reporter.stage("checking the program on the host simulator"):
                executed = self._execute(runner, facts.samples)
                if facts.readings:
                    return replace(
                        self._readings(facts, executed), executed=executed[0], facts=facts, runner=runner
                    )
                distances = self._distances(facts, executed)
        except SdkError as error:
            limit = isinstance(error, UnsupportedCommand) or _NO_KERNEL in error.message
            return Checked(unavailable=error.message) if limit else Checked(failure=error)
        return Checked(
            executed[0],
            distances,
            facts,
            runner,
            linked=self._linked(facts, executed),
            dialect=self._dialect(executed) if facts.dialect else None,
        )

    def _readings(self, facts: compile_facts.CheckFacts, executed: Sequence[Sequence[Array]]) -> Checked:
        """The program against every interpreter that ran the user's file. The figures of the outputs are those of the
        nearest one, of equally near ones the first."""
        rows: list[Reading] = []
        nearest, least = Checked(), math.inf
        for number, reading in enumerate(facts.readings):
            name, rounding = reading.interpreter, reading.rounding or None
            if reading.reason:
                rows.append(Reading(interpreter=name, rounding=rounding, reason=reading.reason))
                continue
            kind = f"reading{number}_"
            found = [
                self._exact_distances(facts, executed, kind, index) for index in range(len(facts.outputs))
            ]
            each = [row for output in found for row in output]
            elements, equal = sum(row.elements for row in each), sum(row.equal for row in each)
            largest = max(
                row.largest.executed / row.step for row in each if row.largest is not None and row.step
            )
            rows.append(
                Reading(interpreter=name, rounding=rounding, elements=elements, equal=equal, largest=largest)
            )
            if elements - equal < least:
                least = elements - equal
                worst = [next((row for row in output if not row.explained), output[0]) for output in found]
                nearest = Checked(distances=worst, linked=self._linked(facts, executed, kind))
        return replace(nearest, readings=tuple(rows))

    def _exact_distances(
        self, facts: compile_facts.CheckFacts, executed: Sequence[Sequence[Array]], kind: str, index: int
    ) -> list[Distance]:
        """The distances of an output on each sample from a reading."""
        form = facts.outputs[index].quantisation
        found = []
        for sample, outputs in enumerate(executed):
            array, wanted = outputs[index], self._load(kind, sample, index)
            if (array.shape, array.dtype) != (wanted.shape, wanted.dtype):
                given, there = (f"{row.dtype} {list(row.shape)}" for row in (array, wanted))
                raise SimulationError(f"output {index} is {given}, the model's {there}")
            near = distance.exact_distance(array, wanted, form.scale if form is not None else None)
            found.append(replace(near, sample=sample))
        return found

    def _dialect(self, executed: Sequence[Sequence[Array]]) -> Dialect:
        """How many elements, over all samples, have the bits of the Cortex-M dialect's references."""
        elements = equal = 0
        for sample, outputs in enumerate(executed):
            for index, array in enumerate(outputs):
                wanted = self._load("dialect", sample, index)
                elements += array.size
                if (wanted.shape, wanted.dtype) == (array.shape, array.dtype):
                    pairs = (
                        np.ascontiguousarray(row).reshape(-1, 1).view(np.uint8) for row in (array, wanted)
                    )
                    equal += int(np.equal(*pairs).all(axis=1).sum())
        return Dialect(elements=elements, equal=equal)

    def _distances(
        self, facts: compile_facts.CheckFacts, executed: Sequence[Sequence[Array]]
    ) -> list[Distance]:
        """The distance of each output on the first sample, or on the first one where rounding does not explain it."""
        found = []
        for index in range(len(facts.outputs)):
            rows = (self._distance(facts, executed, sample, index) for sample in range(facts.samples))
            first = next(rows)
            wrong = None if not first.explained else next((row for row in rows if not row.explained), None)
            found.append(wrong or first)
        return found

    def _distance(
        self, facts: compile_facts.CheckFacts, executed: Sequence[Sequence[Array]], sample: int, index: int
    ) -> Distance:
        row = facts.outputs[index]
        array = in_float(facts.outputs, executed[sample])[index]
        reference = self._load("reference", sample, index)
        if array.shape != reference.shape:
            raise SimulationError(
                f"output {index} has the shape {list(array.shape)}, the model's {list(reference.shape)}"
            )
        step = None if row.quantisation is None else row.quantisation.scale
        trials = self._trials(facts, sample, index, reference)
        near = distance.distance(array, reference, trials, step, exact=row.exact)
        if facts.ties_up and sample == 0:
            near = replace(near, ties_up=distance.near(array, self._load("ties_up", 0, index), near.step))
        return replace(near, sample=sample)

    def _trials(
        self, facts: compile_facts.CheckFacts, sample: int, index: int, reference: Array
    ) -> list[Array]:
        """The sample's own trials, and the others' distances of the first sample around this one's `reference`."""
        first = self._load("reference", 0, index)
        found = []
        for number in range(facts.trials):
            name = f"trial{number}_"
            if (self.folder / compile_facts.sample_array(name, sample, index)).is_file():
                found.append(self._load(name, sample, index))
            else:
                found.append(distance.moved(reference, first, self._load(name, 0, index)))
        return found

    def _linked(
        self, facts: compile_facts.CheckFacts, executed: Sequence[Sequence[Array]], kind: str = "reference"
    ) -> tuple[LinkOutput, ...]:
        rows = [in_float(facts.outputs, sample) for sample in executed]
        return tuple(
            linked_output(
                index,
                f"output{index}",
                np.stack([row[index] for row in rows]),
                np.stack([self._load(kind, sample, index) for sample in range(facts.samples)]),
            )
            for index in range(len(facts.outputs))
        )

    def _execute(self, runner: Path, samples: int) -> list[list[Array]]:
        """The program's outputs for its samples in a row. Errors of host simulator and NPU model pass through."""
        rows = [
            [self._load("input", sample, index) for index in range(len(self.method.inputs))]
            for sample in range(samples)
        ]
        model = NpuModel()

        def delegate(call: host_runtime.DelegateCall) -> list[Array]:
            given = model(call)
            for kind, arrays in (("input", call.inputs), ("output", given)):
                for index, array in enumerate(arrays):
                    path = self.folder / compile_facts.delegate_array(call.payload_sha256, kind, index)
                    if not path.is_file():  # the first call is the one that is looked at
                        np.save(path, array)
            return given

        with host_runtime.open_pte(runner, self.pte, delegate, method=self.method.name) as runtime:
            return [runtime.run(inputs) for inputs in rows]

    def _load(self, kind: str, sample: int, index: int) -> Array:
        array: Array = np.load(self.folder / compile_facts.sample_array(kind, sample, index))
        return array


@contextmanager
def prepared_check(
    wanted: bool, folder: Path, reporter: Reporter, least_db: float | None = None
) -> Iterator[ProgramCheck | None]:
    """A folder below `folder` for what the compiler leaves; None when no check is wanted."""
    if not wanted:
        yield None
        return
    # Not in the system's temporary folder, which may be in memory: outputs can be large.
    with filesystem.temporary_directory(".check-", filesystem.make_directory(folder)) as spool:
        yield ProgramCheck(spool.resolve(), reporter, least_db=least_db)
