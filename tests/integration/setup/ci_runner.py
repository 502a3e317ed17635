"""What GitHub's and GitLab's runners do with ci/, here: `docker` is a double, what a runner sets is set here."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests import processes
from tests.integration.cli import COMMAND
from tests.places import ROOT

ACTION = ROOT / "ci" / "github" / "action.yml"
STEP = ROOT / "ci" / "github" / "run-model"
GITLAB = ROOT / "ci" / "gitlab" / "ethosu-sdk.gitlab-ci.yml"
IMAGE = "example.org/ethosu-sdk@sha256:0123"
DOCKER = f"""# A double of `docker run`: the image is this environment, and its folders are those of the host.
import os, sys
words = sys.argv[1:]
place = words.index({IMAGE!r}) if {IMAGE!r} in words else sys.exit("docker: no such image") or 0
options = " ".join(words[:place])
for wanted in ("run --rm", "--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges"):
    if wanted not in options:
        sys.exit(f"docker double: {{wanted}} is missing")
if f"--user {{os.getuid()}}:{{os.getgid()}}" not in options:
    sys.exit("docker double: files would belong to another user")
volumes = [words[number + 1].rsplit(":", 2) for number, word in enumerate(words[:place]) if word == "--volume"]
(work, inside, mode), (results, results_inside, results_mode) = volumes
assert inside == words[words.index("--workdir") + 1] == "/work"
if mode != "ro" or results.startswith(work) or results_mode != ("rw" if words[place + 1] == "run" else "ro"):
    sys.exit(f"docker double: {{mode}}, {{results}}, {{results_mode}} let the workspace be written")
os.chdir(work)
given = [results + word[len("/results"):] if word.startswith("/results") else word for word in words[place + 1:]]
os.execv({str(COMMAND)!r}, ["ethosu-sdk", *given])
"""


def parsed(path: Path) -> dict[str, Any]:
    value = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


def github(workspace: Path, model: str, *options: str, image: str = IMAGE) -> tuple[int, str, dict[str, str]]:
    """Run the action's step as a runner does: exit status, job summary, outputs."""
    tools = workspace.parent / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "docker.py").write_text(DOCKER)
    # Not the interpreter itself in the first line: its path may hold a space.
    (tools / "docker").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tools}/docker.py" "$@"\n')
    (tools / "docker").chmod(0o755)
    step = parsed(ACTION)["runs"]["steps"][0]
    inputs = {"model": model, "image": image, "options": "\n".join(options)}
    environment = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match.group(1)], text)
        for name, text in step["env"].items()
    }
    files = {name: workspace.parent / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    temporary = workspace.parent / "runner temp"
    temporary.mkdir(exist_ok=True)
    runner = {
        "RUNNER_TEMP": str(temporary),
        "GITHUB_ACTION_PATH": str(ACTION.parent),
        "GITHUB_WORKSPACE": str(workspace),
        **{name: str(path) for name, path in files.items()},
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    argv = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    done = processes.run(argv, env={**runner, **environment})
    texts = {name: path.read_text() if path.is_file() else "" for name, path in files.items()}
    outputs = dict(line.split("=", 1) for line in texts["GITHUB_OUTPUT"].splitlines())
    return done.returncode, texts["GITHUB_STEP_SUMMARY"] + done.stderr, outputs


def gitlab(workspace: Path, model: str, options: str) -> subprocess.CompletedProcess[str]:
    """Run the job's script as a runner does."""
    job = parsed(GITLAB)[".ethosu-sdk"]
    variables = {**job["variables"], "ETHOSU_MODEL": model, "ETHOSU_OPTIONS": options}
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    return processes.run(
        ["sh", "-c", "\n".join(job["script"])], cwd=workspace, env={**variables, "PATH": path}
    )


def plant(workspace: Path) -> Path:
    """Links of a pull request, of every name that was ever written in a workspace, to files outside of it."""
    outside = workspace.parent / "outside"
    outside.mkdir()
    for name in ("ethosu-sdk-results", "results"):
        (workspace / name).mkdir()
        for file in (
            "record.json",
            "summary.md",
            "run.json",
            "build.json",
            "uart.log",
            ".lock",
            "manifest.json",
        ):
            (outside / file).write_text("the user's own")
            (workspace / name / file).symlink_to(outside / file)
    return outside


def untouched(outside: Path) -> bool:
    return {path.read_text() for path in outside.iterdir()} == {"the user's own"}
