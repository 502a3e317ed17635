"""One command, watched: what it said, how long it took, the memory of all its processes, and who outlived it."""

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import proc
from tests.integration.children import kills

_LOOK_S = 0.05
_MAX_SAID = 4 << 20  # bytes of each stream that are read back
_FILE_LIMIT = 4 << 30  # of a file that a command writes: the machine's disk is not to be tried


@dataclass(frozen=True)
class Ended:
    """A command that has ended, by itself or at its limits. `code` is negative for a signal."""

    code: int
    out: str
    err: str
    seconds: float
    peak_bytes: int
    survivors: tuple[str, ...] = ()
    stopped: str = ""  # why it was stopped: time or memory


@dataclass(frozen=True)
class Limits:
    """What a command may take: seconds of wall clock, bytes of memory in all of its processes, bytes of a file."""

    seconds: float = 180.0
    memory_bytes: int = 2 << 30
    file_bytes: int = _FILE_LIMIT


def run(argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str], limits: Limits) -> Ended:
    """Run `argv` in `cwd` with `env` added to the environment; it is stopped at its `limits`."""
    mark, begun = uuid.uuid4().hex, time.monotonic()
    seen: dict[int, str] = {}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            list(map(str, argv)),
            cwd=cwd,
            env={**os.environ, **env, kills.MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limits.file_bytes,) * 2)
        try:
            peak, stopped = _watch(process, begun, limits, seen)
            if stopped:
                process.kill()
            code = process.wait()
            seconds = time.monotonic() - begun
            alive = kills.survivors(mark, kills.SURVIVAL_S, seen)
        finally:
            for pid in {process.pid, *kills.living(seen), *kills.marked(mark)}:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        return Ended(code, _read(out), _read(err), seconds, peak, () if stopped else alive, stopped)


def _watch(
    process: subprocess.Popen[bytes], begun: float, limits: Limits, seen: dict[int, str]
) -> tuple[int, str]:
    """Wait for the end; the largest memory that was seen, and why the command has to be stopped, if it has."""
    peak = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_S)
            return peak, ""
        tree = [process.pid, *proc.descendants(process.pid)]
        for pid in tree:
            seen.setdefault(pid, kills.born(pid))
        peak = max(peak, sum(map(_memory_bytes, tree)))
        if peak > limits.memory_bytes:
            return peak, "memory"
        if time.monotonic() - begun > limits.seconds:
            return peak, "time"


def _memory_bytes(pid: int) -> int:
    """What the process alone keeps in memory, and what it shares with others that is in no file."""
    with contextlib.suppress(OSError):
        rows = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
        return sum(int(row.split()[1]) << 10 for row in rows if row.startswith(("RssAnon:", "RssShmem:")))
    return 0


def _read(stream: object) -> str:
    stream.seek(0)  # type: ignore[attr-defined]
    content: bytes = stream.read(_MAX_SAID)  # type: ignore[attr-defined]
    return content.decode(errors="replace")
