"""A layer whose weights Vela encoded for other channels is refused, with its place in the model."""

from dataclasses import replace

import pytest

from ethosu_sdk.aot.facts.compilation import DelegateFacts, OperationFacts
from ethosu_sdk.aot.facts.source_line import SourceLine
from ethosu_sdk.aot.vela import delegate_weights
from ethosu_sdk.errors import InputError
from tests.unit.aot.debug_tables import layer

PLACE = SourceLine("net.py", 7, "features.0", "Conv2d")
LAYER = OperationFacts("Conv2D", "out", (64, 96), 300, 400, 640, 7, "CONV2D", "t", PLACE)
OTHER = replace(LAYER, name="copy", offsets=(120,))
DELEGATE = DelegateFacts(2, "", 0, "", "", "", "", 0, 0, {}, (OTHER, LAYER))


def test_whole_weights_pass() -> None:
    delegate_weights.check(DELEGATE, layer("Default", "NCHW", "1,20,9,16", "1,16,9,16"))


def test_weights_for_other_channels_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="in delegate 2 for 16 output channels instead of its 4") as caught:
        delegate_weights.check(DELEGATE, layer("Default", "NCHW", "1,20,9,16", "1,4,9,16"))
    assert caught.value.message.endswith(
        "It is the Conv2D 'out', made at net.py, line 7, module 'features.0'"
    )
    assert caught.value.hint
