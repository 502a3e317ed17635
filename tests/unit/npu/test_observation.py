"""The look at what operations write: every OFM, as it is in memory, and nothing changes by looking."""

from dataclasses import replace

import numpy as np
import pytest

from ethosu_sdk import npu
from ethosu_sdk.steps.debug.gathering import Recorder
from tests.unit.npu.payloads import OFM, SHAPE, U55, U85, VALUES, copy, payload


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


def test_what_an_observer_raises_ends_the_run() -> None:
    class EnoughError(Exception):
        """Of this test alone."""

    def refuse(written: npu.Written) -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        npu.run(payload(U55, copy(U55)), [VALUES], refuse)


def test_a_recorder_keeps_copies_and_leaves_out_what_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[npu.Written] = []
    npu.run(payload(U55, copy(U55)), [VALUES], seen.append)
    monkeypatch.setattr("ethosu_sdk.steps.debug.gathering.MOST_BYTES", VALUES.nbytes)
    recorder = Recorder()
    recorder.take(seen[0])
    seen[0].values[...] = 0
    np.testing.assert_array_equal(recorder.written[0].values[0], VALUES)
    recorder.take(replace(seen[0]))
    assert len(recorder.written) == len(recorder.left_out) == 1
