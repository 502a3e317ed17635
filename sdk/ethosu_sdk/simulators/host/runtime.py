"""A `.pte` on ExecuTorch's own C++ runtime, in a child process, with its delegates executed by the caller."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ethosu_sdk import proc, pte, vela_blocks
from ethosu_sdk.errors import InputError, SimulationError
from ethosu_sdk.npu import deadline
from ethosu_sdk.simulators.host import wire
from ethosu_sdk.simulators.host.wire import Array, Kind, TensorInfo

DEFAULT_TIMEOUT_S = 300.0
_MISSING_OPERATOR = re.compile(r"Missing operator: \[\d+\] ([\w:.]+)")  # as ExecuTorch 1.5.1 prints it
_FAILED_OPERATOR = re.compile(r"KernelCall failed at instruction \S+ in operator ([\w:.]+):")
_MOST_LOG_BYTES = 1 << 20
_LEAST_WAIT_S = 0.001  # none at all would make the socket one that never waits


@dataclass(frozen=True)
class DelegateCall:
    """One execution of an Ethos-U delegate.

    `index` is the delegate's place in the program. `inputs` are in the payload's order; each is dense, and
    its axes are in the order of memory (``TensorInfo.memory_shape``), so that its bytes are those that the
    NPU would read. The callable returns one array per entry of `outputs`, with bytes in the same sense.
    """

    index: int
    payload: bytes
    payload_sha256: str
    inputs: tuple[Array, ...]
    outputs: tuple[TensorInfo, ...]


Delegate = Callable[[DelegateCall], Sequence[Array]]


class HostRuntime:
    """Loaded methods that can be run many times. Made by :func:`open_pte`.

    `inputs` and `outputs` describe those of the first method, `methods` those of each.
    """

    def __init__(
        self,
        connection: socket.socket,
        delegate: Delegate | None,
        log: IO[bytes],
        silence_s: float,
        names: Sequence[str] = (pte.ENTRY,),
    ) -> None:
        self._connection = connection
        self._silence_s = silence_s
        self._delegate = delegate
        self._log = log
        self._payloads: list[bytes] = []
        self._input_counts: list[int] = []
        self._digests: list[str] = []
        self.methods: dict[str, tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]] = {
            name: self._load() for name in names
        }
        self.inputs, self.outputs = self.methods[names[0]]

    def _load(self) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
        """Answer the runner's questions until it describes the next method: its inputs and outputs."""
        blobs = self._converse(Kind.READY, "loading")
        count = wire.parse_u32(blobs[0])
        tensors = tuple(wire.parse_descriptor(blob) for blob in blobs[1:])
        return tensors[:count], tensors[count:]

    def run(self, inputs: Sequence[Array], method: str | None = None) -> list[Array]:
        """The outputs of a method for `inputs`, all with their logical shapes; None is the first method.

        InputError when number, dtype or shape of the inputs differ; SimulationError when the runtime fails.
        What the delegate callable raises passes through, and the runtime is not usable after it.
        """
        name = method if method is not None else next(iter(self.methods))
        number, described = list(self.methods).index(name), self.methods[name][0]
        if len(inputs) != len(described):
            raise InputError(f"{len(inputs)} inputs given, but the program takes {len(described)}")
        for index, (array, info) in enumerate(zip(inputs, described, strict=True)):
            if array.dtype != np.dtype(info.dtype) or array.shape != info.shape:
                raise InputError(
                    f"input {index} is {array.dtype} {array.shape}, but the program takes {info.dtype} {info.shape}"
                )
        data = [info.to_memory(array) for array, info in zip(inputs, described, strict=True)]
        self._send(Kind.RUN, [wire.u32(number), *data])
        blobs = self._converse(Kind.DONE, "execution")
        return [
            wire.parse_descriptor(description).from_memory(content)
            for description, content in zip(blobs[::2], blobs[1::2], strict=True)
        ]

    def read(self, arena: int, offset: int, size_bytes: int) -> bytes:
        """What is in planned memory. SimulationError for a place outside of it."""
        place = b"".join(map(wire.u32, (arena, offset, size_bytes)))
        self._send(Kind.READ, [place, b""])
        return self._converse(Kind.READ, "a look at its state")[0]

    def write(self, arena: int, offset: int, content: bytes) -> None:
        """Put `content` into planned memory. SimulationError for a place outside of it."""
        place = b"".join(map(wire.u32, (arena, offset, len(content))))
        self._send(Kind.WRITE, [place, content])
        self._converse(Kind.WRITE, "a change of its state")

    def _converse(self, until: Kind, doing: str) -> list[bytes]:
        """Serve delegates until the runner sends `until`; its blobs."""
        while True:
            kind, blobs = self._receive(doing)
            if kind is until:
                return blobs
            if kind is Kind.ERROR:
                raise self._failed(blobs[0].decode(errors="replace"))
            if kind is Kind.DELEGATE:
                self._adopt(blobs[1])
            elif kind is Kind.EXECUTE:
                self._execute(blobs)
            else:
                raise SimulationError(f"the host runtime sent {kind.name} during {doing}")

    def _failed(self, text: str) -> SimulationError:
        missing = dict.fromkeys(_MISSING_OPERATOR.findall(self._printed()))
        if not missing:
            failed = _FAILED_OPERATOR.search(self._printed())
            where = f" in {failed[1]}" if failed else ""
            return SimulationError(f"ExecuTorch's host runtime failed{where}: {text}", self._last_words())
        return SimulationError(
            f"ExecuTorch's host runtime has no kernel for {', '.join(missing)}: {text}",
            "the operator stays on the CPU; docs/reference/kernels.md lists the operators for which the firmware "
            "has a kernel",
        )

    def _adopt(self, payload: bytes) -> None:
        inputs = len(vela_blocks.parse(payload).inputs)
        self._payloads.append(payload)
        self._digests.append(hashlib.sha256(payload).hexdigest())
        self._input_counts.append(inputs)
        self._send(Kind.DELEGATE, [wire.u32(inputs)])

    def _execute(self, blobs: list[bytes]) -> None:
        index = wire.parse_u32(blobs[0])
        count = self._input_counts[index]
        described, rest = blobs[1 : 1 + 2 * count], blobs[1 + 2 * count :]
        outputs = tuple(wire.parse_descriptor(blob) for blob in rest)
        if self._delegate is None:
            raise SimulationError(f"the program calls delegate {index}, but nothing was given to execute it")
        inputs = []
        for description, content in zip(described[::2], described[1::2], strict=True):
            info = wire.parse_descriptor(description)
            inputs.append(np.frombuffer(content, info.dtype).reshape(info.memory_shape))
        call = DelegateCall(index, self._payloads[index], self._digests[index], tuple(inputs), outputs)
        results = [np.ascontiguousarray(array).tobytes() for array in self._delegate(call)]
        expected, got = [info.nbytes for info in outputs], [len(data) for data in results]
        if expected != got:
            raise SimulationError(
                f"delegate {index} returned outputs of {got} bytes, but the program has {expected}"
            )
        self._send(Kind.EXECUTE, results)

    def _send(self, kind: Kind, blobs: Sequence[bytes]) -> None:
        try:
            wire.send(self._connection, kind, blobs)
        except OSError as error:
            raise SimulationError(f"the host runtime ended early: {error}", self._last_words()) from error

    def _receive(self, doing: str) -> tuple[Kind, list[bytes]]:
        left_s = deadline.left_s()
        self._connection.settimeout(max(_LEAST_WAIT_S, min(self._silence_s, left_s)))
        try:
            return wire.receive(self._connection)
        except TimeoutError as error:
            if left_s < self._silence_s:
                raise SimulationError(
                    f"the time limit was reached during {doing}", "--timeout gives it more time"
                ) from error
            raise SimulationError(
                f"the host runtime was silent for {self._silence_s:g} s during {doing}"
            ) from error
        except (EOFError, OSError) as error:
            raise SimulationError(f"the host runtime ended during {doing}", self._last_words()) from error

    def _printed(self) -> str:
        """The end of what the runner printed."""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _MOST_LOG_BYTES))
        return self._log.read().decode(errors="replace")

    def _last_words(self) -> str:
        text = proc.tail(self._printed())
        return f"it printed:\n{text}" if text.strip() else ""


@contextmanager
def open_pte(
    runner: Path,
    path: Path,
    delegate: Delegate | None = None,
    *,
    method: str | Sequence[str] = pte.ENTRY,
    shares_state: bool = False,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    data: Sequence[Path] = (),
) -> Iterator[HostRuntime]:
    """Methods of the `.pte` at `path` with its `data` files, loaded, for the time of a `with` block.

    With `shares_state` they have one memory, as they were planned.

    `runner` comes from :func:`ethosu_sdk.simulators.host.build_runner`. `delegate` executes Ethos-U delegates
    in this process; without it a program that calls one fails. The runner may be silent for `timeout_s`
    between two messages, and until the deadline of :mod:`ethosu_sdk.npu.deadline`, if there is one.
    InputError when the file is missing; SimulationError when the runtime refuses it.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    ours, theirs = socket.socketpair()
    with ours, theirs, tempfile.TemporaryFile() as log:
        ours.settimeout(timeout_s)
        names = (method,) if isinstance(method, str) else tuple(method)
        memory = "shared" if shares_state else "own"
        argv = [str(runner), str(path), ",".join(names), memory, str(theirs.fileno()), *map(str, data)]
        with proc.spawn(argv, pass_fds=(theirs.fileno(),), stdout=log):
            theirs.close()
            yield HostRuntime(ours, delegate, log, timeout_s, names)


def run_pte(
    runner: Path,
    path: Path,
    inputs: Sequence[Array],
    delegate: Delegate | None = None,
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> list[Array]:
    """The outputs of one inference: :func:`open_pte`, then :meth:`HostRuntime.run`."""
    with open_pte(runner, path, delegate, timeout_s=timeout_s) as runtime:
        return runtime.run(inputs)
