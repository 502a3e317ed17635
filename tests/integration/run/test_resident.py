"""The resident firmware: any program, by upstream's command line or laid into memory by the host.

Expected outputs come from the independent chain, or for programs without a TOSA flatbuffer from ExecuTorch's own
runtime with the NPU model.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.firmware_build import resident_firmware
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import Tensor
from ethosu_sdk.run import input_image, uart
from ethosu_sdk.simulate.qemu.simulator import QemuSimulator
from ethosu_sdk.simulate.simulation import SimulationRequest, SimulationResult
from tests.conftest import ExpectedOutputs, ZooPte
from tests.integration.cli import sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import printed

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
# What upstream's test suite takes for a failure (executorch/backends/arm/test/runner_utils.py).
UPSTREAM_FAILURE = re.compile(r"(^[EF][: ].*$)|(^.*Hard fault.*$)|(^.*Assertion.*$)", re.MULTILINE)

Array = NDArray[Any]


@pytest.fixture(scope="module")
def firmware(shared_folder: Path) -> Executable:
    return resident_firmware.build_resident(filesystem.make_directory(shared_folder / "resident"))


def test_it_may_be_the_first_in_a_build_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the image is built: no model's firmware left its generated files there."""
    monkeypatch.setenv("ETHOSU_SDK_CACHE", str(tmp_path / "cache"))
    assert resident_firmware.build_resident(filesystem.make_directory(tmp_path / "resident")).elf.is_file()


def physical(array: Array, tensor: Tensor) -> bytes:
    return np.ascontiguousarray(array.transpose(tensor.dim_order)).tobytes()


def random_inputs(program: pte.Pte, seed: int) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [
        generator.integers(-100, 100, tensor.sizes).astype(tensor.dtype)
        if tensor.dtype.startswith("int")
        else generator.normal(0, 2, tensor.sizes).astype(tensor.dtype)
        for tensor in program.plan("forward").input_tensors()
    ]


@dataclass(frozen=True)
class Bench:
    """The resident firmware with a folder of the host's."""

    firmware: Executable
    folder: Path

    def command_line(self, program: Path, inputs: list[bytes], *more: str) -> SimulationResult:
        """Run as upstream's tests do: files of fixed names in the folder that semihosting works in."""
        shutil.copyfile(program, self.folder / "program.pte")
        words = ["executor_runner", "-m", "program.pte", "-o", "out"]
        for number, data in enumerate(inputs):
            (self.folder / f"i{number}.bin").write_bytes(data)
            words += ["-i", f"i{number}.bin"]
        return self.run([*words, *more], pte.read(program))

    def run(
        self,
        words: list[str],
        program: pte.Pte,
        images: tuple[tuple[int, bytes], ...] = (),
        *,
        files: bool = True,
    ) -> SimulationResult:
        return QemuSimulator().run(
            SimulationRequest(
                elf=self.firmware.elf,
                images=images,
                target=program.target(),
                timeout_s=60,
                idle_timeout_s=30,
                uart_log=self.folder.parent / "uart.log",
                semihosting_cwd=self.folder if files else None,
                semihosting_arguments=tuple(words),
            )
        )

    def outputs(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.glob("out-*.bin")}


@pytest.fixture
def bench(firmware: Executable, tmp_path: Path) -> Bench:
    return Bench(firmware, filesystem.make_directory(tmp_path / "files of the host"))


def error_of(result: SimulationResult) -> dict[str, Any]:
    log = uart.parse_uart(result.uart)
    assert result.exit_code == 1
    assert not log.problems
    assert log.of_type("end")[0]["status"] == "error"
    assert UPSTREAM_FAILURE.search(result.uart.decode())
    (row,) = log.of_type("error")
    return row


# --- upstream's command line


@pytest.mark.torch
@pytest.mark.parametrize("name", ["add", "softmax", "digits_cnn", "ds_cnn"])
def test_a_command_line_gives_what_the_independent_chain_gives(
    name: str, zoo_pte: ZooPte, expected_outputs: ExpectedOutputs, bench: Bench
) -> None:
    compiled = zoo_pte(name)
    program = pte.read(compiled.pte)
    inputs = random_inputs(program, len(name))
    plan = program.plan("forward")
    raw = [physical(array, tensor) for array, tensor in zip(inputs, plan.input_tensors(), strict=True)]
    result = bench.command_line(compiled.pte, raw)
    assert result.exit_code == 0, result.uart.decode()
    assert not UPSTREAM_FAILURE.search(result.uart.decode())
    expected = expected_outputs(compiled, inputs)
    assert bench.outputs() == {
        f"out-{number}.bin": physical(array, tensor)
        for number, (array, tensor) in enumerate(zip(expected, plan.output_tensors(), strict=True))
    }


@pytest.mark.parametrize("name", ["add_u55", "conv_u65_int8", "add_u85_segment", "softmax"])
def test_one_firmware_serves_every_family_and_memory_mode(name: str, bench: Bench, tmp_path: Path) -> None:
    path = GOLDEN_PTE / f"{name}.pte"
    inputs = random_inputs(pte.read(path), 3)
    result = bench.command_line(path, [array.tobytes() for array in inputs])
    assert result.exit_code == 0, result.uart.decode()
    npz.write_npz(tmp_path / "in.npz", {f"input{i}": array for i, array in enumerate(inputs)})
    sdk_ok(
        "run",
        path,
        "-o",
        tmp_path / "host",
        "--simulator",
        "host",
        "--inputs",
        tmp_path / "in.npz",
        cwd=tmp_path,
    )
    expected = np.load(tmp_path / "host" / "outputs.npz")
    assert bench.outputs() == {
        f"out-{i}.bin": expected[f"output{i}"].tobytes() for i in range(len(expected.files))
    }
    assert any(array.any() for array in expected.values())


def test_python_scalars_that_the_program_does_not_have_are_left_over(bench: Bench) -> None:
    path = GOLDEN_PTE / "add_u55.pte"
    data = np.arange(5, dtype=np.int32).tobytes()
    whole = bench.command_line(path, [data])
    assert whole.exit_code == 0
    expected = bench.outputs()
    for files in ([data, bytes(8)], [np.float64(2.5).tobytes(), b"\1", data]):
        (bench.folder / "out-0.bin").unlink()
        assert bench.command_line(path, files).exit_code == 0
        assert bench.outputs() == expected


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # ExecuTorch's own
def test_values_that_are_no_tensors_keep_what_the_program_gives_them(bench: Bench, tmp_path: Path) -> None:
    """Python scalars among the example inputs and the outputs: the program holds them as Double, Int and Bool."""
    import torch
    from executorch.exir import to_edge

    class Scaled(torch.nn.Module):
        def forward(
            self, x: torch.Tensor, scale: float, offset: int, unused: bool
        ) -> tuple[torch.Tensor, int]:
            return x * scale + offset, 7

    arguments = (torch.ones(2, 3), 2.5, 3, True)
    exported = to_edge(torch.export.export(Scaled(), arguments)).to_executorch()
    path = tmp_path / "scaled.pte"
    path.write_bytes(exported.buffer)
    x = np.arange(6, dtype=np.float32)
    files = [x.tobytes(), np.float64(2.5).tobytes(), np.int64(3).tobytes(), np.bool_(True).tobytes()]
    result = bench.command_line(path, files)
    assert result.exit_code == 0, result.uart.decode()
    assert bench.outputs() == {"out-0.bin": (x * np.float32(2.5) + np.float32(3)).tobytes()}


@pytest.mark.parametrize(
    ("inputs", "more", "code", "words"),
    [
        ([], (), "missing", "none is left for input 0"),
        ([bytes(16)], (), "wrong_size", "16 bytes, input 0 takes 20"),
        ([bytes(20), bytes(20)], (), "too_many", "belongs to no input"),
        ([], ("-i", "absent.bin"), "no_file", "absent.bin"),
        ([bytes(20)], ("-x", "1"), "bad_command_line", "unknown option -x"),
        ([bytes(20)], ("-i",), "bad_command_line", "nothing behind -i"),
    ],
)
def test_a_command_line_that_cannot_be_obeyed_is_named(
    bench: Bench, inputs: list[bytes], more: tuple[str, ...], code: str, words: str
) -> None:
    row = error_of(bench.command_line(GOLDEN_PTE / "add_u55.pte", inputs, *more))
    assert row["code"] == code
    assert words in row["detail"]
    assert bench.outputs() == {}


def test_programs_that_cannot_be_run_are_named(bench: Bench) -> None:
    program = pte.read(GOLDEN_PTE / "add_u55.pte")
    whole = (GOLDEN_PTE / "add_u55.pte").read_bytes()
    broken = {
        "empty": b"",
        "text": b"not a program at all, but long enough to look at",
        "cut": whole[: len(whole) // 2],
        "mode": whole.replace(b"--memory-mode=Shared_Sram", b"--memory-mode=Shared_Srax"),
        "no-mode": whole.replace(b"--memory-mode=Shared_Sram", b"--mem0ry-mode=Shared_Sram"),
        "lists": (
            GOLDEN_PTE / "lists.pte"
        ).read_bytes(),  # no kernel for some of its operators, or only 1 of 2 inputs
    }
    codes = {}
    for name, data in broken.items():
        (bench.folder / name).write_bytes(data)
        codes[name] = error_of(bench.run(["runner", "-m", name], program))["code"]
    assert codes.pop("lists") in ("missing_kernel", "missing")
    assert codes.pop("cut") in ("bad_program", "payload_truncated")
    assert codes == {
        "empty": "bad_program",
        "text": "bad_program",
        "mode": "unknown_memory_mode",
        "no-mode": "no_memory_mode",
    }
    assert error_of(bench.run(["runner", "-m", "absent"], program))["code"] == "no_file"


def test_without_a_program_the_firmware_says_so(bench: Bench) -> None:
    program = pte.read(GOLDEN_PTE / "softmax.pte")
    for words in ([], ["runner"]):
        assert error_of(bench.run(words, program))["code"] == "no_program"


def test_files_of_the_host_are_given_only_on_request(bench: Bench) -> None:
    shutil.copyfile(GOLDEN_PTE / "softmax.pte", bench.folder / "p.pte")
    with pytest.raises(SimulationError, match="asked for a file on the host"):
        bench.run(["runner", "-m", "p.pte"], pte.read(bench.folder / "p.pte"), files=False)


def test_an_output_that_cannot_be_written_is_an_error(bench: Bench) -> None:
    shutil.copyfile(GOLDEN_PTE / "softmax.pte", bench.folder / "p.pte")
    (bench.folder / "in.bin").write_bytes(bytes(160))
    words = ["runner", "-m", "p.pte", "-i", "in.bin", "-o", "absent/out"]
    assert error_of(bench.run(words, pte.read(GOLDEN_PTE / "softmax.pte")))["code"] == "not_written"


# --- laid into memory by the host


@pytest.mark.parametrize("damage", ["crc", "version", "size", "mode"])
def test_a_wrong_program_header_is_refused(bench: Bench, damage: str) -> None:
    symbols = bench.firmware.symbols
    size, mode = 0x7FFF_FFFF if damage == "size" else 960, 4 if damage == "mode" else 0
    header = bytearray(input_image.encode_program_header(size, mode))
    if damage == "crc":
        header[8] ^= 1
    elif damage == "version":
        header[4] = 9
    images = ((symbols["program_header"].address, bytes(header)),)
    row = error_of(bench.run([], pte.read(GOLDEN_PTE / "softmax.pte"), images, files=False))
    assert row["code"] == ("too_large" if damage == "size" else "bad_header")


@pytest.mark.torch
@pytest.mark.parametrize("name", ["digits_cnn", "ds_cnn"])
def test_run_resident_equals_the_independent_chain(
    name: str, zoo_pte: ZooPte, expected_outputs: ExpectedOutputs, tmp_path: Path
) -> None:
    compiled = zoo_pte(name)
    program = pte.read(compiled.pte)
    sets = [random_inputs(program, seed) for seed in range(2)]
    expected = [expected_outputs(compiled, inputs) for inputs in sets]
    for file, prefix, rows in (("in.npz", "input", sets), ("want.npz", "output", expected)):
        npz.write_npz(
            tmp_path / file, {f"{prefix}{i}": np.stack(c) for i, c in enumerate(zip(*rows, strict=True))}
        )
    record = printed(
        sdk(
            *("run", compiled.pte, "-o", tmp_path / "out", "--resident", "--repeat", "2", "--json"),
            *("--inputs", tmp_path / "in.npz", "--expect", tmp_path / "want.npz"),
            cwd=tmp_path,
        )
    )
    assert record["inferences"] == 2
    assert record["repeats"]["count"] == 2
    assert not (tmp_path / "out" / "executor_runner.elf").exists()
    (entry,) = (row for row in record["provenance"]["inputs"] if row["role"] == "firmware")
    assert entry["file"] == "resident_runner.elf"
