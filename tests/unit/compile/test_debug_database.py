"""Vela's debug database: from the command stream to the TOSA graph, and weights and outputs that it shows as lost."""

from pathlib import Path

import msgspec
import pytest

from ethosu_sdk.base.errors import BuildError, InputError
from ethosu_sdk.compile import vela_checks, vela_database
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.vela_capture import VelaCapture
from ethosu_sdk.compile.vela_database import ScheduledOperation
from ethosu_sdk.records.common import SourceLine, TosaOperation, VelaOperation
from ethosu_sdk.records.compile import Delegate, DelegateFiles, Operation
from tests.conformance.tosa_graph import Graph
from tests.tables import each
from tests.unit.npu.vela_payloads import Payload, slots

# The tables, written by hand.
TABLES = {
    "source": '"id","operator","ext_key"\n1,"Const",0\n5,"Conv2D",7\n6,"Rescale",-1\n',
    "optimised": '"id","source_id","operator"\n10,5,"Conv2D"\n11,0,"Copy"\n12,6,"Rescale"\n',
    "perf": '"id","operator","name","op_cycles","mac_count","staging_usage"\n20,"Conv2D","out",300,400,640\n'
    '21,"Copy","#99",5,"",""\n',
    "queue": '"offset","cmdstream_id","optimised_id","scheduled_id"\n64,1,10,20\n96,1,10,20\n120,1,11,21\n'
    "200,1,12,22\n",
}


def database(**changes: str) -> bytes:
    parts = "".join(
        f'<table name="{name}">\n<![CDATA[\n{text}]]>\n</table>\n'
        for name, text in {**TABLES, **changes}.items()
    )
    return f"<?xml version='1.0' encoding='UTF-8'?>\n<debug source='x'>\n{parts}</debug>\n".encode()


SHAPES = ("shape", "slice")
COLUMNS = ",".join(
    ['"id","weight_format","transpose_type"', *(f'"ofm_{what}_{axis}"' for what in SHAPES for axis in "nhwc")]
)


def layer(weight_format: str, transpose_type: str, shape: str, part: str) -> bytes:
    """A database whose operation 20 is such a layer."""
    return database(
        perf_debug=f'{COLUMNS}\n20,"{weight_format}","{transpose_type}",{shape},{part}\n'
        f'21,"","NCHW",{shape},{part}\n'
    )


def test_operations_are_joined_and_those_in_branches_have_no_origin() -> None:
    assert vela_database.scheduled_operations(database()) == (
        ScheduledOperation("Conv2D", "out", (64, 96), 300, 400, 640, 7),
        ScheduledOperation(
            "Copy", "", (120,), 5, None, None, None
        ),  # Vela's own, with a serial number for a name
        ScheduledOperation(
            "Rescale", "", (200,), None, None, None, None
        ),  # scheduled, but not in the table of cycles
    )
    queue = TABLES["queue"] + "300,1,0,30\n340,1,0,31\n"
    found = vela_database.scheduled_operations(database(queue=queue))
    assert found[-1] == ScheduledOperation("Unknown", "", (300, 340), None, None, None, None)
    assert found[:-1] == vela_database.scheduled_operations(database())


@each(
    ("transpose_type", "part", "counts"),
    [
        pytest.param("NCHW", "1,4,9,16", (4, 16), id="channels-first"),
        pytest.param("NWCH", "1,9,4,16", (4, 16), id="channels-third"),
        pytest.param("NCHW", "1,16,9,16", None, id="as-many"),
        pytest.param("NWHC", "1,4,9,16", None, id="channels-last"),
        pytest.param("None", "1,4,9,16", None, id="not-transposed"),
        pytest.param("NCHW", "0,0,0,0", None, id="whole-tensor"),
        pytest.param("NCHW", "1,20,20,20", None, id="part-that-is-the-whole"),
    ],
)
def test_weights_for_other_channels(transpose_type: str, part: str, counts: tuple[int, int] | None) -> None:
    found = vela_database.misjudged_channels(layer("Default", transpose_type, "1,20,20,20", part))
    assert found == ({} if counts is None else {64: counts, 96: counts})


def test_only_weights_count_and_another_form_is_refused() -> None:
    assert not vela_database.misjudged_channels(layer("", "NCHW", "1,20,20,20", "1,4,9,16"))
    with pytest.raises(BuildError, match="debug database"):
        vela_database.misjudged_channels(database(perf_debug='"id"\n20\n'))


@each(
    "xml",
    [
        b"",
        b"<debug>",
        b"<debug></debug>",
        database(queue='"offset"\n64\n'),
        database(queue='"offset","cmdstream_id","optimised_id","scheduled_id"\nx,1,10,20\n'),
        database(queue='"offset","cmdstream_id","optimised_id","scheduled_id"\n64,1,99,20\n'),
    ],
)
def test_another_form_is_refused(xml: bytes) -> None:
    with pytest.raises(BuildError, match="debug database"):
        vela_database.scheduled_operations(xml)


# --- A layer whose weights Vela encoded for other channels is refused, with its place in the model.

PLACE = SourceLine(file="net.py", line=7, module="features.0", module_type="Conv2d")
LAYER = Operation(
    offsets=(64, 96),
    vela=VelaOperation(operator="Conv2D", name="out"),
    tosa=TosaOperation(index=7, operator="CONV2D", tensor="t"),
    source=PLACE,
    estimates=(),
)
OTHER = msgspec.structs.replace(LAYER, vela=VelaOperation(operator="Conv2D", name="copy"), offsets=(120,))
DELEGATE = Delegate(
    index=2,
    payload_sha256="",
    payload_bytes=0,
    scratch_bytes=0,
    fast_scratch_bytes=0,
    files=DelegateFiles(tosa="t", summary="s", per_layer="p", debug="d"),
    estimates=(),
    operations=(OTHER, LAYER),
)


def test_weights_for_other_channels_are_refused_by_name_and_whole_ones_pass() -> None:
    vela_checks.check_weights(DELEGATE, layer("Default", "NCHW", "1,20,9,16", "1,16,9,16"))
    with pytest.raises(InputError, match="in delegate 2 for 16 output channels instead of its 4") as caught:
        vela_checks.check_weights(DELEGATE, layer("Default", "NCHW", "1,20,9,16", "1,4,9,16"))
    assert caught.value.message.endswith(
        "It is the Conv2D 'out', made at net.py, line 7, module 'features.0'"
    )
    assert caught.value.hint


# --- A payload with fewer outputs than its TOSA graph is refused, with the places of the tensors in question.

ROOT = Path("/models")
BIG, SMALL = (1, 1, 1, 2, 2, 3, 1, 0, 1), (1, 1, 1, 1, 2, 3, 1, 64, 1)


def capture(*shapes: list[int]) -> VelaCapture:
    """Of a graph that returns tensors of these shapes, the first made in line 7 of the model."""
    graph = Graph()
    results = [graph.add("IDENTITY", [graph.input(shape, "INT8")], shape, "INT8") for shape in shapes]
    nodes = {results[0].name: {"stack_trace": f'File "{ROOT}/net.py", line 7, in forward'}}
    return VelaCapture("", 0, graph.finish(*results), b"", b"", b"", 0, 0, nodes)


def check(rows: tuple[tuple[int, ...], ...], *shapes: list[int]) -> None:
    payload = Payload(outputs=slots(*rows)).encode()
    vela_checks.check_outputs(3, payload, capture(*shapes), SourceFinder(ROOT))


def test_lost_outputs_are_named() -> None:
    check((BIG, SMALL), [1, 2, 2, 3], [2, 3])
    with pytest.raises(InputError, match="delegate 3 with 1 of its 2 outputs") as caught:
        check((SMALL,), [1, 2, 2, 3], [2, 3])
    assert caught.value.message.endswith("It is [1, 2, 2, 3] made at net.py, line 7, in forward")
    assert caught.value.hint
    with pytest.raises(InputError, match="It is one of ") as caught:
        check((SMALL,), [2, 3], [6])
    assert "[2, 3] made at net.py, line 7, in forward; [6] made at an unknown place" in caught.value.message
    with pytest.raises(InputError, match="delegate 3 with 2 of its 2 outputs"):
        check((SMALL, BIG), [1, 2, 2, 3], [2, 3])
