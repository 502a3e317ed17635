"""The table of kinds, and a campaign: cases of all kinds in turn until the time is over, and what was found."""

import random
import shlex
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from campaigns.attack import oracle, process
from campaigns.attack.case import Case, Context, Kind, Probe, TooSlow
from campaigns.attack.kinds import (
    archives,
    arrays,
    bounds,
    ci,
    comparisons,
    data_files,
    disks,
    edited,
    killed,
    links,
    logs,
    prices,
    profiles,
    programs,
    settings,
    state,
    steps,
    streams,
    tflite_models,
    tokens,
)
from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import SdkError

KILLS = "kills"
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        programs.KIND,
        tflite_models.KIND,
        data_files.KIND,
        streams.KIND,
        bounds.KIND,
        steps.KIND,
        arrays.KIND,
        logs.KIND,
        profiles.KIND,
        comparisons.KIND,
        archives.KIND,
        Kind(KILLS),
        disks.KIND,
        links.KIND,
        edited.BUNDLES,
        ci.KIND,
        prices.KIND,
        settings.KIND,
        state.KIND,
        tokens.KIND,
        edited.SWEEP,
    )
}
_PROBES = 200  # in one turn
_LEAST_PROBES = 20  # however short the time is
_PROBE_LIMIT_S = 20.0


@dataclass
class Tally:
    """What came of the cases of one kind."""

    outcomes: Counter[int] = field(default_factory=Counter)  # by exit code; of probes, the one of their error
    probes: int = 0
    findings: int = 0

    @property
    def cases(self) -> int:
        """All of them."""
        return self.outcomes.total()

    def __str__(self) -> str:
        refused = ", ".join(f"{count} with {code}" for code, count in sorted(self.outcomes.items()) if code)
        passed = self.outcomes[0]
        text = f"{self.cases:8,} cases ({self.probes:,} in this process): {passed:,} passed, refused: {refused or 0}"
        return f"{text}; {self.findings} findings"


@dataclass(frozen=True)
class Campaign:
    """Where findings go, and what is attacked."""

    seed: str
    findings: Path
    context: Context
    tallies: dict[str, Tally] = field(default_factory=dict)

    def choice(self, *place: object) -> random.Random:
        """The randomness of one case: the same for the same seed, kind and number."""
        return random.Random("/".join(map(str, (self.seed, *place))))

    def run(self, kinds: Sequence[str], seconds: float) -> int:
        """Attack for `seconds`; the number of findings."""
        end, turn = time.monotonic() + seconds, 0
        self.tallies.update({name: Tally() for name in kinds})
        while turn == 0 or time.monotonic() < end:
            for name in kinds:
                kind = KINDS[name]
                if kind.probe is not None:
                    for number in range(turn * _PROBES, (turn + 1) * _PROBES):
                        if number >= _LEAST_PROBES and time.monotonic() > end:
                            break
                        self._probe(kind, number)
                if (kind.case is not None or name == KILLS) and (turn == 0 or time.monotonic() < end):
                    self._case(kind, turn)
            turn += 1
        return sum(tally.findings for tally in self.tallies.values())

    def _probe(self, kind: Kind, number: int) -> None:
        assert kind.probe is not None
        given = kind.probe(self.context, self.choice(kind.name, "probe", number))
        tally = self.tallies[kind.name]
        tally.probes += 1
        with tempfile.TemporaryDirectory(prefix="attack-") as name:
            folder = Path(name)
            _write(folder, given.files)
            code, wrong = _called(given, folder)
        tally.outcomes[code] += 1
        if wrong:
            self._found(kind.name, f"probe-{number}", given.title, given.files, "in this process", [wrong])

    def _case(self, kind: Kind, number: int) -> None:
        choice = self.choice(kind.name, "case", number)
        with tempfile.TemporaryDirectory(prefix="attack-") as name:
            folder = Path(name)
            files: Mapping[str, bytes] = {}
            if kind.case is None:
                title, ended, wrong = killed.attack(self.context, choice, folder)
                argv: Sequence[object] = ()
            else:
                given = self._made(kind, choice)
                title, files, argv = given.title, given.files, given.argv
                _write(folder, files)
                ended = process.run(given.argv, folder, {**self.context.env, **given.env}, given.limits)
                wrong = oracle.problems(ended, folder)
                wrong += [] if ended.stopped else given.judge(ended, folder)
        self.tallies[kind.name].outcomes[ended.code] += 1
        print(f"  {kind.name} {number}: {title}: exit code {ended.code}, {ended.seconds:.1f} s", flush=True)
        if wrong:
            command = shlex.join(map(str, argv))
            said = f"{ended.out[-2000:]}\n{ended.err[-4000:]}"
            self._found(kind.name, f"case-{number}", title, files, command, [*wrong, "", said])

    def _made(self, kind: Kind, choice: random.Random) -> Case:
        assert kind.case is not None
        given = kind.case(self.context, choice)
        return given if given.argv else replace(given, argv=(*self.context.command, *given.words))

    def _found(
        self, kind: str, name: str, title: str, files: Mapping[str, bytes], command: str, wrong: list[str]
    ) -> None:
        """Keep what reproduces a finding, and tell."""
        self.tallies[kind].findings += 1
        folder = filesystem.make_directory(self.findings / f"{kind}-{name}")
        _write(folder, files)
        again = f"scripts/attack --seed {self.seed} --only {kind}  # {name}"
        (folder / "finding.txt").write_text(
            f"{title}\n{command}\n{again}\n\n" + "\n".join(wrong), encoding="utf-8", errors="backslashreplace"
        )
        print(f"FINDING {kind} {name} ({title}): {ascii(wrong[0])[:300]}\n  {folder}", flush=True)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).write_bytes(data)


def _too_slow(*_: object) -> None:
    raise TooSlow(f"it takes more than {_PROBE_LIMIT_S:g} s")


def _called(given: Probe, folder: Path) -> tuple[int, str]:
    """Call the probe: an exit code, and what is wrong."""
    previous = signal.signal(signal.SIGVTALRM, _too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, _PROBE_LIMIT_S, _PROBE_LIMIT_S)
    try:
        try:
            given.call(folder)
        except TooSlow:
            given.call(folder)
    except SdkError as error:
        return error.exit_code, "" if error.message else "an error that says nothing"
    except Exception as error:  # whatever else comes is a finding
        return 1, f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    return 0, ""
