"""The zoo on Arm's prebuilt runners beside our firmware, on both of their boards, and the page that tells of it."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.compile import zoo
from tests.integration.cli import COMMAND
from tests.places import ROOT

PAGE = ROOT / "docs" / "reference" / "second-opinion-zoo.md"
_CORE = "cortex-m55"
# Target → the options with which both runtimes run on the board of Arm's runner.
TARGETS = {
    "ethos-u55-128": ("--board", "corstone-300"),
    "ethos-u85-256": ("--board", "corstone-320", "--simulator", "qemu"),
    _CORE: ("--board", "corstone-300"),
}
MODELS = zoo.stateless()
# Those for which Arm's runner has all operators of the Cortex-M backend.
ON_CORTEX_M = ("ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder")
_HEAD = """# Second opinion on the zoo

Every model of the [zoo](zoo.md) runs on Arm's prebuilt runners and in the SDK's firmware, with the same inputs on the
same simulated board: Corstone-300 for Ethos-U55 and Cortex-M55, Corstone-320 for Ethos-U85. Cortex-M55 has the models
for which Arm's runner has all operators. "adapted" counts the calls that it gets in its own form; "equal" means bit
for bit, counters of the NPU included; see [the guide](../guide/second-opinion.md).
`scripts/second-opinion --groups ''` writes this page.

| Model | Target | Outputs | NPU cycles, both |
|---|---|---|--:|
"""

Key = tuple[str, str]  # model and target


def rows(names: Sequence[str]) -> list[Key]:
    """The rows of the page that are of the models `names`."""
    return [(name, target) for name in names for target in TARGETS if target != _CORE or name in ON_CORTEX_M]


@dataclass(frozen=True)
class Outcome:
    """The record of a run on both runtimes, or why there is none."""

    record: dict[str, Any] | None
    refusal: str = ""


def run(name: str, target: str, folder: Path) -> Outcome:
    """A model of the zoo on both runtimes."""
    options = ("--target", target, *TARGETS[target], "--runtime", "both", "--json", "-o", "out")
    done = subprocess.run(
        [COMMAND, "run", f"zoo:{name}", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    record = json.loads(done.stdout) if done.stdout else None
    if record is None or record["schema"] != "run-result/1":
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        return Outcome(None, lines[-1].removeprefix("error: ") if lines else f"exit code {done.returncode}")
    return Outcome(record)


def differs(outcome: Outcome) -> bool:
    """Whether the runtimes disagree, in an output or a counter."""
    return outcome.record is not None and outcome.record["status"] != "pass"


def page(outcomes: Mapping[Key, Outcome]) -> str:
    """The page's text."""
    return _HEAD + "".join(_row(name, target, outcome) for (name, target), outcome in outcomes.items())


def _row(name: str, target: str, outcome: Outcome) -> str:
    record = outcome.record
    if record is None:
        return f"| `{name}` | {target} | not run: {outcome.refusal} | |\n"
    opinion = record["second_opinion"]
    differing = sum(row["differing"] for row in opinion["outputs"])
    told = f"{differing} differ" if differing else "equal"
    changed = opinion["runtime"].get("adapted", {"operators": []})["operators"]
    if calls := sum(row["calls"] for row in changed):
        told += f", {calls} calls adapted"
    npu = record.get("npu")
    if npu is None:
        return f"| `{name}` | {target} | {told} | no NPU |\n"
    theirs = {row["event"]: row["value"] for row in opinion["npu"]["counters"]}
    ours = {row["event"]: row["value"] for row in npu["counters"] if row["event"] in theirs}
    same = ours == theirs and npu["cycles"] == opinion["npu"]["cycles"]
    counted = f"{npu['cycles']['value']:,}" if same else "differ"
    return f"| `{name}` | {target} | {told} | {counted} |\n"
