"""A named pipe where a tool or the cache has a file: nobody waits for its writer."""

import os
from pathlib import Path

import pytest

from tests.integration.cli import sdk
from tests.records import printed


@pytest.mark.timeout(120)
def test_a_plugin_that_is_a_pipe_is_broken(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "block-counts.so")
    env = {"ETHOSU_SDK_QEMU_PLUGIN": str(tmp_path / "block-counts.so")}
    outcome = sdk("doctor", "--json", cwd=tmp_path, env=env, fresh=True, timeout_s=100)
    rows = printed(outcome, code=outcome.code)["checks"]
    (found,) = [row for row in rows if row["name"] == "block-counts.so"]
    assert (found["status"], "is a named pipe, not a file" in str(found)) == ("broken", True)
