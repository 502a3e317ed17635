"""Runs an FVP as a child process: reads its output as it comes, and stops it when it hangs."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from ethosu_sdk import proc

MAX_OUTPUT_BYTES = 256 << 20
_MAX_MESSAGE_BYTES = 64 << 10
_CHUNK_BYTES = 1 << 16
_END_S = 10.0

Cut = Literal["", "time", "idle", "output", "log"]


@dataclass(frozen=True)
class Watch:
    """When to cut a run, in seconds by the wall: its whole time, and the time without a byte of output."""

    timeout_s: float
    idle_timeout_s: float


@dataclass(frozen=True)
class Finished:
    """A run that is over. `cut` says why it was ended from outside, if it was; `messages` is standard error."""

    output: bytes = field(repr=False)
    messages: str
    returncode: int
    cut: Cut
    wall_time_s: float


class _Recorder:
    """Takes the output of a child: keeps it, and hands it on to logs."""

    def __init__(self, logs: Sequence[IO[bytes]]) -> None:
        self._logs = logs
        self.output = bytearray()
        self.messages = bytearray()
        self.last_byte_at = time.monotonic()
        self.cut: Cut = ""

    def take(self, data: bytes, *, is_output: bool) -> None:
        if not is_output:
            self.messages += data[: _MAX_MESSAGE_BYTES - len(self.messages)]
            return
        self.last_byte_at = time.monotonic()
        self.output += data
        if len(self.output) > MAX_OUTPUT_BYTES:
            self.cut = "output"
        try:
            for log in self._logs:
                log.write(data)
                log.flush()
        except OSError:
            self.cut = "log"


def run(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path | None,
    watch: Watch,
    logs: Sequence[IO[bytes]],
) -> Finished:
    """Run `argv` to its end, or until `watch` has it cut; its standard output also goes to every one of `logs`.

    Raises ToolError when it cannot be started.
    """
    begun = time.monotonic()
    recorder = _Recorder(logs)
    with proc.spawn(
        argv, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        cut = _drain(process, recorder, begun, watch)
        if cut:
            proc.kill_tree(process)
        returncode = _wait(process)
        assert process.stderr is not None
        process.stderr.close()
    return Finished(
        output=bytes(recorder.output),
        messages=recorder.messages.decode(errors="replace").strip(),
        returncode=returncode,
        cut=cut,
        wall_time_s=time.monotonic() - begun,
    )


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(_END_S)
    except subprocess.TimeoutExpired:  # it closed its output and lives on
        proc.kill_tree(process)
        return process.returncode


def _drain(process: subprocess.Popen[bytes], recorder: _Recorder, begun: float, watch: Watch) -> Cut:
    assert process.stdout is not None  # asked for as pipes
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, True)
        selector.register(process.stderr, selectors.EVENT_READ, False)
        while selector.get_map():
            now = time.monotonic()
            whole, idle = begun + watch.timeout_s, recorder.last_byte_at + watch.idle_timeout_s
            if now >= min(whole, idle):
                return "time" if whole <= idle else "idle"
            for key, _ in selector.select(min(whole, idle) - now):
                data = os.read(key.fd, _CHUNK_BYTES)
                if data:
                    recorder.take(data, is_output=key.data)
                else:
                    selector.unregister(key.fileobj)
            if recorder.cut:
                return recorder.cut
    return ""
