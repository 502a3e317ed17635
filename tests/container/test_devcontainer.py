"""The devcontainer, opened and used as an editor does: by the CLI of the Dev Containers specification."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.container.conftest import Image
from tests.places import GOLDEN_PTE, ROOT

pytestmark = pytest.mark.container

PROGRAM_VARIABLE = "ETHOSU_SDK_DEVCONTAINER_CLI"  # scripts/container-test sets it
READY = "Ready: everything that compile, build and run need is here and works."  # of doctor


@dataclass(frozen=True)
class Opened:
    """A project that is open in its devcontainer."""

    program: str
    project: Path
    id: str
    log: str

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run `argv` in the project's folder."""
        command = [self.program, "exec", "--workspace-folder", str(self.project), *argv]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def opened(full: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A copy of the project, whose devcontainer has the image that its Dockerfile has just given."""
    program = os.environ.get(PROGRAM_VARIABLE)
    if program is None:
        pytest.skip("the devcontainer CLI is not installed: scripts/container-test does that")
    project = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "firmware", project / "firmware")
    shutil.copy(GOLDEN_PTE / "softmax.pte", project)
    configuration = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    build = configuration.pop("build")
    assert (build["dockerfile"], build["target"]) == ("../Dockerfile", "full")
    # As in all containers of these tests; an open editor wants a network for its extensions.
    configuration |= {"image": full.name, "runArgs": ["--network", "none"]}
    (project / ".devcontainer").mkdir()
    (project / ".devcontainer" / "devcontainer.json").write_text(json.dumps(configuration), encoding="utf-8")
    command = [program, "up", "--workspace-folder", str(project)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["outcome"] == "success"
    try:
        yield Opened(program, project, answer["containerId"], done.stderr)
    finally:
        subprocess.run(["docker", "rm", "--force", answer["containerId"]], check=True, capture_output=True)


def test_opening_it_shows_that_all_is_there(opened: Opened) -> None:
    assert READY in opened.log


def test_the_projects_own_firmware_is_built_and_run(opened: Opened) -> None:
    runner = opened.project / "firmware" / "app" / "runner.cpp"
    original = runner.read_text(encoding="utf-8")
    outcome = opened.run("ethosu-sdk", "run", "softmax.pte", "-o", "out", "--json")
    assert outcome.returncode == 0, outcome.stderr
    assert json.loads(outcome.stdout)["status"] == "pass"
    assert (opened.project / "out" / "run.json").is_file()
    runner.write_text("#error edited in the project\n" + original, encoding="utf-8")
    broken = opened.run("ethosu-sdk", "run", "softmax.pte", "-o", "out")
    assert broken.returncode == 5
    assert "edited in the project" in broken.stderr


def test_it_compiles_a_model_of_the_project(opened: Opened) -> None:
    text = "import torch\n\nmodel = torch.nn.ReLU()\nexample_inputs = (torch.rand(1, 8),)\n"
    (opened.project / "own.py").write_text(text, encoding="utf-8")
    outcome = opened.run("ethosu-sdk", "compile", "own.py", "-o", "own")
    assert outcome.returncode == 0, outcome.stderr
    assert (opened.project / "own" / "own.pte").is_file()
