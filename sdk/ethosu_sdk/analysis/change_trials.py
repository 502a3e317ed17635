"""Tries changes of a program: each is compiled, run and profiled as the program was, then the best together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.analysis import profile_command, program_facts
from ethosu_sdk.analysis.options import ProfileOptions
from ethosu_sdk.analysis.profile_command import Profiled
from ethosu_sdk.base import cache, filesystem, npz
from ethosu_sdk.base.errors import InputError, SdkError
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import child_process, compile_command, pricing_system
from ethosu_sdk.compile.child_process import warm_compiler
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.firmware_build.memory_fit import MemoryFitError
from ethosu_sdk.program import cop1, pte
from ethosu_sdk.program.execution_plan import Scalar
from ethosu_sdk.program.output_comparison import Comparison
from ethosu_sdk.records import result_files, trials
from ethosu_sdk.records.bundle import read_record
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import cycles
from ethosu_sdk.records.time_line import headline
from ethosu_sdk.records.trials import Candidate, Distance, Measured, Outcome, Tries
from ethosu_sdk.run import run_command
from ethosu_sdk.run.options import DEVICE, HOST, RunOptions

Array = npt.NDArray[Any]
_CONVERSIONS = ("::quantize_per_tensor.out", "::dequantize_per_tensor.out", "::_clone_dim_order.out")
_ROUNDING = 2.0**-20
_MOST_TOGETHER = 4  # changes that are combined
_GIVE_THE_MODEL = "give the model itself: `ethosu-sdk advise MODEL --try`"


def profiled_program(
    given: str,
    compile_options: CompileOptions,
    run_options: RunOptions,
    out_dir: Path | None,
    reporter: Reporter,
    *,
    too_large: bool,
) -> Profiled:
    """The profile of `given`, as `profile` takes it. With `too_large`, a program that does not fit its board runs on
    the host simulator, which has no board."""
    if cop1.is_stream(Path(given)):
        raise InputError(f"{given} cannot be changed: {cop1.NO_WEIGHTS}", "`ethosu-sdk profile` prices it")
    profile, options = profile_command.profile, ProfileOptions()
    try:
        return profile(given, compile_options, run_options, options, out_dir, reporter)
    except SdkError as error:
        if not too_large or not any(isinstance(row, MemoryFitError) for row in (error, error.__cause__)):
            raise
        reporter.warn(f"{escape(error.message)}; it runs on the host simulator instead")
    run_options = replace(run_options, simulator=HOST, board=None)
    return profile(given, compile_options, run_options, options, out_dir, reporter)


@dataclass(frozen=True)
class TrialSubject:
    """A program that was profiled, and the model's `source` with the options that it was compiled with. A trial runs
    as `run_options` say."""

    done: Profiled
    source: str
    options: CompileOptions
    run_options: RunOptions


def subject_of(
    done: Profiled, given: str, compile_options: CompileOptions, run_options: RunOptions
) -> TrialSubject:
    """The subject behind what `profile` has done for the argument `given` of the command line.

    InputError when the record of `compile` is missing, or the model or a file of its options is not there as it was.
    """
    if done.content.simulator is not None and done.content.simulator.name == DEVICE:
        raise InputError(
            "the run was on a device, and --try runs on simulators", "run it on a simulator first"
        )
    path = result_files.compile_record_path(done.pte)
    record = read_record(path) if path.is_file() else None
    if not isinstance(record, Compilation) or record.model.sha256 != filesystem.sha256_file(done.pte):
        message = f"there is no record of `compile` beside {done.pte}, so it cannot be compiled again"
        raise InputError(message, _GIVE_THE_MODEL)
    source = record.source if Path(given).is_dir() or given.endswith(".pte") else given
    model = parse_model_spec(source).path
    known = [row.sha256 for row in record.provenance.inputs if row.role == "model source"]
    if model is not None and known and filesystem.sha256_file(model) not in known:
        raise InputError(f"{model} is not the file any more that was compiled", _GIVE_THE_MODEL)
    target, system = record.target, compile_options.system
    if not system and record.board_profile is not None:  # by name, but for a file of the user's own
        own = _files(record, result_files.BOARD_PROFILE)
        system = str(own[0]) if own else record.board_profile.name
    options = replace(
        compile_options,
        target=record.target_name,
        system_config=None if target is None else target.system_config,
        memory_mode=None if target is None else target.memory_mode,
        system=system,
        quantize=None if record.prequantized else record.options.quantize,
        quantize_per=record.options.quantize_per or CompileOptions.quantize_per,
        io=record.options.io,
        delegate=record.options.delegate,
        vela_flags=record.options.vela_flags,
        fallback=record.options.fallback,
        as_written=bool(record.options.as_written),
        calibration=tuple(_files(record, "calibration")),
        inputs=next(iter(_files(record, "example inputs")), None),
        vela_config=compile_options.vela_config or next(iter(_files(record, "vela configuration")), None),
    )
    return TrialSubject(done, source, options, replace(run_options, simulator=done.content.simulator_name))


def _files(record: Compilation, role: str) -> list[Path]:
    """The files of `role`, from the working folder or Python: the record has their names. InputError without one."""
    found = []
    for row in record.provenance.inputs:
        if row.role == role:
            path = Path(row.file)
            if not path.is_file():  # or it was given in Python
                path = cache.given_file(row.file, row.sha256)
            if not path.is_file() or filesystem.sha256_file(path) != row.sha256:
                raise InputError(
                    f"{row.file} ({role}) is not in this folder as it was when the program was compiled",
                    "run the command in the folder of that file",
                )
            found.append(path)
    return found


def tried_changes(
    subject: TrialSubject, candidates: Sequence[Candidate], folder: Path, reporter: Reporter
) -> Tries:
    """What comes of `candidates`, one after the other, and of the best ones together. They are made in a temporary
    folder below `folder`. After a Ctrl-C, it is what was done until then."""
    with (
        filesystem.temporary_directory(".try-", folder) as work,
        warm_compiler(work / "compiler.log") as compiler,
    ):
        trying = _Trying(subject, reporter, compiler)
        try:
            trying.prepare(work)
            for number, candidate in enumerate(candidates, start=1):
                trying.one(candidate, f"trying {number} of {len(candidates)}", work / f"{number}")
            trying.together(work)
        except KeyboardInterrupt:
            trying.is_stopped = True
    done = {row.candidate.name for row in trying.outcomes}
    return Tries(
        before=trying.before,
        exact=trying.exact_distance,
        simulator=subject.done.content.simulator_name,
        outcomes=tuple(trying.outcomes),
        left=tuple(row.name for row in candidates if row.name not in done),
        is_stopped=trying.is_stopped,
    )


@dataclass
class _Trying:
    """The state of the work: outcomes so far. `own` are the outputs of the program as it is, `exact` those of the
    model in floating point, `inputs` the example inputs that all of them are for."""

    subject: TrialSubject
    reporter: Reporter
    compiler: child_process.Compiler
    outcomes: list[Outcome] = field(default_factory=list)
    own: Sequence[Array] = ()
    exact: Sequence[Array] = ()
    inputs: Sequence[Array] = ()
    is_stopped: bool = False

    def prepare(self, work: Path) -> None:
        """Read what trials are compared with; the model in floating point is exported for that."""
        done = self.subject.done
        self.own = _outputs(done)
        self.inputs = _examples(done.pte, "input")
        plain: dict[str, Any] = {"quantize": "none", "io": "float", "delegate": False, "check": False}
        options = replace(self.subject.options, calibration=(), vela_flags=(), **plain)
        try:
            with self.reporter.stage("computing the outputs of the model in floating point"):
                path = self._compiled(options, work / "float")
        except SdkError:
            return
        same = _are_example_inputs(done.pte, self.inputs, _examples(path, "input"))
        self.exact = _examples(path, "output") if same else ()

    def together(self, work: Path) -> None:
        """The best change with the next best that still helps, and so on."""
        before = self.before
        rows = trials.combinable(before, self.exact_distance, self.outcomes)
        if not rows:
            return
        best, *others = rows
        for number, other in enumerate(others):
            if len(best.candidate.parts) >= _MOST_TOGETHER or not best.candidate.fits_with(other.candidate):
                continue
            both = best.candidate.with_(other.candidate)
            outcome = self.one(both, "trying together", work / f"together-{number}")
            if trials.trial_state(before, self.exact_distance, outcome) != "better":
                continue
            if trials.is_better(before, best, outcome):
                best = outcome
            else:
                self.outcomes.remove(outcome)  # the other change adds nothing

    @cached_property
    def before(self) -> Measured:
        return _measured(self.subject.done)

    @property
    def exact_distance(self) -> Distance | None:
        """The distance of the program as it is from floating point."""
        return distance_of_outputs(self.exact, self.own) if self.exact else None

    def one(self, candidate: Candidate, what: str, work: Path) -> Outcome:
        """Try a change by itself; what came of it."""
        with self.reporter.stage(f"{what}: {escape(candidate.change)}"):
            try:
                outcome = self._outcome(candidate, work)
            except SdkError as error:
                hint = f" ({error.hint})" if error.hint else ""
                outcome = Outcome(candidate, reason=f"{error.message}{hint}")
            self.outcomes.append(outcome)  # before it is told, since a Ctrl-C may come then
        return outcome

    def _outcome(self, candidate: Candidate, work: Path) -> Outcome:
        subject = self.subject
        options = replace(subject.options, lines=candidate.lines, **candidate.options)
        path = self._compiled(options, work)
        priced = CompileOptions(system=subject.options.system, vela_config=subject.options.vela_config)
        done = profile_command.profile(
            str(path), priced, subject.run_options, ProfileOptions(), work, _Silent()
        )
        if options.io == subject.options.io == "float":
            inputs = distance_of_outputs(_examples(path, "input"), self.inputs)
            if inputs.equal < inputs.elements:
                why = "the model's example inputs differ each time its file is executed"
                return Outcome(candidate, _measured(done), why_no_distance=why)
        found = _outputs(done)
        return Outcome(
            candidate,
            _measured(done),
            changed=distance_of_outputs(self.own, found),
            exact=distance_of_outputs(self.exact, found) if self.exact else None,
        )

    def _compiled(self, options: CompileOptions, folder: Path) -> Path:
        return compile_command.compile_model(
            self.subject.source, options, folder, _Silent(), compiler=self.compiler
        )


class _Silent(Reporter):
    """Says nothing: what a trial would warn of is in its outcome, or was said of the program itself."""

    def __init__(self) -> None:
        super().__init__(quiet=True)

    def for_step(self) -> Reporter:
        return self

    def warn(self, text: str) -> None:
        pass


def _examples(path: Path, prefix: str) -> list[Array]:
    """The example inputs or outputs that `compile` left beside the program at `path`."""
    return _numbered(npz.read_npz(result_files.example_io_path(path)), prefix)


def _numbered(arrays: Mapping[str, Array], prefix: str) -> list[Array]:
    return [arrays[f"{prefix}{index}"] for index in range(sum(name.startswith(prefix) for name in arrays))]


def _measured(done: Profiled) -> Measured:
    program, profile = pte.read(done.pte), done.content
    time = headline(profile)
    cpu = profile.totals.cpu.cycles
    own = pricing_system.pricing_of_program(done.pte, program)
    is_in_sram = own is not None and own.system.constants.interface == 0
    calls: Counter[str] = Counter()
    for row in profile.operations:
        if row.runs_on == "CPU" and not row.name.endswith(_CONVERSIONS):
            calls[row.name] += row.calls
    return Measured(
        npu_cycles=cycles(profile.totals.npu.cycles, "modelled"),
        cpu_cycles=None if cpu is None else int(cpu.value),
        time_ms=None if time is None else time.total.duration_s * 1e3,
        sram_bytes=0 if own is None else program_facts.sram_bytes(program, own.system),
        flash_bytes=0 if is_in_sram else program.size,
        fits=not program_facts.lacking_room(
            done.pte, program, pricing_system.board_of_program(done.pte, program)
        ),
        cpu_calls=dict(calls),
    )


def _outputs(done: Profiled) -> list[Array]:
    arrays = npz.read_npz(done.run_folder / run_command.OUTPUTS_NAME)
    program, found = pte.read(done.pte), []
    for index, array in enumerate(_numbered(arrays, "output")):
        scale, zero_point = _quantisation(program, f"output{index}")
        if array.dtype not in (np.int8, np.int16) or scale is None or zero_point is None:
            found.append(array)
        else:
            found.append(((array.astype(np.float64) - zero_point) * scale).astype(np.float32))
    return found


def _quantisation(program: pte.Pte, name: str) -> tuple[float | None, float | None]:
    """Scale and zero point of the quantised tensor `name`, as constant methods of the program have them."""
    return _constant(program, f"{name}_scale"), _constant(program, f"{name}_zp")


def _are_example_inputs(path: Path, stored: Sequence[Array], given: Sequence[Array]) -> bool:
    """Whether `stored`, the example inputs of the program at `path`, are those `given` in floating point; quantised
    ones to within a step, since a tie may be rounded either way."""
    if [row.shape for row in stored] != [row.shape for row in given]:
        return False
    program = pte.read(path)
    for index, (row, other) in enumerate(zip(stored, given, strict=True)):
        scale, zero_point = _quantisation(program, f"input{index}")
        if row.dtype == other.dtype or not scale or zero_point is None:
            is_same = _equal(other, row) == other.size
        else:
            limits = np.iinfo(row.dtype)
            steps = np.clip(np.rint(other.astype(np.float64) / scale) + zero_point, limits.min, limits.max)
            is_same = bool((np.abs(steps - row) <= 1).all())
        if not is_same:
            return False
    return True


def _constant(program: pte.Pte, method: str) -> float | None:
    """What the constant method `method` returns; None where the program has none."""
    try:
        plan = program.plan(method)
    except SdkError:
        return None
    (index,) = plan.outputs
    value = plan.values[index]
    number = value.value if isinstance(value, Scalar) else None
    return float(number) if isinstance(number, int | float) else None


def distance_of_outputs(reference: Sequence[Array], candidate: Sequence[Array]) -> Distance:
    """The least SQNR among all outputs, and how many elements are equal but for the rounding of floating point.
    Nothing is equal, and the SQNR is -inf, where shapes differ."""
    if [row.shape for row in reference] != [row.shape for row in candidate]:
        return Distance(elements=sum(row.size for row in reference), equal=0, sqnr_db=-math.inf)
    elements, equal, least_db = 0, 0, math.inf
    for one, other in zip(reference, candidate, strict=True):
        row = Comparison()
        row.add(0, one, other)
        elements += row.elements
        equal += _equal(one, other)
        if (np.isfinite(one) & ~np.isfinite(other)).any():
            least_db = -math.inf
        elif not math.isnan(row.sqnr_db):
            least_db = min(least_db, row.sqnr_db)
    return Distance(elements, equal, least_db)


def _equal(one: Array, other: Array) -> int:
    """How many elements are equal, to within 2^-20 of the largest finite one: so far the scales of two calibrations
    may differ."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    is_finite = np.isfinite(one) & np.isfinite(other)
    largest = float(np.abs(one[np.isfinite(one)]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        close = np.abs(one - other) <= _ROUNDING * largest
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return int(np.count_nonzero(np.where(is_finite, close, same)))
