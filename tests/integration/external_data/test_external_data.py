"""Programs with data files (`.ptd`), as ExecuTorch itself writes them: on QEMU and on ExecuTorch's own runtime.

Each must compute what the same network does with its data inside of the program.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import pte
from ethosu_sdk.program.feeds import Steps
from ethosu_sdk.records import validation
from ethosu_sdk.run import evidence, uart
from tests import warm
from tests.conftest import KeptFolder
from tests.integration import guide
from tests.integration.cli import Outcome, sdk, sdk_ok
from tests.integration.conftest import FinishedRun
from tests.records import read

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain, pytest.mark.torch]
ON_HOST = ("--simulator", "host")
TWINS = {
    "outside": "inside",
    "split": "inside",
    "quantised_outside": "quantised_inside",
    "u55_weights": "u55_inside",
    "u55_both": "u55_inside",
    "u85_weights": "u85_inside",
    "u85_both": "u85_inside",
}


@pytest.fixture(scope="session")
def programs(kept_folder: KeptFolder) -> Path:
    """A folder with a folder for each program, and input.npz."""
    program = "tests.integration.external_data.lower"
    sources = Path(__file__).parent.glob("*.py")
    return kept_folder(
        "external-data", lambda folder: warm.python("-m", program, folder, timeout_s=600), *sources
    )


def data_of(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.ptd"))
    assert found
    return found


def given(paths: list[Path]) -> list[str]:
    return [word for path in paths for word in ("--data", str(path))]


def run(folder: Path, out: Path, *options: str | Path, data: list[Path] | None = None) -> Outcome:
    """`run` of the program in `folder` with its data files, or with `data`."""
    files = sorted(folder.glob("*.ptd")) if data is None else data
    program, arrays = folder / f"{folder.name}.pte", folder.parent / "input.npz"
    return sdk("run", program, *given(files), "--inputs", arrays, "-o", out, "-q", *options, cwd=out.parent)


@pytest.fixture
def ran(programs: Path, finished_run: FinishedRun, tmp_path: Path) -> Callable[..., Path]:
    """``ran(name, *options)``: a copy of the folder of that program's run; a second one has another place."""

    def copied(name: str, *options: str) -> Path:
        folder = programs / name
        words = [word for path in sorted(folder.glob("*.ptd")) for word in ("--data", path)]
        words += ["--inputs", programs / "input.npz", *options]
        place = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        return Path(shutil.copytree(finished_run(folder / f"{name}.pte", *words), place))

    return copied


def check_refused(done: Outcome, message: str, code: int = 3) -> None:
    assert done.code == code, done.err
    assert message in done.err
    assert "Traceback" not in done.err


def output(folder: Path) -> np.ndarray:
    return npz.read_npz(folder / "outputs.npz")["output0"]


@pytest.mark.parametrize("name", TWINS)
def test_outputs_are_those_of_the_program_with_its_data_inside(
    programs: Path, ran: Callable[..., Path], name: str
) -> None:
    qemu, host, inside = (
        output(folder) for folder in (ran(name), ran(name, *ON_HOST), ran(TWINS[name], *ON_HOST))
    )
    assert qemu.tobytes() == host.tobytes() == inside.tobytes()
    with np.load(programs / "input.npz") as eager:
        assert np.allclose(qemu, eager["output0"], atol=0.1), "this is not the network"


def test_records_name_every_data_file(programs: Path, ran: Callable[..., Path], tmp_path: Path) -> None:
    folder, out = programs / "u55_both", ran("u55_both")
    expected = [
        {"role": "data", "file": row.name, "bytes": row.stat().st_size, "sha256": filesystem.sha256_file(row)}
        for row in data_of(folder)
    ]
    for name in ("build.json", "run.json"):
        rows = read(out / name)["provenance"]["inputs"]
        assert [row for row in rows if row["role"] == "data"] == expected
    pools = {row["name"]: row for row in read(out / "build.json")["memory"]["pools"]}
    assert pools["model_data"]["size_bytes"] >= sum(row["bytes"] for row in expected)
    assert sdk("validate", out, cwd=tmp_path).code == 0
    shown = sdk("inspect", folder / "u55_both.pte", *given(data_of(folder)), "--json", cwd=tmp_path)
    described = json.loads(shown.out)
    assert validation.record_problems(described) == []
    assert [row["name"] for row in described["data_files"]] == [row["file"] for row in expected]


def test_verify_and_profile_take_the_data_files(
    programs: Path, ran: Callable[..., Path], tmp_path: Path
) -> None:
    folder, out = programs / "u55_weights", ran("u55_weights")
    (weights,) = data_of(folder)
    arrays = ("--inputs", programs / "input.npz")
    verified = ("verify", out / "run.json", "--model", folder / "u55_weights.pte", *arrays, "-q")
    sdk_ok(*verified, "--data", weights, cwd=tmp_path)
    check_refused(sdk(*verified, cwd=tmp_path), "'weight_data' with the key")
    sdk_ok(
        *("profile", folder / "u55_weights.pte", "--data", weights, *arrays, "-o", "profiled", "-q"),
        cwd=tmp_path,
    )
    assert read(tmp_path / "profiled" / "profile.json")["operations"]


def test_the_folder_of_a_run_is_read_with_and_without_its_data_files(
    programs: Path, ran: Callable[..., Path], tmp_path: Path
) -> None:
    """The program is in the folder, its data files are in another one."""
    folder, out = programs / "u55_both", ran("u55_both")
    shutil.copy(folder / "u55_both.pte", out)
    files = given(data_of(folder))
    check_refused(sdk("profile", out, cwd=tmp_path), "'cmd_data' with the key")
    sdk_ok("report", out, cwd=tmp_path)
    sdk_ok("profile", out, *files, "-q", cwd=tmp_path)
    assert read(out / "profile.json")["operations"]
    other = sdk("profile", out, *given(data_of(programs / "u55_weights")), cwd=tmp_path)
    check_refused(other, "'cmd_data' with the key")


@pytest.mark.parametrize(("memory", "differs"), [("sram", True), ("ddr", False)])
def test_data_files_lie_in_the_memory_that_was_chosen(
    programs: Path, ran: Callable[..., Path], tmp_path: Path, memory: str, differs: bool
) -> None:
    """The program is for Shared_Sram, which has it in DDR."""
    folder, out = programs / "u55_both", ran("u55_both", "--data-memory", memory)
    pools = {row["name"]: row for row in read(out / "build.json")["memory"]["pools"]}
    assert pools["model_data"]["region"] == memory.upper()
    assert pools["model"]["region"] == "DDR"
    found = read(out / "run.json")
    assert any("--data-memory" in note for note in found.get("notes", ())) == differs
    assert output(out).tobytes() == output(ran("u55_inside", *ON_HOST)).tobytes()
    sdk_ok(
        *("verify", out / "run.json", "--model", folder / "u55_both.pte", *given(data_of(folder))),
        *("--inputs", programs / "input.npz", "-q"),
        cwd=tmp_path,
    )


def test_verify_notices_another_data_file(programs: Path, ran: Callable[..., Path], tmp_path: Path) -> None:
    folder, out = programs / "outside", ran("outside")
    (other,) = changed(programs / "outside", tmp_path)
    done = sdk(
        *("verify", out / "run.json", "--model", folder / "outside.pte", "--data", other),
        *("--inputs", programs / "input.npz"),
        cwd=tmp_path,
    )
    check_refused(done, "is not the one of the record: its SHA-256 differs")


def changed(folder: Path, place: Path) -> list[Path]:
    """Copies of the data files of a program, each with another last byte."""
    found = []
    for path in data_of(folder):
        content = bytearray(path.read_bytes())
        content[-1] ^= 0x40
        found.append(place / path.name)
        found[-1].write_bytes(content)
    return found


def test_a_changed_constant_is_another_program_and_another_firmware(
    programs: Path, ran: Callable[..., Path], tmp_path: Path
) -> None:
    """Nothing but the records can tell: ExecuTorch keeps no digest of a tensor."""
    folder, out = programs / "outside", ran("outside")
    before, first = output(out), read(out / "build.json")
    done = run(folder, out, data=changed(folder, tmp_path))
    assert done.code == 0, done.err
    after, second = output(out), read(out / "build.json")
    assert first["build_key"] != second["build_key"]
    assert (before != after).any()
    assert run(folder, tmp_path / "host", *ON_HOST, data=[tmp_path / data_of(folder)[0].name]).code == 0
    assert output(tmp_path / "host").tobytes() == after.tobytes()


@pytest.mark.parametrize("name", ["u55_both", "u85_weights"])
def test_a_changed_block_is_refused(programs: Path, tmp_path: Path, name: str) -> None:
    for simulator in ("qemu", "host"):
        done = run(
            programs / name,
            tmp_path / "out",
            *("--simulator", simulator),
            data=changed(programs / name, tmp_path),
        )
        check_refused(done, "was changed: its SHA-256")


def test_wrong_files_are_refused(programs: Path, tmp_path: Path) -> None:
    outside, split, both = (programs / name for name in ("outside", "split", "u55_both"))
    cut = tmp_path / "cut.ptd"
    cut.write_bytes(data_of(outside)[0].read_bytes()[:-100])
    for folder, data, message in (
        (outside, [], "is not in the program and not in its data files"),
        (split, data_of(split)[:1], "is not in the program and not in its data files"),
        (both, data_of(both)[:1], "'weight_data' with the key"),
        (both, data_of(programs / "u85_both"), "'cmd_data' with the key"),
        (programs / "inside", data_of(outside), "the program uses nothing of"),
        (outside, [cut], "damaged .ptd file: its segments end at byte"),
        (outside, [tmp_path / "none.ptd"], "there is no file"),
        (outside, [programs / "input.npz"], "not a .ptd file"),
    ):
        for command in ("build", "run"):
            done = sdk(
                command, folder / f"{folder.name}.pte", *given(data), "-o", tmp_path / "out", cwd=tmp_path
            )
            check_refused(done, message)


def test_what_takes_no_data_files_says_so(programs: Path, tmp_path: Path) -> None:
    for options, message in (
        (("--resident",), "--resident takes no program with data files"),
        (("--runtime", "executorch"), "--runtime executorch takes no program with data files"),
    ):
        done = run(programs / "outside", tmp_path / "out", *options)
        check_refused(done, message, 2)
    done = sdk("build", programs / "inside" / "inside.pte", "--data-memory", "ddr", cwd=tmp_path)
    check_refused(done, "--data-memory is for a program with data files", 2)
    for command in ("build", "run"):
        words = (command, programs / "outside" / "outside.pte", *given(data_of(programs / "outside")))
        done = sdk(*words, "--data-memory", "dram", "-o", tmp_path / "out", cwd=tmp_path)
        check_refused(done, "unknown memory 'dram' for --data-memory", 2)
    done = sdk("run", "zoo:digits_cnn", "--data", data_of(programs / "outside")[0], cwd=tmp_path)
    check_refused(done, "--data is for a program that is compiled already", 2)


def test_evidence_of_other_data_files_does_not_pass(programs: Path, ran: Callable[..., Path]) -> None:
    folder, out = programs / "split", ran("split")
    log = uart.parse_uart((out / "uart.log").read_bytes())
    program = pte.read(folder / "split.pte", data_of(folder))
    files = tuple((row.size, row.sha256) for row in program.data_files)

    def check(*data_files: tuple[int, str]) -> None:
        expected = evidence.ExpectedRun(
            model_sha256=program.sha256,
            model_bytes=program.size,
            board="corstone-300",
            steps=Steps(1, ()),
            outputs=1,
            data_files=data_files,
        )
        evidence.check_log(log, [expected])

    check(*files)
    for other in (files[::-1], files[:1], (), (*files, files[0]), ((files[0][0], "0" * 64), files[1])):
        with pytest.raises(uart.ProtocolError, match="data files are not those of the model"):
            check(*other)


def test_the_page_command_by_command(tmp_path: Path) -> None:
    guide.run("external-weights.md", tmp_path, count=6)
    shutil.rmtree(tmp_path / "build")
    (tmp_path / "net.weights.ptd").unlink()
    with pytest.raises(InputError, match="weight_data"):
        pte.read(tmp_path / "net.pte")
