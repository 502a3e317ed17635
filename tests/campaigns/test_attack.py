"""A campaign with a fixed seed finds nothing; and what it looks for it would find: planted faults."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from campaigns.attack import oracle, process
from campaigns.attack.campaign import KINDS, Campaign, Tally
from campaigns.attack.case import Case, Context, Probe
from campaigns.attack.kinds import archives, programs
from campaigns.attack.process import Ended, Limits
from ethosu_sdk.base.npz import write_npz

SEED = "2026"
PARTS = (
    ("programs", "tflite", "vela", "data", "streams", "npz"),
    ("logs", "profiles", "comparisons", "archives", "kills", "disks"),
    ("links", "bundles", "ci", "settings", "tokens"),
    ("state", "prices", "bounds", "steps"),
)
SMALL = Limits(seconds=60.0, memory_bytes=300 << 20)


@pytest.mark.qemu
@pytest.mark.toolchain
@pytest.mark.torch
@pytest.mark.parametrize(
    ("kinds", "seconds"),
    [
        pytest.param([name for kinds in PARTS for name in kinds], 0.0, id="a turn of each kind"),
        *(pytest.param(kinds, 15.0, id=" ".join(kinds), marks=pytest.mark.thorough) for kinds in PARTS),
    ],
)
def test_a_short_campaign_finds_nothing(kinds: Sequence[str], seconds: float, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    campaign = Campaign(SEED, tmp_path / "findings", Context(shared=shared))
    found = campaign.run(kinds, seconds)
    texts = [path.read_text() for path in sorted((tmp_path / "findings").rglob("finding.txt"))]
    assert (found, texts) == (0, [])
    assert all(tally.cases for tally in campaign.tallies.values())


def test_every_kind_is_known() -> None:
    # Sweeps take minutes: scripts/attack
    assert set(KINDS) == {"sweep", *(name for kinds in PARTS for name in kinds)}


@pytest.mark.parametrize("kind", [name for name, row in KINDS.items() if row.probe])
def test_the_same_seed_makes_the_same_cases(kind: str, tmp_path: Path) -> None:
    def made(seed: str) -> list[object]:
        campaign = Campaign(seed, tmp_path, Context(shared=tmp_path))
        probe = KINDS[kind].probe
        assert probe is not None
        given = [probe(campaign.context, campaign.choice(kind, "probe", number)) for number in range(20)]
        return [(row.title, row.files) for row in given]

    assert made("1") == made("1") != made("2")


def double(folder: Path, body: str) -> tuple[str, ...]:
    """A command that behaves as `body` says: NOT the SDK's, a planted fault."""
    path = folder / "double"
    path.write_text(f"import os, subprocess, sys, time\n{body}\n")
    return (sys.executable, str(path))


FAULTS = {
    "traceback": ("raise ValueError('x')", "it says 'Traceback"),
    "internal error": (
        "sys.stderr.write('error: internal error: x'); sys.exit(3)",
        "it says 'internal error'",
    ),
    "another exit code": ("sys.stderr.write('no'); sys.exit(1)", "exit code 1"),
    "silence": ("sys.exit(3)", "without a word"),
    "crash": ("os.kill(os.getpid(), 11)", "exit code -11"),
    "memory": ("x = bytearray(400 << 20); time.sleep(30)", "stopped for memory"),
    "memory of a child": (
        "subprocess.run([sys.executable, '-c', 'import time; x = bytearray(400 << 20); time.sleep(30)'])",
        "stopped for memory",
    ),
    "a child": (
        "subprocess.Popen(['sleep', '30'], start_new_session=True); time.sleep(0.3)",
        "survivor: sleep 30",
    ),
    "a child without its environment": (
        "subprocess.Popen(['sleep', '30'], start_new_session=True, env={}); time.sleep(0.5)",
        "survivor: sleep 30",
    ),
    "half a record": ("open('run.json', 'w').write('{\"schema\": ')", "run.json is half-written"),
    "an invalid record": (
        "open('run.json', 'w').write('{\"schema\": \"run-result/1\"}')",
        "run.json is half-written",
    ),
    "half an archive": (
        "open('outputs.npz', 'wb').write(b'PK\\3\\4' + bytes(20))",
        "outputs.npz is half-written",
    ),
    "a temporary file": ("open('.x.0000.part', 'w')", ".x.0000.part was left"),
    "control codes": ("print('\\x1b[2J')", "control codes reach the terminal"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    body, problem = FAULTS[name]
    work = tmp_path / "work"
    work.mkdir()
    ended = process.run(double(tmp_path, body), work, {}, SMALL)
    assert any(problem in text for text in oracle.problems(ended, work)), (
        ended,
        oracle.problems(ended, work),
    )


def test_a_command_that_does_not_end_is_found(tmp_path: Path) -> None:
    ended = process.run(double(tmp_path, "time.sleep(60)"), tmp_path, {}, Limits(seconds=0.5))
    assert "stopped for time" in oracle.problems(ended, tmp_path / "none")[0]


def test_a_good_command_has_no_problem(tmp_path: Path) -> None:
    ended = process.run(double(tmp_path, "print('fine')"), tmp_path, {}, SMALL)
    assert (oracle.problems(ended, tmp_path), ended.code, ended.out) == ([], 0, "fine\n")
    assert 1 << 20 < ended.peak_bytes < SMALL.memory_bytes or ended.seconds < 0.1


def test_a_wrong_result_with_exit_code_0_is_found(tmp_path: Path) -> None:
    """The whole way: a double that says that all is well, in a campaign, and the folder of the finding."""
    body = 'print(\'{"schema": "log-result/1", "status": "pass"}\')'
    campaign = Campaign(SEED, tmp_path / "findings", Context(double(tmp_path, body), tmp_path))
    campaign.tallies["logs"] = Tally()
    for number in range(6):
        campaign._case(KINDS["logs"], number)
    assert campaign.tallies["logs"].findings > 0
    folder = next((tmp_path / "findings").iterdir())
    text = (folder / "finding.txt").read_text()
    assert (folder / "given.log").is_file()
    assert f"scripts/attack --seed {SEED} --only logs" in text
    assert f"{campaign.context.command[-1]} parse-log given.log" in text


@pytest.mark.parametrize(
    ("status", "value", "problem"), [("pass", 2, "not the expected"), ("fail", 1, "no pass"), ("pass", 1, "")]
)
def test_outputs_are_compared_whatever_the_record_says(
    status: str, value: int, problem: str, tmp_path: Path
) -> None:
    write_npz(tmp_path / "wanted.npz", {"output0": np.full(3, 1, np.int8)})
    write_npz(tmp_path / "got.npz", {"output0": np.full(3, value, np.int8)})
    ended = Ended(0, f'{{"status": "{status}"}}', "", 1.0, 0)
    found = programs.false_green(ended, tmp_path / "got.npz", tmp_path / "wanted.npz")
    assert problem in "".join(found)
    assert bool(found) is bool(problem)


def test_what_escapes_from_an_archive_is_found(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    place.mkdir(parents=True)
    assert archives.escaped(place) == []
    os.symlink("/etc/passwd", place / "link")
    os.mkfifo(place / "pipe")
    (place.parent / "evil").touch()
    assert len(archives.escaped(place)) == 3


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (lambda _: {}["x"], "KeyError"),
        (lambda _: [None for _ in iter(int, 1)], "takes more than"),
        (lambda _: None, ""),
    ],
    ids=["another exception", "no end", "fine"],
)
def test_probes_that_go_wrong_are_found(
    call: Callable[[Path], None], wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from campaigns.attack import campaign

    monkeypatch.setattr(campaign, "_PROBE_LIMIT_S", 0.2)
    code, said = campaign._called(Probe("x", {}, call), tmp_path)
    assert (code != 0, wrong in said, bool(said)) == (bool(wrong), True, bool(wrong))


def test_a_case_needs_no_more_than_its_words() -> None:
    assert Case("x").judge(Ended(0, "", "", 0.0, 0), Path()) == []
