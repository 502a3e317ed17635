"""What is done in a cell once its program is compiled, and what came out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.base import filesystem, json_text, npz
from ethosu_sdk.compile import zoo
from ethosu_sdk.compile.compile_facts import CompileOutput
from ethosu_sdk.program import pte
from ethosu_sdk.simulate import host_runtime
from tests.conformance.comparison import SEEDS, random_inputs, says_something
from tests.conformance.models.case import INT32_RANGE
from tests.integration.cli import Outcome as CliOutcome, sdk
from tests.oracles import chain
from tests.oracles.tosa import TosaModel

EXACT, DIFFERS, REFUSED, FAILED = "exact", "differs", "refused", "failed"
RANDOM_INFERENCES = 2  # beside the example inputs, in one boot of the firmware
STEPS = 8  # of a model with a state
SIMULATORS = ("qemu", "host")
SPILL = "--allow-spill"

Array = NDArray[Any]
Run = Callable[[npu.Program, list[Array]], npu.RunResult]
_EXIT_BUILD, _EXIT_VERDICT = 5, 7


@dataclass(frozen=True)
class Outcome:
    """What a cell shows.

    `verdict` is EXACT, DIFFERS (of `elements` output elements, `differing` are not the oracle's), REFUSED (by the
    compiler or by `build`, with its message as `detail`) or FAILED. `cpu` are the operators that the program calls
    on the CPU, without conversions at the border between float and quantised values, each with the reason. `refusal`
    is what `build` says against a program that leaves the memory that its mode wants, where it then ran with SPILL.
    """

    verdict: str
    detail: str = ""
    delegates: int = 0
    elements: int = 0
    differing: int = 0
    cpu: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    refusal: str = ""

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values; :meth:`from_json` is the way back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Outcome:
        """The outcome that :meth:`to_json` wrote."""
        return cls(
            **{
                **data,
                "cpu": tuple((name, reason) for name, reason in data["cpu"]),
                "notes": tuple(data["notes"]),
            }
        )


@dataclass(frozen=True)
class Oracles:
    """ExecuTorch's runtime for the host, and the TOSA reference model."""

    runner: Path
    tosa: TosaModel


def program_facts(output: CompileOutput) -> Outcome:
    """What is known of a program without running it."""
    stays = {
        (row.name, site.reason) for row in output.cpu_operators if not row.boundary for site in row.sites
    }
    return Outcome(EXACT, delegates=len(output.delegates), cpu=tuple(sorted(stays)))


def counted(facts: Outcome, differing: int, elements: int) -> Outcome:
    """`facts` with the result of a comparison."""
    verdict = DIFFERS if differing else EXACT
    return replace(facts, verdict=verdict, differing=differing, elements=elements)


def check_delegates(output: CompileOutput, oracles: Oracles, run: Run = npu.run) -> Outcome:
    """Every delegate on the NPU model against the TOSA reference model.

    Inputs are what the program hands it for the model's example inputs or steps, random ones over the whole range of
    their types, and half of the one with half of the other, where deep networks do not saturate.
    """
    graphs = chain.tosa_by_payload(output)
    handed: dict[str, list[list[Array]]] = {row.payload_sha256: [] for row in output.delegates}

    def execute(call: host_runtime.DelegateCall) -> list[Array]:
        handed[call.payload_sha256].append(list(call.inputs))
        return chain.execute_delegate(call, graphs, oracles.tosa)

    with host_runtime.open_pte(oracles.runner, output.pte, execute) as runtime:
        for step in steps(output) or [example_inputs(output)]:
            runtime.run(step)
    differing = elements = 0
    delegates = pte.read(output.pte).plan("forward").delegates
    for row, delegate in zip(output.delegates, delegates, strict=True):
        payload, graph = bytes(delegate.payload), graphs[row.payload_sha256]
        assert filesystem.sha256_bytes(payload) == row.payload_sha256
        program, references = npu.load(payload), []
        own = handed[row.payload_sha256]
        random = [indices_kept(own[-1], graph, program, seed) for seed in SEEDS]
        for inputs in [*own, *random, *(mixed(own[-1], other) for other in random)]:
            references.append(oracles.tosa.run(graph, inputs))
            found = run(program, inputs).outputs
            for array, wanted in zip(found, references[-1], strict=True):
                assert array.nbytes == wanted.nbytes
                differing += int((array.reshape(-1) != wanted.reshape(-1)).sum())
                elements += wanted.size
        for column in zip(*references, strict=True):
            values = np.concatenate([array.reshape(-1) for array in column])
            assert says_something(values), (
                f"an output of delegate {row.index} hardly varies: it proves nothing"
            )
    return counted(program_facts(output), differing, elements)


def indices_kept(own: list[Array], graph: bytes, program: npu.Program, seed: int) -> list[Array]:
    """Random inputs, but the program's own where they are int32: those are indices, and the reference model refuses
    what is outside of a table."""
    random = random_inputs(graph, program.blocks.inputs, seed, INT32_RANGE)
    return [a.reshape(b.shape) if b.dtype == np.int32 else b for a, b in zip(own, random, strict=True)]


def mixed(own: list[Array], other: list[Array]) -> list[Array]:
    """Half of each, without overflow."""
    return [(a.reshape(b.shape) >> 1) + (b >> 1) for a, b in zip(own, other, strict=True)]


def example_inputs(output: CompileOutput) -> list[Array]:
    """The model's example inputs."""
    stored = npz.read_npz(output.io)
    return [stored[f"input{index}"] for index in range(len(output.inputs))]


def steps(output: CompileOutput) -> list[list[Array]]:
    """The first steps of a sequence, for a model of the zoo that keeps a state; else none. Imports torch for them."""
    if not zoo.entry(output.name).stateful:
        return []
    return [[value.numpy() for value in step] for step in zoo.load(output.name).calibration[:STEPS]]


def inferences(output: CompileOutput) -> list[list[Array]]:
    """The model's example inputs and random ones; steps for a model with a state, which goes on from each to the
    next."""
    if own := steps(output):
        return own
    generator = np.random.default_rng(len(output.name))
    example = example_inputs(output)

    def like(array: Array) -> Array:
        if array.dtype.kind == "i":
            return np.asarray(generator.integers(*INT32_RANGE, array.shape), array.dtype)
        return np.asarray(generator.normal(0, 2, array.shape), array.dtype)

    return [example, *([like(array) for array in example] for _ in range(RANDOM_INFERENCES))]


def run_on(simulator: str, output: CompileOutput, folder: Path, options: list[str | Path]) -> CliOutcome:
    """`ethosu-sdk run`, its results below `folder`."""
    where = ("--simulator", simulator, "-o", folder / simulator)
    return sdk("run", output.pte, *where, *options, "--json", "-q", cwd=folder)


def check_firmware(output: CompileOutput, folder: Path, oracles: Oracles) -> Outcome:
    """`run` on QEMU and on the host simulator against the independent chain. Files go to `folder`."""
    facts, samples = program_facts(output), inferences(output)
    with chain.open_chain(oracles.runner, output.pte, chain.tosa_by_payload(output), oracles.tosa) as runtime:
        expected = [runtime.run(row) for row in samples]
    inputs, wanted = folder / "inputs.npz", folder / "expected.npz"
    for path, prefix, rows in ((inputs, "input", samples), (wanted, "output", expected)):
        columns = enumerate(zip(*rows, strict=True))
        npz.write_npz(path, {f"{prefix}{index}": np.stack(column) for index, column in columns})
    options: list[str | Path] = ["--inputs", inputs, "--expect", wanted]
    refusal = ""
    for simulator in SIMULATORS:
        outcome = run_on(simulator, output, folder, options)
        if outcome.code == _EXIT_BUILD and not refusal:
            refusal = said(outcome.err)
            options.append(SPILL)
            outcome = run_on(simulator, output, folder, options)
        if outcome.code:
            verdict = {_EXIT_BUILD: REFUSED, _EXIT_VERDICT: DIFFERS}.get(outcome.code, FAILED)
            return replace(facts, verdict=verdict, detail=f"{simulator}: {said(outcome.err)}")
        assert json.loads(outcome.out)["inferences"] == len(samples)
    elements = sum(array.size for row in expected for array in row)
    notes = json_text.read_json(folder / "qemu" / "build.json")["notes"]
    return replace(facts, elements=elements, notes=tuple(notes), refusal=refusal)


def said(text: str) -> str:
    """The error among what a command printed, and its hint, in one line."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    start = next((index for index, line in enumerate(lines) if line.startswith("error:")), 0)
    return " ".join(lines[start:]).removeprefix("error:").strip().replace(" hint: ", ". Hint: ")
