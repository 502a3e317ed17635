"""From the command stream to the TOSA graph: the join through Vela's tables; what they tell of weights."""

import pytest

from ethosu_sdk.aot.vela import debug_database
from ethosu_sdk.aot.vela.debug_database import ScheduledOperation
from ethosu_sdk.errors import BuildError
from tests.unit.aot.debug_tables import TABLES, database, layer


def test_join() -> None:
    assert debug_database.scheduled_operations(database()) == (
        ScheduledOperation("Conv2D", "out", (64, 96), 300, 400, 640, 7),
        ScheduledOperation(
            "Copy", "", (120,), 5, None, None, None
        ),  # Vela's own, with a serial number for a name
        ScheduledOperation(
            "Rescale", "", (200,), None, None, None, None
        ),  # scheduled, but not in the table of cycles
    )


def test_operations_inside_of_branches_have_no_origin() -> None:
    queue = TABLES["queue"] + "300,1,0,30\n340,1,0,31\n"
    found = debug_database.scheduled_operations(database(queue=queue))
    assert found[-1] == ScheduledOperation("Unknown", "", (300, 340), None, None, None, None)
    assert found[:-1] == debug_database.scheduled_operations(database())


@pytest.mark.parametrize(
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
    found = debug_database.misjudged_channels(layer("Default", transpose_type, "1,20,20,20", part))
    assert found == ({} if counts is None else {64: counts, 96: counts})


def test_only_weights_count() -> None:
    assert not debug_database.misjudged_channels(layer("", "NCHW", "1,20,20,20", "1,4,9,16"))


def test_a_table_of_layers_in_another_form_is_refused() -> None:
    with pytest.raises(BuildError, match="debug database"):
        debug_database.misjudged_channels(database(perf_debug='"id"\n20\n'))


@pytest.mark.parametrize(
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
        debug_database.scheduled_operations(xml)
