"""Compiles, runs and profiles a program once for each change, then for the best ones together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ethosu_sdk import aot, npz
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import SdkError
from ethosu_sdk.files import locks
from ethosu_sdk.firmware_build import MemoryFitError
from ethosu_sdk.results import locations, trial_verdict
from ethosu_sdk.results.trials import Candidate, Distance, Outcome, Tries
from ethosu_sdk.steps.compile import compile_command
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.profile import profile_command
from ethosu_sdk.steps.profile.options import ProfileOptions
from ethosu_sdk.steps.profile.profile_command import Profiled
from ethosu_sdk.steps.run import run_command
from ethosu_sdk.steps.run.options import HOST, RunOptions
from ethosu_sdk.steps.trials import measuring
from ethosu_sdk.steps.trials.measuring import Array
from ethosu_sdk.steps.trials.subject import Subject

MOST_TOGETHER = 4  # changes that are combined
_PREFIX = ".try-"


def is_too_large(error: SdkError) -> bool:
    """Whether `error` says that a program does not fit the memory of its board."""
    return isinstance(error, MemoryFitError) or isinstance(error.__cause__, MemoryFitError)


def profiled(
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
    try:
        return profile_command.profile(
            given, compile_options, run_options, ProfileOptions(), out_dir, reporter
        )
    except SdkError as error:
        if not too_large or not is_too_large(error):
            raise
        reporter.warn(f"{escape(error.message)}; it runs on the host simulator instead")
    run_options = replace(run_options, simulator=HOST, board=None)
    return profile_command.profile(given, compile_options, run_options, ProfileOptions(), out_dir, reporter)


def tried(subject: Subject, candidates: Sequence[Candidate], folder: Path, reporter: Reporter) -> Tries:
    """What comes of `candidates`, one after the other, and of the best ones together. They are made in a temporary
    folder below `folder`. After a Ctrl-C, it is what was done until then."""
    with (
        locks.temporary_directory(_PREFIX, folder) as work,
        aot.warm_compiler(work / "compiler.log") as compiler,
    ):
        trying = _Trying(subject, reporter, compiler)
        try:
            trying.prepare(work)
            trying.singly(candidates, work)
            trying.together(work)
        except KeyboardInterrupt:
            trying.is_stopped = True
    done = {row.candidate.name for row in trying.outcomes}
    return trying.result(tuple(row.name for row in candidates if row.name not in done))


@dataclass
class _Trying:
    """The state of the work: outcomes so far. `own` are the outputs of the program as it is, `exact` those of the
    model in floating point, `inputs` the example inputs that all of them are for."""

    subject: Subject
    reporter: Reporter
    compiler: aot.Compiler
    outcomes: list[Outcome] = field(default_factory=list)
    own: Sequence[Array] = ()
    exact: Sequence[Array] = ()
    inputs: Sequence[Array] = ()
    is_stopped: bool = False

    def prepare(self, work: Path) -> None:
        """Read what trials are compared with; the model in floating point is exported for that."""
        subject = self.subject
        self.own = measuring.outputs(subject.pte, subject.run_folder / run_command.OUTPUTS_NAME)
        self.inputs = _inputs(subject.pte)
        options = replace(
            subject.options,
            quantize="none",
            io="float",
            delegate=False,
            calibration=(),
            vela_flags=(),
            check=False,
        )
        try:
            with self.reporter.stage("computing the outputs of the model in floating point"):
                path = self._compiled(options, work / "float")
        except SdkError:
            return
        same = measuring.are_inputs(subject.pte, self.inputs, _inputs(path))
        self.exact = _example_outputs(path) if same else ()

    def singly(self, candidates: Sequence[Candidate], work: Path) -> None:
        """Try each by itself."""
        for number, candidate in enumerate(candidates, start=1):
            self._try(candidate, f"trying {number} of {len(candidates)}", work / f"{number}")

    def together(self, work: Path) -> None:
        """The best change with the next best that still helps, and so on."""
        before = measuring.measured(self.subject.pte, self.subject.profile)
        rows = trial_verdict.combinable(before, self.exact_distance, self.outcomes)
        if not rows:
            return
        best, *others = rows
        for number, other in enumerate(others):
            if len(best.candidate.parts) >= MOST_TOGETHER or not best.candidate.fits_with(other.candidate):
                continue
            both = best.candidate.with_(other.candidate)
            outcome = self._try(both, "trying together", work / f"together-{number}")
            if trial_verdict.state(before, self.exact_distance, outcome) != "better":
                continue
            if trial_verdict.is_better(before, best, outcome):
                best = outcome
            else:
                self.outcomes.remove(outcome)  # the other change adds nothing

    @property
    def exact_distance(self) -> Distance | None:
        """The distance of the program as it is from floating point."""
        return measuring.distance(self.exact, self.own) if self.exact else None

    def result(self, left: tuple[str, ...]) -> Tries:
        """What was found."""
        subject = self.subject
        return Tries(
            before=measuring.measured(subject.pte, subject.profile),
            exact=self.exact_distance,
            simulator=subject.profile.simulator.name,
            outcomes=tuple(self.outcomes),
            left=left,
            is_stopped=self.is_stopped,
        )

    def _try(self, candidate: Candidate, what: str, work: Path) -> Outcome:
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
        done = profile_command.profile(
            str(path),
            CompileOptions(system=subject.options.system, vela_config=subject.options.vela_config),
            subject.run_options,
            ProfileOptions(),
            work,
            _Silent(),
        )
        found = measuring.outputs(path, done.run_folder / run_command.OUTPUTS_NAME)
        changed = measuring.distance(self.own, found)
        is_comparable = (
            options.io != "float" or subject.options.io != "float" or _same(_inputs(path), self.inputs)
        )
        exact = measuring.distance(self.exact, found) if self.exact and is_comparable else None
        return Outcome(
            candidate,
            measuring.measured(path, done.content),
            changed if is_comparable else None,
            exact,
            "" if is_comparable else "the model's example inputs differ each time its file is executed",
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


def _inputs(path: Path) -> list[Array]:
    return _arrays(path, "input")


def _example_outputs(path: Path) -> list[Array]:
    return _arrays(path, "output")


def _arrays(path: Path, prefix: str) -> list[Array]:
    """The arrays of the example inputs or outputs that `compile` left beside the program at `path`."""
    arrays = npz.read_npz(locations.example_io(path))
    return [arrays[f"{prefix}{index}"] for index in range(sum(name.startswith(prefix) for name in arrays))]


def _same(one: Sequence[Array], other: Sequence[Array]) -> bool:
    found = measuring.distance(one, other)
    return found.equal == found.elements
