"""Kills commands at random moments and looks for what outlives them.

``python -m tests.integration.children.kills --help`` lists its options.

A command and all that it starts carry a mark in their environment, so that /proc finds a survivor whatever process
group or session it has moved to and whoever its parent is by now.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ethosu_sdk.base import proc

MARK = "ETHOSU_SDK_KILL_TEST"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
CODES = {signal.SIGKILL: -signal.SIGKILL}  # of the others it is 130
INTERRUPTED = 130
SURVIVAL_S = 2.0
_NOISE = ("Traceback", "Exception ignored", "internal error")
# A command that nobody has started to interpret yet ends as the system or Python's own start-up has it.
_START_UP_S = 0.3


@dataclass(frozen=True)
class Command:
    """A command line to be killed."""

    words: Sequence[str | Path]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kill:
    """One kill and what came of it: exit code, what was printed, and the survivors' command lines."""

    number: signal.Signals
    after_s: float
    code: int
    said: str
    survivors: tuple[str, ...]

    def finished(self) -> bool:
        """Whether the command had ended by itself."""
        return self.code not in (INTERRUPTED, -self.number)

    def problems(self) -> list[str]:
        """What is wrong with it, in words."""
        found = [f"survivor: {words}" for words in self.survivors]
        if self.after_s > _START_UP_S:
            found += [f"noise: {word} in {self.said!r}" for word in _NOISE if word in self.said]
            if not self.finished() and self.code != CODES.get(self.number, INTERRUPTED):
                found.append(f"exit code {self.code}")
        return found


def kill(command: Command, number: signal.Signals, after_s: float, patience_s: float = 20.0) -> Kill:
    """Start `command`, send it `number` after `after_s` seconds, and look who is alive two seconds later."""
    mark = uuid.uuid4().hex
    for ignored in (row for row in SIGNALS if signal.getsignal(row) is signal.SIG_IGN):
        signal.signal(
            ignored, signal.SIG_DFL
        )  # a shell's jobs in the background pass on that they ignore SIGINT
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            list(map(str, command.words)),
            cwd=command.cwd,
            env={**os.environ, **command.env, MARK: mark},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after_s)
            seen = {pid: born(pid) for pid in proc.descendants(process.pid)}
            process.send_signal(number)
            code = process.wait(patience_s)
            alive = survivors(mark, SURVIVAL_S, seen)
        finally:
            for pid in [process.pid, *marked(mark)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return Kill(number, after_s, code, said.read().decode(errors="replace"), alive)


def survivors(mark: str, patience_s: float, seen: Mapping[int, str]) -> tuple[str, ...]:
    """Who lives on: by the mark that all inherit, or by having been `seen`, for those without an environment."""
    end = time.monotonic() + patience_s
    while (alive := {**living(seen), **marked(mark)}) and time.monotonic() < end:
        time.sleep(0.02)
    return tuple(alive.values())


def born(pid: int) -> str:
    """When the process was started; nothing for one that is a zombie or gone."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
    return ""


def living(seen: Mapping[int, str]) -> dict[int, str]:
    """Of the processes that were `seen` (and when they were born), the command lines of those that still live."""
    found = {}
    for pid, since in seen.items():
        if since and born(pid) == since:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                found[pid] = words.decode(errors="replace").strip()
    return found


def marked(mark: str) -> dict[int, str]:
    """The command lines of all living processes that carry `mark`."""
    found = {}
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if words:  # a zombie has neither
                        found[int(entry.name)] = words.strip()
    return found


# Arm's installers unpack themselves with programs of their own, and this one's child leaves its session as well.
_INSTALLER = """#!/bin/sh
for program in FVP_Corstone_SSE-300_Ethos-U55 FVP_Corstone_SSE-300_Ethos-U65; do echo x > $program; done
setsid sh -c 'sleep 3' &
sleep 3
"""


def fvp_install(root: Path) -> Command:
    """`fvp install` of an archive in `root` whose installer takes three seconds."""
    from tests.integration.fvp import archives as fvp_archives

    return Command(fvp_archives.command(fvp_archives.good(root / "a.tgz", _INSTALLER)), root)


def commands(root: Path, pte: Path, sdk: Path, warm: Path) -> dict[str, Command]:
    """What is killed: a compilation, a cold and a warm run. The cache below `root` is made anew for a cold one."""
    cold_env, warm_env = ({"ETHOSU_SDK_CACHE": str(folder)} for folder in (root / "cold", warm))
    return {
        "compile": Command((sdk, "compile", "zoo:add", "-o", root / "compiled"), root, warm_env),
        "cold build": Command((sdk, "build", pte, "-o", root / "built"), root, cold_env),
        "run": Command((sdk, "run", pte, "-o", root / "ran", "--repeat", "200"), root, warm_env),
        "fvp install": fvp_install(root),
        "host run": Command((sdk, "run", pte, "--simulator", "host", "-o", root / "host"), root, cold_env),
    }


def _once(name: str, command: Command, span_s: float, choice: random.Random) -> Kill:
    for folder in ("cold", "built", "fvp"):
        if choice.random() < 0.5:  # the others find what the kill before left half-done
            shutil.rmtree(command.cwd / folder, ignore_errors=True)
    result = kill(command, choice.choice(SIGNALS), choice.uniform(0.0, span_s))
    state = "; ".join(result.problems()) or ("had ended" if result.finished() else "fine")
    print(
        f"{name:<12} {result.number.name:<8} {result.after_s:7.2f} s  {result.code:>4}  {state}", flush=True
    )
    return result


def main() -> int:
    """Kill what the command line says, then see that every command still works."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--span", type=float, default=20.0, help="the latest moment, in seconds")
    parser.add_argument("--only", help="one of the commands")
    parser.add_argument("pte", type=Path, help="a program for Corstone-300")
    arguments = parser.parse_args()
    choice = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        root, sdk = Path(name), Path(sys.executable).with_name("ethosu-sdk")
        known = commands(root, arguments.pte.absolute(), sdk, warm=root / "warm")
        chosen = {key: row for key, row in known.items() if arguments.only in (None, key)}
        bad = 0
        for number in range(arguments.kills):
            key = list(chosen)[number % len(chosen)]
            bad += bool(_once(key, chosen[key], arguments.span, choice).problems())
        for key, row in chosen.items():
            done = subprocess.run(
                [*map(str, row.words)],
                cwd=row.cwd,
                env={**os.environ, **row.env},
                capture_output=True,
                text=True,
                check=False,
            )
            print(f"{key:<12} again: exit code {done.returncode} {done.stderr.strip()[-300:]!r}", flush=True)
            bad += done.returncode != 0
    print(f"{bad} bad of {arguments.kills} kills")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
