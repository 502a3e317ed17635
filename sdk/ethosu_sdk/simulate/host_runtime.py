"""ExecuTorch's own C++ runtime, from the executorch wheel, running a `.pte` in a child process of this machine.

It is the reference for the firmware's interpreter and its CPU operators, and the fastest way to many inferences.
Whoever calls it says what executes the Ethos-U delegates.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib.metadata
import math
import os
import re
import socket
import struct
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.base import cache, filesystem, proc, resources, tools
from ethosu_sdk.base.errors import InputError, SimulationError, ToolError
from ethosu_sdk.npu import errors, pmu, vela_blocks
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.program.pte_schema import NUMPY_TYPES

Array = NDArray[Any]

# Messages between this process and the runner (runner.cpp), over a Unix stream socket.
#
# A message is u32 kind, u32 number of blobs, then for each blob u64 size and its bytes, in the machine's byte
# order: both ends run on one machine. A descriptor blob is u32 ScalarType, u32 rank, u32 sizes[rank],
# u32 dim_order[rank]. Which blobs each kind carries is stated at `Kind`.
_HEAD = struct.Struct("=II")
_SIZE = struct.Struct("=Q")
_MAX_BLOBS = 1 << 16

_DTYPES = {row.number: row.dtype for row in NUMPY_TYPES}


class Kind(enum.IntEnum):
    """What a message says; the replies of the parent carry the kind that they answer."""

    DELEGATE = 1  # from the runner: index, payload; reply: u32 number of its inputs, u32 bytes of its scratch
    READY = 2  # from the runner, for each method: u32 number of inputs, a descriptor for each input and each output
    EXECUTE = 3  # from the runner: index, descriptor and data of each input, descriptor of each output;
    #              reply: the data of each output
    DONE = 4  # from the runner: descriptor and data of each output
    ERROR = 5  # from the runner: text
    RUN = 6  # to the runner: u32 number of the method, the data of each input
    READ = 7  # to the runner: u32 arena, offset and bytes of planned memory, nothing; reply: its content
    WRITE = 8  # to the runner: u32 arena, offset and bytes, the content; the reply is empty


@dataclass(frozen=True)
class TensorInfo:
    """A tensor's NumPy dtype name, logical shape, and dim_order: its axes from the outermost in memory to the
    innermost."""

    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return int(np.dtype(self.dtype).itemsize * math.prod(self.shape))

    @property
    def memory_shape(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self.dim_order)

    def to_memory(self, array: Array) -> bytes:
        """The bytes of `array`, which has the logical shape, in the order of memory."""
        return array.transpose(self.dim_order).tobytes()

    def from_memory(self, data: bytes) -> Array:
        """The array with the logical shape whose bytes in the order of memory are `data`."""
        stored = np.frombuffer(data, self.dtype).reshape(self.memory_shape)
        axes = tuple(self.dim_order.index(axis) for axis in range(len(self.shape)))
        return stored.transpose(axes).copy(order="C")


def parse_descriptor(blob: bytes) -> TensorInfo:
    """Decode a descriptor blob; InputError for a type that NumPy lacks."""
    code, rank = _HEAD.unpack_from(blob)
    if code not in _DTYPES:
        raise InputError(f"the program uses tensors of ScalarType {code}, which NumPy does not have")
    words = struct.unpack_from(f"={2 * rank}I", blob, _HEAD.size)
    return TensorInfo(_DTYPES[code], words[:rank], words[rank:])


def u32(value: int) -> bytes:
    return struct.pack("=I", value)


def parse_u32(blob: bytes) -> int:
    value: int = struct.unpack("=I", blob)[0]
    return value


def send_message(connection: socket.socket, kind: Kind, blobs: Sequence[bytes]) -> None:
    """Send one message. OSError when the runner is gone or the socket's time-out passes."""
    parts = [_HEAD.pack(kind, len(blobs))]
    for blob in blobs:
        parts += [_SIZE.pack(len(blob)), blob]
    connection.sendall(b"".join(parts))


def receive_message(connection: socket.socket) -> tuple[Kind, list[bytes]]:
    """Wait for one message. EOFError when the runner is gone, TimeoutError when it stays silent."""
    kind, count = _HEAD.unpack(_exactly(connection, _HEAD.size))
    if kind not in Kind.__members__.values() or count > _MAX_BLOBS:
        raise SimulationError(f"the host runtime sent an unknown message ({kind}, {count} parts)")
    blobs = []
    for _ in range(count):
        (size,) = _SIZE.unpack(_exactly(connection, _SIZE.size))
        blobs.append(_exactly(connection, size))
    return Kind(kind), blobs


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if count == 0:
            raise EOFError
        view = view[count:]
    return bytes(data)


# Building the runner against the C++ runtime that the executorch wheel ships, without CMake: the wheel's CMake
# package (1.5.1) defines targets for CMake 3.28 and later only. What it asks of a compiler are these definitions, one
# include folder, and its libraries. Those with kernels only register themselves when they are loaded, so the linker
# must be told to keep them.

_HERE = Path(__file__).parent / "host_runner"
_KERNELS = _HERE / "firmware_kernels.cpp"
_HEADERS = tuple(_HERE / name for name in ("named_data.hpp", "planned_memory.hpp", "remote_ethosu.hpp"))
_DEFINITIONS = ("-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED", "-DET_USE_THREADPOOL")
_KERNEL_LIBRARIES = ("executorch_threadpool", "executorch_kernels_optimized", "executorch_kernels_quantized")
# Half a minute, but far more where another processor is emulated or the machine is busy.
_BUILD_TIMEOUT_S = 1800.0
CACHE_PART = "host-runner"

# ExecuTorch's wheel has no kernels for the operators of its Cortex-M backend: those are the firmware's.
_FROM_FIRMWARE = "cortex_m::"
_USES = re.compile(r'^#include "kernels/operators/(\w+)\.hpp"', re.MULTILINE)


@dataclass(frozen=True)
class HostProgram:
    """A program that is linked with ExecuTorch's runtime and kernels: its sources, and generated headers by name."""

    name: str
    sources: tuple[Path, ...]
    headers: tuple[Path, ...] = ()
    generated: Mapping[str, str] = field(default_factory=dict)


RUNNER = HostProgram("host-runner", (_HERE / "runner.cpp",))


def application(protocol_header: str) -> HostProgram:
    """The program of `export --app`, in which a program runs as it does on a board. `protocol_header` is its
    app/protocol.hpp."""
    firmware = resources.directory("firmware")
    names = (
        "exported/application",
        "exported/no_npu_counters",
        "app/crc32",
        "app/input_image",
        "app/record_writer",
        "app/sha256",
    )
    headers = sorted((*(firmware / "exported").glob("*.hpp"), *(firmware / "app").glob("*.hpp")))
    sources = (_HERE / "application_host.cpp", *(firmware / f"{name}.cpp" for name in names))
    return HostProgram("host-application", sources, tuple(headers), {"app/protocol.hpp": protocol_header})


def build_runner(folder: Path, program: HostProgram = RUNNER) -> Path:
    """The program, built in `folder` (half a minute) unless one from the same sources, options and
    executorch is there already or came with the installation: that one needs no compiler. ToolError when the
    compiler or executorch is missing, or the build fails."""
    root = tools.executorch_root()
    name = _program_name(root, program)
    shipped = cache.prebuilt(CACHE_PART)
    if shipped is not None and (shipped / name).is_file():
        return shipped / name
    with filesystem.locked_folder(folder):
        return cache.kept(folder / name, lambda path: _make_runner(path, root, program))


def _make_runner(path: Path, root: Path, program: HostProgram) -> None:
    compiler = proc.find_tool("g++", hint="apt-get install g++")
    if not (root / "include").is_dir():
        raise ToolError("the installed executorch package has no C++ headers", tools.EXECUTORCH_INSTALL)
    with filesystem.temporary_directory(".generated-", path.parent) as generated:
        for name, text in (_generated_files() | dict(program.generated)).items():
            header = generated / name
            filesystem.write_bytes(filesystem.make_directory(header.parent) / header.name, text.encode())

        def compile_runner(temporary: Path) -> None:
            argv = runner_argv(compiler, root, temporary, generated, program)
            proc.run(argv, timeout_s=_BUILD_TIMEOUT_S, error=ToolError)

        filesystem.write_atomic(path, compile_runner)
    filesystem.make_executable(path)


def _program_name(root: Path, program: HostProgram) -> str:
    """The program's name, by all that shapes what is compiled."""
    firmware = resources.directory("firmware")
    kernels = (path for name in ("kernels", "base") for path in sorted((firmware / name).rglob("*.[ch]pp")))
    key = hashlib.sha256()
    for path in (*program.sources, *program.headers, _KERNELS, *_HEADERS, *kernels):
        key.update(path.read_bytes())
    for text in (_generated_files() | dict(program.generated)).values():
        key.update(text.encode())
    version = importlib.metadata.version("executorch")
    argv = runner_argv("g++", root, Path("runner"), Path("generated"), program)
    key.update("\n".join([version, *argv]).encode())
    return f"{program.name}-{key.hexdigest()[:16]}"


def runner_argv(
    compiler: str, root: Path, output: Path, generated: Path, program: HostProgram = RUNNER
) -> list[str]:
    """The compiler's command line for `program`, against the executorch package at `root`, with the files that were
    generated into the folder `generated`."""
    libraries, include = root / "lib", root / "include"
    vendored = include / "executorch" / "runtime" / "core" / "portable_type" / "c10"  # c10 and other headers
    kernels = [
        word
        for name in _KERNEL_LIBRARIES
        for word in ("-Wl,--push-state,--no-as-needed", str(libraries / f"lib{name}.so"), "-Wl,--pop-state")
    ]
    return [
        *(compiler, "-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", *_DEFINITIONS),
        *("-I", str(generated), "-I", str(resources.directory("firmware"))),
        *("-I", str(_HERE), "-isystem", str(include), "-isystem", str(vendored)),
        *map(str, (*program.sources, _KERNELS, *_firmware_sources())),
        *("-o", str(output), str(libraries / "libexecutorch.so"), *kernels, f"-Wl,-rpath,{libraries}"),
    ]


def _kernel_tables() -> dict[str, dict[str, str]]:
    """The firmware's kernels: family of operators → operator → the kernel's signature."""
    text = (resources.directory("firmware") / "kernels" / "kernels.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _generated_files() -> dict[str, str]:
    """The header that declares every kernel, and the table of those that come from the firmware."""
    tables = _kernel_tables()
    calls = [(name, call.partition("(")[0]) for table in tables.values() for name, call in table.items()]
    parameters = "(KernelContext& context, Span<Value* const> arguments);\n"
    declared = "".join(f"Status {call}{parameters}" for call in dict.fromkeys(call for _, call in calls))
    own = (row for row in calls if row[0].startswith(_FROM_FIRMWARE))
    rows = (f'{{"{name}", ethosu_sdk::kernels::{call}}},' for name, call in own)
    template = resources.directory("firmware") / "kernels" / "kernels.hpp.in"
    header = template.read_text(encoding="utf-8").replace("@ETHOSU_KERNEL_DECLARATIONS@", declared)
    return {"kernels/kernels.hpp": header, "firmware_kernels.inc": "\n".join(rows)}


def _firmware_sources() -> Iterator[Path]:
    """The sources of the families with kernels from the firmware, of those that they use, and what all share."""
    kernels = resources.directory("firmware") / "kernels"
    tables = _kernel_tables().items()
    families = [name for name, table in tables if any(row.startswith(_FROM_FIRMWARE) for row in table)]
    for family in families:  # which grows
        source = kernels / "operators" / f"{family}.cpp"
        used = _USES.findall(source.read_text(encoding="utf-8"))
        families += [name for name in used if name not in families]
        yield source
    shared = ("support", "support/scalar", "../base")
    yield from sorted(path for place in shared for path in (kernels / place).glob("*.cpp"))


DEFAULT_TIMEOUT_S = 300.0
_NO_MEMORY = "Malloc failed to allocate"  # ExecuTorch's malloc_memory_allocator.h
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
        names: Sequence[str],
    ) -> None:
        self._connection = connection
        self._silence_s = silence_s
        self._delegate = delegate
        self._log = log
        self._payloads: list[tuple[bytes, str, int]] = []  # with the digest and the number of inputs
        self.methods: dict[str, tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]] = {
            name: self._load() for name in names
        }
        self.inputs, self.outputs = self.methods[names[0]] if names else ((), ())

    def _load(self) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
        """Answer the runner's questions until it describes the next method: its inputs and outputs."""
        blobs = self._converse(Kind.READY, "loading")
        count = parse_u32(blobs[0])
        tensors = tuple(parse_descriptor(blob) for blob in blobs[1:])
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
        self._send(Kind.RUN, [u32(number), *data])
        blobs = self._converse(Kind.DONE, "execution")
        return [
            parse_descriptor(description).from_memory(content)
            for description, content in zip(blobs[::2], blobs[1::2], strict=True)
        ]

    def read(self, arena: int, offset: int, size_bytes: int) -> bytes:
        """What is in planned memory. SimulationError for a place outside of it."""
        place = b"".join(map(u32, (arena, offset, size_bytes)))
        self._send(Kind.READ, [place, b""])
        return self._converse(Kind.READ, "a look at its state")[0]

    def write(self, arena: int, offset: int, content: bytes) -> None:
        """Put `content` into planned memory. SimulationError for a place outside of it."""
        place = b"".join(map(u32, (arena, offset, len(content))))
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
                payload, blocks = blobs[1], vela_blocks.parse(blobs[1])
                inputs = len(blocks.inputs)
                self._payloads.append((payload, hashlib.sha256(payload).hexdigest(), inputs))
                self._send(Kind.DELEGATE, [u32(inputs) + u32(blocks.scratch_bytes)])
            elif kind is Kind.EXECUTE:
                self._execute(blobs)
            else:
                raise SimulationError(f"the host runtime sent {kind.name} during {doing}")

    def _failed(self, text: str) -> SimulationError:
        printed = self._printed()
        if _NO_MEMORY in printed:  # of this machine, not of a pool
            raise MemoryError(_NO_MEMORY)
        missing = dict.fromkeys(_MISSING_OPERATOR.findall(printed))
        if not missing:
            failed = _FAILED_OPERATOR.search(printed)
            where = f" in {failed[1]}" if failed else ""
            return SimulationError(f"ExecuTorch's host runtime failed{where}: {text}", self._last_words())
        return SimulationError(
            f"ExecuTorch's host runtime has no kernel for {', '.join(missing)}: {text}",
            "the operator stays on the CPU; docs/reference/kernels.md lists the operators for which the firmware "
            "has a kernel",
        )

    def _execute(self, blobs: list[bytes]) -> None:
        index = parse_u32(blobs[0])
        payload, digest, count = self._payloads[index]
        described, rest = blobs[1 : 1 + 2 * count], blobs[1 + 2 * count :]
        outputs = tuple(parse_descriptor(blob) for blob in rest)
        if self._delegate is None:
            raise SimulationError(f"the program calls delegate {index}, but nothing was given to execute it")
        inputs = []
        for description, content in zip(described[::2], described[1::2], strict=True):
            info = parse_descriptor(description)
            inputs.append(np.frombuffer(content, info.dtype).reshape(info.memory_shape))
        call = DelegateCall(index, payload, digest, tuple(inputs), outputs)
        results = [np.ascontiguousarray(array).tobytes() for array in self._delegate(call)]
        expected, got = [info.nbytes for info in outputs], [len(data) for data in results]
        if expected != got:
            message = f"returned outputs of {got} bytes, but the program has {expected}"
            raise SimulationError(f"delegate {index} {message}")
        self._send(Kind.EXECUTE, results)

    def _send(self, kind: Kind, blobs: Sequence[bytes]) -> None:
        try:
            send_message(self._connection, kind, blobs)
        except OSError as error:
            raise SimulationError(f"the host runtime ended early: {error}", self._last_words()) from error

    def _receive(self, doing: str) -> tuple[Kind, list[bytes]]:
        left_s = errors.left_s()
        self._connection.settimeout(max(_LEAST_WAIT_S, min(self._silence_s, left_s)))
        try:
            return receive_message(self._connection)
        except TimeoutError as error:
            message, hint = f"the host runtime was silent for {self._silence_s:g} s during {doing}", ""
            if left_s < self._silence_s:
                message, hint = f"the time limit was reached during {doing}", "--timeout gives it more time"
            raise SimulationError(message, hint) from error
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
    method: str | Sequence[str] = ENTRY,
    shares_state: bool = False,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    data: Sequence[Path] = (),
) -> Iterator[HostRuntime]:
    """Methods of the `.pte` at `path` with its `data` files, loaded, for the time of a `with` block.

    With `shares_state` they have one memory, as they were planned.

    `runner` comes from :func:`ethosu_sdk.simulate.host_runtime.build_runner`. `delegate` executes Ethos-U delegates
    in this process; without it a program that calls one fails. The runner may be silent for `timeout_s`
    between two messages, and until the deadline of :mod:`ethosu_sdk.npu.errors`, if there is one.
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


def run_application(
    program: Path, argv: Sequence[str], delegate: Delegate | None, timeout_s: float = DEFAULT_TIMEOUT_S
) -> bytes:
    """What the :func:`application` printed, started with `argv`. SimulationError when it ends early."""
    ours, theirs = socket.socketpair()
    with ours, theirs, tempfile.TemporaryFile() as log:
        with proc.spawn([str(program), *argv, str(theirs.fileno())], pass_fds=(theirs.fileno(),), stdout=log):
            theirs.close()
            HostRuntime(ours, delegate, log, timeout_s, ())._converse(Kind.DONE, "the application's run")
        log.seek(0)
        return log.read()


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


Observer = Callable[[DelegateCall, npu.Written], None]


class NpuModel:
    """Callable for :func:`ethosu_sdk.simulate.host_runtime.open_pte`. Decoded weights are kept from call to call.

    `observer` is given each OFM of each call as it is written. `calls` are the counters of each delegate call so far;
    whoever reads them may clear them.
    """

    def __init__(self, system: SystemConfig | None = None, observer: Observer | None = None) -> None:
        """`system` is what cycles and AXI ports are modelled for, by default the family's default."""
        self._system = system
        self._observer = observer
        self._programs: dict[str, npu.Program] = {}
        self.calls: list[npu.Counters] = []

    def __call__(self, call: DelegateCall) -> list[Array]:
        """Execute one delegate call. Raises what :func:`ethosu_sdk.npu.run` raises."""
        if call.payload_sha256 not in self._programs:
            self._programs[call.payload_sha256] = npu.load(call.payload, self._system)
        observer = None if self._observer is None else functools.partial(self._observer, call)
        result = npu.run(self._programs[call.payload_sha256], call.inputs, observer)
        self.calls.append(result.counters)
        return result.outputs


def event_totals(target_npu: str, events: tuple[int, ...], calls: list[npu.Counters]) -> dict[int, int]:
    """PMU event → how often it happened in all `calls`, counted per call as the hardware's PMU does."""
    kind = pmu.pmu_of(target_npu)
    return {event: sum(kind.value(event, counters) for counters in calls) for event in events}
