"""ci/ and .devcontainer/: the YAML parses, the shell in it is clean, and doing what it says works.

Neither a container engine nor GitHub or GitLab takes part. `docker` is a double that checks how the container would
be locked down and runs the command of this environment in its place; what a runner sets, the tests set.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ethosu_sdk import npz, schema
from tests.integration.cli import COMMAND
from tests.places import ROOT

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
GOLDEN = ROOT / "tests" / "golden" / "pte"
ACTION = ROOT / "ci" / "github" / "action.yml"
STEP = ROOT / "ci" / "github" / "run-model"
GITLAB = ROOT / "ci" / "gitlab" / "ethosu-sdk.gitlab-ci.yml"
IMAGE = "example.org/ethosu-sdk@sha256:0123"
DOCKER = f"""# A double of `docker run`: the image is this environment.
import os, sys
words = sys.argv[1:]
place = words.index({IMAGE!r}) if {IMAGE!r} in words else sys.exit("docker: no such image") or 0
options = " ".join(words[:place])
for wanted in ("run --rm", "--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges"):
    if wanted not in options:
        sys.exit(f"docker double: {{wanted}} is missing")
if f"--user {{os.getuid()}}:{{os.getgid()}}" not in options:
    sys.exit("docker double: files would belong to another user")
folder, _, inside = words[words.index("--volume") + 1].rpartition(":")
assert inside == words[words.index("--workdir") + 1] == "/work"
os.chdir(folder)
os.execv({str(COMMAND)!r}, ["ethosu-sdk", *words[place + 1:]])
"""


def parsed(path: Path) -> dict[str, Any]:
    value = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


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


def github(workspace: Path, model: str, *options: str, image: str = IMAGE) -> tuple[int, str, dict[str, str]]:
    """Run the action's step as a runner does: exit status, job summary, outputs."""
    tools = workspace.parent / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "docker.py").write_text(DOCKER)
    # Not the interpreter itself in the first line: its path may hold a space.
    (tools / "docker").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tools}/docker.py" "$@"\n')
    (tools / "docker").chmod(0o755)
    step = parsed(ACTION)["runs"]["steps"][0]
    inputs = {"model": model, "image": image, "options": "\n".join(options), "output": "results"}
    environment = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match.group(1)], text)
        for name, text in step["env"].items()
    }
    files = {name: workspace.parent / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    runner = {
        "GITHUB_ACTION_PATH": str(ACTION.parent),
        "GITHUB_WORKSPACE": str(workspace),
        **{name: str(path) for name, path in files.items()},
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    argv = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    done = subprocess.run(
        argv, env={**os.environ, **runner, **environment}, capture_output=True, text=True, check=False
    )
    texts = {name: path.read_text() if path.is_file() else "" for name, path in files.items()}
    outputs = dict(line.split("=", 1) for line in texts["GITHUB_OUTPUT"].splitlines())
    return done.returncode, texts["GITHUB_STEP_SUMMARY"] + done.stderr, outputs


def test_the_action_publishes_a_validated_record_and_a_summary(workspace: Path) -> None:
    status, said, outputs = github(
        workspace, "net.pte", "--inputs", "in.npz", "--expect", "the right.npz", "--atol", "1e-6"
    )
    assert (status, outputs) == (0, {"record": "results/record.json", "status": "pass"}), said
    assert schema.problems(json.loads((workspace / outputs["record"]).read_text())) == []
    assert "### ✅ run: net.pte" in said
    assert {"run.json", "build.json", "outputs.npz", "uart.log"} <= {
        path.name for path in (workspace / "results").iterdir()
    }


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
    job = parsed(GITLAB)[".ethosu-sdk"]
    variables = {**job["variables"], "ETHOSU_MODEL": model, "ETHOSU_OPTIONS": options}
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", "\n".join(job["script"])],
        cwd=workspace,
        env={**os.environ, **variables, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, words in done.stdout + done.stderr) == (status, True), done.stdout + done.stderr
    (folder,) = job["artifacts"]["paths"]
    assert (workspace / folder).is_dir()
    if status != 2:
        assert schema.problems(json.loads((workspace / folder / "record.json").read_text())) == []
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
    build = json.loads(path.read_text(encoding="utf-8"))["build"]
    dockerfile = (path.parent / build["dockerfile"]).resolve()
    assert (path.parent / build["context"]).resolve() == ROOT
    assert re.search(rf"^FROM .* AS {build['target']}$", dockerfile.read_text(encoding="utf-8"), re.MULTILINE)
