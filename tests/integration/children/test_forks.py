"""Tasks in forks of a warm process: whatever a task leaves behind or hides, its end is told and the next one is
served."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ethosu_sdk.base import forks
from tests.integration.children.tasks import MANY_BYTES
from tests.places import ROOT

LONG_S = 60.0

Call = Callable[..., forks.Answer]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'sdk'}")
    with forks.server("tests.integration.children.tasks", tmp_path / "log") as serve:
        yield lambda how, memory=None: serve.call({"how": how}, LONG_S, memory)


def test_a_child_that_a_task_leaves_does_not_keep_it_from_ending(call: Call) -> None:
    assert call("leave a child") == forks.Answer(forks.DONE, "leave a child")
    assert call("nothing") == forks.Answer(forks.DONE, "nothing")


def test_a_task_that_ends_its_process_is_one_that_was_killed(call: Call) -> None:
    ended = call("exit")
    assert (ended.end, ended.detail) == (forks.KILLED, "it exited without a result")
    assert call("nothing").end == forks.DONE


def test_memory_of_a_process_without_a_parent_counts(call: Call) -> None:
    assert call("hide memory", MANY_BYTES // 2).end == forks.MEMORY
    assert call("nothing", MANY_BYTES // 2).end == forks.DONE


def test_what_a_task_raises_is_told_and_cut(call: Call) -> None:
    raised = call("raise")
    assert (raised.end, raised.detail[:14], raised.detail[-1]) == (forks.RAISED, "LookupError: x", "…")
    assert len(raised.detail) < 1000
    left = call("leave")
    assert (left.end, left.detail) == (forks.RAISED, "SystemExit: no model today")
    assert call("nothing").end == forks.DONE
