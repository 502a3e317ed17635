"""Damaged files as Vela writes them: a `.tflite` with its operators, its raw `.npz`, and bare command streams."""

import functools
import io
import random
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from ethosu_sdk.analysis import inspect_command, profile_stream
from ethosu_sdk.analysis.inspect_command import InspectOptions
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import vela_program
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.vela_blocks import VelaBlocks
from ethosu_sdk.program import pte
from tests.pte_files import golden
from tests.tflite_files import Model

_NAMES = ("add_u55", "add_u85_segment", "conv_u65_int8")
_TARGET = Target("ethos-u55", 128, "Ethos_U55_High_End_Embedded", "Shared_Sram")
_ALL = InspectOptions(commands=True, hazards=True, system="alif-e7-he")


def _blocks(name: str) -> VelaBlocks:
    return vela_blocks.parse(pte.parse(golden(name)).delegates[0].payload)


def _raw(vela: VelaBlocks) -> bytes:
    """The arrays of Vela's raw output."""
    arrays = {
        "cmd_data": np.frombuffer(vela.command_data, np.uint8),
        "weight_data": np.frombuffer(vela.weights, np.uint8),
        "weight_region": np.array(0),
        "scratch_shape": np.array([vela.scratch_bytes]),
        "scratch_region": np.array(1),
        "variable_offset": np.zeros(0),
    }
    for kind, slots in (("input", vela.inputs), ("output", vela.outputs)):
        arrays[f"{kind}_shape"] = np.array([slot.shape for slot in slots])
        arrays[f"{kind}_elem_size"] = np.array([slot.element_bytes for slot in slots])
        arrays[f"{kind}_region"] = np.array([slot.region for slot in slots])
        arrays[f"{kind}_offset"] = np.array([slot.offset for slot in slots])
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _tflite(vela: VelaBlocks) -> bytes:
    """A model of one operator of Vela's."""
    model = Model()
    dtypes = {1: "int8", 2: "int16", 4: "int32"}
    commands, weights = (
        model.constant(np.frombuffer(part, np.uint8)) for part in (vela.command_data, vela.weights)
    )
    scratch = model.tensor((vela.scratch_bytes,), "uint8")
    given = [
        model.input(f"x{n}", slot.shape[2:], dtypes[slot.element_bytes]) for n, slot in enumerate(vela.inputs)
    ]
    made = [model.tensor(slot.shape[2:], dtypes[slot.element_bytes]) for slot in vela.outputs]
    model.operator(
        "ethos-u", [commands, weights, scratch, scratch, *given], made, custom_options=b"\x01\x04\x01"
    )
    model.output(*made)
    places = [-1, -1, 0, *(slot.offset for slot in (*vela.inputs, *vela.outputs))]
    model.metadata["OfflineMemoryAllocation"] = struct.pack(
        f"<{3 + len(places)}i", 0, 0, len(places), *places
    )
    return model.to_bytes()


@functools.cache
def intact() -> dict[str, bytes]:
    """Files of each kind by their names."""
    found: dict[str, bytes] = {}
    for name in _NAMES:
        found |= _files(name, _blocks(name))
    return found


def read(path: Path) -> None:
    """All that is done with the file before it runs."""
    inspect_command.inspect_file(path, _ALL)
    if path.suffix == ".cop1":
        profile_stream.profile_of_stream(path, CompileOptions(), None)
    else:
        pte.parse(vela_program.program_bytes(path, _TARGET, CompileOptions()))


def _files(name: str, vela: VelaBlocks) -> dict[str, bytes]:
    commands = bytes(vela.command_data)
    given = f"given_{name}"  # what a case is given is no result of it
    return {f"{given}.cop1": commands, f"{given}.npz": _raw(vela), f"{given}_vela.tflite": _tflite(vela)}


def _damaged(choice: random.Random) -> tuple[str, bytes]:
    """A file with damaged bytes; or one whose container is fine, and its commands, weights or numbers are not."""
    if choice.random() < 0.3:
        name, data = choice.choice(list(intact().items()))
        return name, damage.damaged(choice, data)
    name = choice.choice(_NAMES)
    vela = _blocks(name)
    place = len(vela.command_data) - len(vela.command_stream)
    commands = bytes(vela.command_data)
    changed = choice.choice((damage.flip, damage.words))(choice, commands[place:])
    slots = [
        replace(
            slot, offset=_number(choice, slot.offset), element_bytes=choice.choice((1, slot.element_bytes))
        )
        for slot in vela.inputs
    ]
    made = replace(
        vela,
        command_data=memoryview(commands[:place] + changed),
        weights=memoryview(bytes(vela.weights)[: _number(choice, len(vela.weights)) % 4096]),
        scratch_bytes=_number(choice, vela.scratch_bytes),
        inputs=tuple(slots),
    )
    return choice.choice(list(_files(name, made).items()))


def _number(choice: random.Random, value: int) -> int:
    """The value, most often; else one near a limit."""
    return value if choice.random() < 0.7 else choice.choice((0, 1, 15, value + 1, (1 << 31) - 1, 1 << 20))


def _probe(context: Context, choice: random.Random) -> Probe:
    name, data = _damaged(choice)
    return Probe(f"read {name}", {name: data}, lambda folder: read(folder / name))


def _case(context: Context, choice: random.Random) -> Case:
    name, data = _damaged(choice)
    words = (
        ("profile", name, "--no-cpu-cycles") if name.endswith(".cop1") else ("inspect", name, "--commands")
    )
    return Case(f"{words[0]} {name}", {name: data}, words)


KIND = Kind("vela", _case, _probe)
