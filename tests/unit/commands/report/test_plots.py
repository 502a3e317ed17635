"""What a report draws: points stay below the roof, operators have the model's names, and views have writers."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from ethosu_sdk import pte
from ethosu_sdk.page import document
from ethosu_sdk.readers.report.plots import roofline
from ethosu_sdk.readers.report.views import fold
from ethosu_sdk.readers.report.views.network import _Reading
from ethosu_sdk.records import kinds
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.profile import Profile
from tests.places import ROOT

PATH = ROOT / "schemas" / "examples" / "valid" / "profile-digits_cnn.json"
Args = tuple[int, ...]


def _profile(change: Any = None) -> Profile:
    record = json.loads(PATH.read_text(encoding="utf-8"))
    if change is not None:
        change(record)
    return kinds.PROFILE.convert(record)


def _points(profile: Profile) -> list[dict[str, Any]]:
    points = roofline.of(profile, "plot").spec["datasets"]["points"]
    assert isinstance(points, list)
    return points


def _beside_others(record: dict[str, Any]) -> None:
    """Operations that run beside the ones before, and add one cycle each."""
    for row in record["operations"]:
        for part in row.get("cycles", ()):
            if part["source"] == "modelled":
                part["value"] = 1


@pytest.mark.parametrize("change", [None, _beside_others])
def test_points_stay_below_the_roof(change: Any) -> None:
    points = _points(_profile(change))
    assert len(points) > 2
    assert all(0 < row["rate"] <= row["roof"] * 1.0001 for row in points)
    if change is not None:  # the cycles that they add would lie above
        assert any(row["macs"] / 1 > row["roof"] for row in points)


@pytest.mark.parametrize(
    ("module", "kind", "operator", "name"),
    [
        ("head.act", "Mish", "TANH", "Mish: TANH"),
        ("7", "Linear", "CONV2D", "Linear: CONV2D"),
        ("0", "Conv2d", "DEPTHWISE_CONV2D", "DEPTHWISE_CONV2D"),
        ("2", "AdaptiveMaxPool2d", "MAX_POOL2D", "MAX_POOL2D"),
        ("7", "Linear", "TRANSPOSE", "TRANSPOSE"),
        ("", "Model", "TANH", "TANH"),
        ("head", None, "TANH", "TANH"),
    ],
)
def test_an_operator_has_the_name_of_its_module(
    module: str, kind: str | None, operator: str, name: str
) -> None:
    row = next(row for row in _profile().operations if row.tosa is not None)
    assert row.tosa is not None
    source = SourceLine(module=module, module_type=kind)
    assert fold.name(replace(row, source=source, tosa=replace(row.tosa, operator=operator))) == name


def _tensor(offset: int, size: int) -> pte.Tensor:
    return pte.Tensor(
        dtype="int8",
        element_bytes=1,
        sizes=(size,),
        dim_order=(0,),
        dynamism="STATIC",
        data_buffer_idx=0,
        allocation=pte.Allocation(1, offset),
        data=None,
        name="",
        external_name="",
    )


class _Plan:
    """The values and calls of a program; of each call the last argument is the result."""

    def __init__(self, values: Sequence[pte.Tensor], calls: Sequence[Args]) -> None:
        self.values = values
        self.instructions = [pte.KernelCall(0, args) for args in calls]


@pytest.mark.parametrize(
    ("calls", "edges"),
    [
        ([(0,), (1, 2)], [(0, 1)]),  # 1 is a view of 0: the same bytes
        ([(0,), (3, 2)], []),  # 3 begins there and is longer: room to work in
        ([(0,), (4,), (1, 2)], []),  # 4 lies on some of the bytes of 0
    ],
)
def test_a_view_is_read_from_who_wrote_its_bytes(calls: list[Args], edges: list[tuple[int, int]]) -> None:
    values = [_tensor(0, 16), _tensor(0, 16), _tensor(64, 8), _tensor(0, 48), _tensor(8, 4)]
    row = _profile().operations[0]
    rows = tuple(replace(row, index=at, instruction=at) for at in range(len(calls)))
    plan: Any = _Plan(values, calls)
    found = _Reading(plan, replace(_profile(), operations=rows), {})
    assert list(found.edges()) == edges


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("run `a --try` again", "Run <code>a --try</code> again."),
        ("net.pte is about another program", "net.pte is about another program."),
        ("an odd ` stays", "An odd ` stays."),
        ("<b> `<i>`", "&lt;b&gt; <code>&lt;i&gt;</code>."),
        ("Done: what?", "Done: what?"),
        ("", ""),
    ],
)
def test_messages_are_sentences(text: str, html: str) -> None:
    assert str(document._sentence(text)) == html
