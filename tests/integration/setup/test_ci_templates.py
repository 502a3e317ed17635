"""ci/ and .devcontainer/: the YAML parses, the shell in it is clean, and doing what it says works.

Neither a container engine nor GitHub or GitLab takes part. `docker` is a double that checks how the container would
be locked down and runs the command of this environment in its place; what a runner sets, the tests set.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import npz
from ethosu_sdk.records import validation
from tests.integration.setup.ci_runner import (
    ACTION,
    GITLAB,
    IMAGE,
    STEP,
    github,
    gitlab,
    parsed,
    plant,
    untouched,
)
from tests.places import ROOT
from tests.records import read

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
GOLDEN = ROOT / "tests" / "golden" / "pte"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A user's checkout with a model, in a folder whose name has a space, and expectations right and wrong."""
    folder = tmp_path / "work space"
    folder.mkdir()
    (folder / "net.pte").write_bytes((GOLDEN / "softmax.pte").read_bytes())
    inputs = np.linspace(-2, 2, 40, dtype=np.float32).reshape(4, 10)
    powers = np.exp(inputs - inputs.max(axis=1, keepdims=True))
    npz.write_npz(folder / "in.npz", {"input0": inputs})
    npz.write_npz(folder / "the right.npz", {"output0": powers / powers.sum(axis=1, keepdims=True)})
    npz.write_npz(folder / "wrong.npz", {"output0": np.ones((4, 10), np.float32)})
    return folder


def test_the_action_publishes_a_validated_record_and_a_summary(workspace: Path) -> None:
    status, said, outputs = github(
        workspace, "net.pte", "--inputs", "in.npz", "--expect", "the right.npz", "--atol", "1e-6"
    )
    assert (status, outputs["status"]) == (0, "pass"), said
    folder = Path(outputs["folder"])
    assert folder.is_relative_to(workspace.parent / "runner temp")
    assert outputs["record"] == str(folder / "record.json")
    assert validation.record_problems(read(folder / "record.json")) == []
    assert "### ✅ run: net.pte" in said
    assert {"run.json", "build.json", "outputs.npz", "uart.log"} <= {path.name for path in folder.iterdir()}
    assert parsed(ACTION)["runs"]["steps"][1]["with"]["path"] == "${{ steps.run.outputs.folder }}"


def test_the_action_follows_no_link_of_a_pull_request(workspace: Path) -> None:
    outside = plant(workspace)
    status, said, outputs = github(workspace, "net.pte", "--inputs", "in.npz")
    assert (status, outputs["status"], untouched(outside)) == (0, "pass", True), said
    assert not list((workspace / "results").glob("*.npz"))


@pytest.mark.torch
def test_what_a_models_code_leaves_is_no_link_in_the_artifact(workspace: Path) -> None:
    """Its code runs in the container; what is uploaded must not be a link to a file of the runner's."""
    (workspace.parent / "secret").write_text("the runner's")
    (workspace / "evil.py").write_text(
        "import os, pathlib\n"
        f"for folder in pathlib.Path({str(workspace.parent / 'runner temp')!r}).glob('*/results'):\n"
        "    for name in ('secret', 'record.json'):\n"
        f"        os.symlink({str(workspace.parent / 'secret')!r}, folder / name)\n"
        "raise ValueError('enough')\n"
    )
    status, said, outputs = github(workspace, "evil.py")
    assert (status, outputs["status"]) == (3, "error"), said
    folder = Path(outputs["folder"])
    assert [path for path in folder.rglob("*") if path.is_symlink()] == []
    assert read(folder / "record.json")["schema"] == "error/1"
    assert (workspace.parent / "secret").read_text() == "the runner's"


@pytest.mark.parametrize("planted", ["links in the folder", "the folder is a link"])
def test_the_gitlab_job_follows_no_link_of_a_merge_request(planted: str, workspace: Path) -> None:
    outside = plant(workspace)
    if planted == "the folder is a link":
        shutil.rmtree(workspace / "ethosu-sdk-results")
        (workspace / "ethosu-sdk-results").symlink_to(outside)
    done = gitlab(workspace, "net.pte", "--inputs\nin.npz\n")
    assert (done.returncode, untouched(outside)) == (0, True), done.stdout + done.stderr
    assert not (workspace / "ethosu-sdk-results").is_symlink()
    assert validation.record_problems(read(workspace / "ethosu-sdk-results" / "record.json")) == []


@pytest.mark.parametrize(
    ("model", "options", "image", "status", "state", "words"),
    [
        ("net.pte", ("--inputs", "in.npz", "--expect", "wrong.npz"), IMAGE, 7, "fail", "### ❌ run: net.pte"),
        ("missing.pte", (), IMAGE, 3, "error", "### ❌ failed: InputError"),
        ("net.pte", ("--expcet", "x"), IMAGE, 2, "error", "ethosu-sdk left no record"),
        ("net.pte", (), "example.org/other", 1, "error", "ethosu-sdk left no record"),
    ],
)
def test_the_action_fails_as_the_command_does(
    model: str, options: tuple[str, ...], image: str, status: int, state: str, words: str, workspace: Path
) -> None:
    code, said, outputs = github(workspace, model, *options, image=image)
    assert (code, outputs["status"], words in said) == (status, state, True), said


def test_inputs_are_no_commands(workspace: Path) -> None:
    """The action's text has no input in a place where a shell would read it."""
    for step in parsed(ACTION)["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    code, _, _ = github(workspace, "$(touch evil).pte", "; touch evil", "`touch evil`")
    assert code != 0
    assert not list(workspace.parent.rglob("evil"))


def test_other_actions_are_pinned_by_commit() -> None:
    used = re.findall(r"uses: (\S+)", ACTION.read_text(encoding="utf-8"))
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) for name in used)


@pytest.mark.parametrize(
    ("model", "options", "status", "words"),
    [
        ("net.pte", "--inputs\nin.npz\n--expect\nthe right.npz\n--atol\n1e-6\n", 0, "### ✅ run: net.pte"),
        ("missing.pte", "", 3, "### ❌ failed: InputError"),
        ("net.pte", "--expcet", 2, "left no record"),
    ],
)
def test_the_gitlab_job_does_the_same(
    model: str, options: str, status: int, words: str, workspace: Path
) -> None:
    done = gitlab(workspace, model, options)
    job = parsed(GITLAB)[".ethosu-sdk"]
    assert (done.returncode, words in done.stdout + done.stderr) == (status, True), done.stdout + done.stderr
    (folder,) = job["artifacts"]["paths"]
    assert (workspace / folder).is_dir()
    if status != 2:
        assert validation.record_problems(read(workspace / folder / "record.json")) == []
        assert words in (workspace / folder / "summary.md").read_text()


def test_the_shell_is_clean(tmp_path: Path) -> None:
    script = tmp_path / "gitlab.sh"
    script.write_text("\n".join(parsed(GITLAB)[".ethosu-sdk"]["script"]))
    checker = Path(sys.executable).with_name("shellcheck")
    for arguments in ((str(STEP),), ("--shell=sh", str(script))):
        done = subprocess.run([checker, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_devcontainer_names_what_is_there() -> None:
    path = ROOT / ".devcontainer" / "devcontainer.json"
    build = read(path)["build"]
    dockerfile = (path.parent / build["dockerfile"]).resolve()
    assert (path.parent / build["context"]).resolve() == ROOT
    assert re.search(rf"^FROM .* AS {build['target']}$", dockerfile.read_text(encoding="utf-8"), re.MULTILINE)
