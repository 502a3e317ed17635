"""Running a delegate in one line, on every NPU: configurations, regions, tensors, results, and looking at what is
written.
"""

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.analysis.debug_layers import Recorder
from ethosu_sdk.base.errors import InputError, UsageError
from tests.tables import each
from tests.unit.npu.payloads import COUNT, IFM, OFM, OUTPUT, SHAPE, U55, U85, VALUES, WORDS, copy, payload
from tests.unit.npu.streams import DMA_START, GLOBAL_SCALE, STOP, branch, one, precision, stream, transfer

# AXI ports of the arena, and of the constants and commands, in each family's default memory mode (vela.ini):
# Shared_Sram, Dedicated_Sram_384KB, Dedicated_Sram_384KB.
PORTS = {"ethos-u55": (0, 1), "ethos-u65": (1, 1), "ethos-u85": (1, 1)}


@each("target", WORDS)
def test_every_npu_runs_its_payloads(target: tuple[str, int]) -> None:
    program = npu.load(payload(target, copy(target)))
    assert (program.config.npu, program.config.macs) == target
    assert program.config.config_word == WORDS[target][0]
    result = npu.run(program, [VALUES])
    assert result.outputs[0].reshape(SHAPE).tolist() == VALUES.tolist()
    assert [row.name for row in result.operations] == [
        "POOL_SUM" if target[0] == "ethos-u85" else "POOL_AVERAGE"
    ]
    assert result.counters.total_cycles > 0
    arena, constants = PORTS[target[0]]
    commands = len(copy(target))  # padding behind NPU_OP_STOP is not read
    read = {arena: COUNT, constants: commands} if arena != constants else {arena: COUNT + commands}
    written = {(arena, True): COUNT}
    assert result.counters.bytes_moved == {(port, False): size for port, size in read.items()} | written


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (0x3000_1807, "product 3"),
        (0x2000_0119, "0x20000119"),  # 512 MACs with the decoders of 256
        (0x2000_0116, "ethos-u85-64"),
        (0x1000_3007, "ethos-u65-128"),
        (0x0000_1009, "ethos-u55-512"),
    ],
)
def test_other_configurations_are_errors(word: int, message: str) -> None:
    good = payload(U55, copy(U55))
    data = good.replace(struct.pack("<I", WORDS[U55][0]), struct.pack("<I", word))
    assert data != good
    with pytest.raises(UsageError) as raised:
        npu.load(data)
    assert message in raised.value.message


def test_the_command_set_is_that_of_the_configuration() -> None:
    """BRANCH and RESIZE exist on Ethos-U85 alone."""
    data = branch(8) + STOP
    assert npu.run(payload(U85, data), [VALUES]).operations == ()
    with pytest.raises(npu.CommandError):
        npu.run(payload(U55, data), [VALUES])
    with pytest.raises(npu.CommandError):
        npu.run(payload(U55, one(0x007) + STOP), [VALUES])


def dma(source: tuple[int, int], target: tuple[int, int], length: int) -> bytes:
    return stream((transfer(source, target, length), DMA_START, 0), stop=False)


def test_constants_are_read_only_and_scratch_is_zero_and_ends() -> None:
    constants = bytes(range(COUNT))
    data = dma((0, 0), (1, OFM), COUNT) + STOP
    result = npu.run(payload(U85, data, weights=constants), [VALUES])
    assert result.outputs[0].tobytes() == constants
    with pytest.raises(npu.BusError, match="read-only"):
        npu.run(payload(U85, dma((1, 0), (0, 0), 4) + STOP, weights=constants), [VALUES])
    with pytest.raises(npu.BusError, match="read-only"):
        npu.run(payload(U85, copy(U85, {"OFM_REGION": 0, "OFM_BASE0": 0}), weights=constants), [VALUES])
    program = npu.load(payload(U85, dma((1, 0x600), (1, OFM), COUNT) + STOP))
    assert not npu.run(program, [VALUES]).outputs[0].any()
    with pytest.raises(npu.BusError):
        npu.run(payload(U85, dma((1, 0x800 - 4), (1, OFM), 5) + STOP), [VALUES])
    npu.run(payload(U85, dma((1, 0x800 - 4), (1, OFM), 4) + STOP), [VALUES])


def test_fast_scratch_is_region_2_and_as_large_as_the_commands_need() -> None:
    """512 KiB of it, as much as Vela's memory modes give."""
    far = 512 * 1024 - COUNT
    data = dma((1, IFM), (2, far), COUNT) + dma((2, far), (1, OFM), COUNT) + STOP
    assert (
        npu.run(payload(U55, data), [VALUES]).outputs[0].reshape(-1).tolist() == VALUES.reshape(-1).tolist()
    )
    # Dedicated_Sram sets no limit: MobileNetV2 keeps 1.5 MB there. But a damaged stream does not get all memory.
    far = (3 << 20) - COUNT
    there, back = dma((1, IFM), (2, far), COUNT), dma((2, far), (1, OFM), COUNT)
    assert npu.run(payload(U85, there + back + STOP), [VALUES]).outputs[0].tobytes() == VALUES.tobytes()
    with pytest.raises(npu.BusError, match="region 2"):
        npu.run(payload(U85, back + STOP), [VALUES])
    with pytest.raises(npu.BusError, match="region 2"):
        npu.run(payload(U85, dma((1, IFM), (2, 1 << 26), COUNT) + STOP), [VALUES])


@pytest.mark.parametrize("region", [3, 4, 7])
def test_there_are_no_other_regions(region: int) -> None:
    with pytest.raises(npu.BusError, match=f"region {region}"):
        npu.run(payload(U85, copy(U85, {"IFM_REGION": region})), [VALUES])


@pytest.mark.parametrize(("size", "kind"), [(1, np.int8), (2, np.int16), (4, np.int32)])
def test_tensors_in_their_order_and_with_their_types(size: int, kind: type[np.signedinteger[Any]]) -> None:
    """Two inputs come out as they are, exchanged by the order of the outputs."""
    first = (1, 1, 1, 1, 2, 3, size, 0x100, 1)
    second = (1, 1, 1, 1, 5, 1, size, 0x200, 1)
    program = npu.load(payload(U85, STOP, (first, second), (second, first)))
    a = np.arange(-3, 3).astype(kind)
    b = np.arange(5).astype(kind) * 20
    outputs = npu.run(program, [a, b]).outputs
    assert [output.dtype for output in outputs] == [np.dtype(kind)] * 2
    assert [output.shape for output in outputs] == [(1, 1, 1, 1, 5, 1), (1, 1, 1, 1, 2, 3)]
    assert [output.reshape(-1).tolist() for output in outputs] == [b.tolist(), a.tolist()]


def test_what_is_not_supported_is_named() -> None:
    with pytest.raises(InputError, match="8-byte elements"):
        npu.load(payload(U85, STOP, ((1, 1, 1, 1, 1, 4, 8, 0, 1),)))
    data = copy(U85, {"OFM_PRECISION": precision(8, ofm=True, extra=GLOBAL_SCALE | 1 << 14)})
    with pytest.raises(npu.UnsupportedCommand) as raised:
        npu.run(payload(U85, data), [VALUES])
    assert raised.value.name == "SET_OFM_PRECISION"


@pytest.mark.parametrize(
    "values",
    [VALUES, VALUES.reshape(-1), VALUES.view(np.uint8), np.asfortranarray(VALUES), VALUES.copy()[::1]],
)
def test_inputs_are_taken_by_their_values_in_row_order(values: NDArray[Any]) -> None:
    found = npu.run(payload(U85, copy(U85)), [values]).outputs[0]
    assert found.reshape(SHAPE).tolist() == VALUES.tolist()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([], "0 inputs given, but the delegate has 1"),
        ([VALUES, VALUES], "2 inputs given, but the delegate has 1"),
        ([VALUES[:1]], "input 0"),
        ([VALUES.astype(np.int16)], "input 0"),
    ],
)
def test_inputs_that_do_not_fit_are_errors(inputs: list[NDArray[Any]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        npu.run(payload(U85, copy(U85)), inputs)


@pytest.mark.parametrize("end", ["input", "output"])
def test_tensors_of_the_fast_scratch_that_reach_past_it_are_errors(end: str) -> None:
    """Region 2's size is not in the payload: the run knows it."""
    far = ((*OUTPUT[:7], 512 * 1024 - COUNT + 1, 2),)
    data = payload(U55, copy(U55), far) if end == "input" else payload(U55, copy(U55), outputs=far)
    with pytest.raises(InputError):
        npu.run(data, [VALUES])


def test_the_input_is_not_changed_and_runs_are_alike() -> None:
    """The OFM lies where the input is, one higher: the run works on a copy."""
    in_place = copy(U85, {"OFM_BASE0": IFM, "OFM_ZERO_POINT": 1})
    program = npu.load(payload(U85, in_place, outputs=((*OUTPUT[:7], IFM, 1),)))
    before = VALUES.copy()
    results = [npu.run(program, [VALUES]).outputs[0] for _ in range(3)]
    assert np.array_equal(VALUES, before)
    assert all((result == results[0]).all() for result in results)
    results[0][...] = 0
    assert results[1].any()


# --- The look at what operations write: every OFM, as it is in memory, and nothing changes by looking.


@pytest.mark.parametrize("target", [U55, U85], ids=str)
def test_an_observer_is_told_of_every_ofm(target: tuple[str, int]) -> None:
    program = npu.load(payload(target, copy(target)))
    seen: list[npu.Written] = []
    result = npu.run(program, [VALUES], seen.append)
    (written,) = seen
    assert written.shape == (1, *SHAPE)
    assert written.dtype == np.int8
    assert written.address == (1, OFM)
    assert written.zero_point == written.operation.ofm.zero_point
    np.testing.assert_array_equal(written.values[0], VALUES)
    np.testing.assert_array_equal(npu.run(program, [VALUES]).outputs[0], result.outputs[0])


def test_observers_may_raise_and_keep_what_is_not_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    class EnoughError(Exception):
        """Of this test alone."""

    def refuse(written: npu.Written) -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        npu.run(payload(U55, copy(U55)), [VALUES], refuse)
    seen: list[npu.Written] = []
    npu.run(payload(U55, copy(U55)), [VALUES], seen.append)
    monkeypatch.setattr("ethosu_sdk.analysis.debug_layers.MOST_BYTES", VALUES.nbytes)
    recorder = Recorder()
    recorder.take(seen[0])
    seen[0].values[...] = 0
    np.testing.assert_array_equal(recorder.written[0].values[0], VALUES)
    recorder.take(replace(seen[0]))
    assert len(recorder.written) == len(recorder.left_out) == 1
