"""The counters of a run's steps, as the record has them; places of a state that is saved."""

from pathlib import Path

import pytest

from ethosu_sdk.errors import UsageError
from ethosu_sdk.steps.run.sequences import kept_state
from ethosu_sdk.steps.run.sequences.sequence_record import part
from ethosu_sdk.steps.run.sequences.stepping_facts import StepFacts

EVENTS = {7: "NPU_ACTIVE", 9: "MAC_ACTIVE"}


def test_an_event_that_overflowed_in_a_step_is_left_out() -> None:
    steps = [StepFacts(npu_cycles=50, counters={7: 40, 9: 30}), StepFacts(npu_cycles=60, counters={9: 31})]
    sequence = part(steps, (), None, EVENTS, "modelled")["sequence"]
    assert sequence["events"] == ["MAC_ACTIVE"]
    assert [row["counters"] for row in sequence["steps"]] == [[30], [31]]


def test_a_state_is_saved_to_a_file_in_a_folder_that_exists(tmp_path: Path) -> None:
    kept_state.check_place(tmp_path / "state.npz")
    with pytest.raises(UsageError, match="is a folder"):
        kept_state.check_place(tmp_path)
    with pytest.raises(UsageError, match="there is no folder"):
        kept_state.check_place(tmp_path / "nowhere" / "state.npz")
