"""`export --app`: the application runs on ExecuTorch's runtime, in pools of exactly its sizes; Zephyr's tools, CMake
and the compilers take its files. stubs/ stands for what no package has: Zephyr, its modules and CMSIS packs."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import kconfiglib
import numpy as np
import pytest
import yaml
from devicetree import edtlib
from msgspec.structs import replace

from ethosu_sdk.analysis import application
from ethosu_sdk.analysis.application import HostRun, ProgramToExport, Sizes
from ethosu_sdk.base import cache as sdk_cache
from ethosu_sdk.program import pte
from ethosu_sdk.run import input_values, uart
from ethosu_sdk.simulate import host_runtime
from tests.integration.cli import assert_clear, sdk
from tests.places import GOLDEN_PTE
from tests.records import printed

STUBS = Path(__file__).parent / "stubs"
SOFTMAX = GOLDEN_PTE / "softmax.pte"  # a kernel of ExecuTorch alone
CONV = GOLDEN_PTE / "conv_u65_int8.pte"  # Dedicated_Sram
SEGMENT = GOLDEN_PTE / "add_u85_segment.pte"  # on Corstone-320
COUNTER = GOLDEN_PTE / "counter.pte"  # with state
PROGRAMS = (SOFTMAX, CONV, SEGMENT, COUNTER)

pytestmark = [pytest.mark.torch, pytest.mark.toolchain]


def _given(path: Path) -> ProgramToExport:
    program = pte.read(path)
    return ProgramToExport(path, program, program.plan(), program.target(), [], [])


@cache
def _host(path: Path) -> HostRun:
    given = _given(path)
    return HostRun(given, *application.encoded_inputs(given))


@cache
def _sizes(path: Path) -> Sizes:
    return _host(path).measured(1 << 20)


def _exported(path: Path, system: str, folder: Path) -> Path:
    record = printed(sdk("export", path, "--app", system, "-o", folder, "--json", cwd=folder.parent))
    assert sdk("validate", folder, cwd=folder.parent).code == 0
    found = record["application"]
    sizes = (found["planned_bytes"], found["method_pool_bytes"], found["temp_pool_bytes"])
    assert sizes == tuple(vars_of(_sizes(path)))
    return folder / str(found["folder"])


def vars_of(sizes: Sizes) -> Iterator[int]:
    yield from (sizes.planned, sizes.method_pool, sizes.temp_pool)


# On ExecuTorch's runtime


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_application_computes_what_executorch_computes(path: Path) -> None:
    given = _given(path)
    found, _ = _host(path).run(_sizes(path))
    samples = input_values.load_samples(None, path, given.plan)
    runner = host_runtime.build_runner(sdk_cache.directory(host_runtime.CACHE_PART))
    expected = host_runtime.run_pte(runner, path, samples.inferences[0], host_runtime.NpuModel())
    for array, output, tensor in zip(expected, found.outputs[0], given.plan.output_tensors(), strict=True):
        np.testing.assert_array_equal(input_values.logical_array(output, tensor), array)
    assert [row.name for row in found.operators] == [
        *(name or "MoveCall" for _, name in application.instructions_of(given.plan))
    ]
    assert found.jobs == sum(kind == "delegate" for kind, _ in application.instructions_of(given.plan))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_byte_less_in_any_pool_does_not_suffice(path: Path) -> None:
    sizes = _sizes(path)
    for name in ("planned", "method_pool", "temp_pool"):
        short = replace(sizes, **{name: getattr(sizes, name) - 1})
        with pytest.raises(uart.ProtocolError, match=r"stopped in (load|execute): 0x00000021"):
            _host(path).run(short)


@pytest.mark.qemu
def test_a_cortex_m55_takes_no_more_than_this_machine(tmp_path: Path) -> None:
    """By Arm's own build of ExecuTorch for it, whose method pool also has the planned tensors and the inputs."""
    path = GOLDEN_PTE / "add_u55.pte"
    run = printed(sdk("run", path, "--runtime", "executorch", "-o", "run", "--json", cwd=tmp_path))
    used = {row["name"]: row["used_bytes"] for row in run["memory"]["pools"]}
    sizes, inputs = _sizes(path), sum(tensor.nbytes for tensor in _given(path).plan.input_tensors())
    assert used["temp_pool"] == sizes.temp_pool
    assert used["method_pool"] <= sizes.planned + sizes.method_pool + inputs


def test_the_reader_of_logs_accepts_the_records_and_refuses_changed_ones(tmp_path: Path) -> None:
    _, log = _host(CONV).run(_sizes(CONV))
    (tmp_path / "uart.log").write_bytes(log)
    record = printed(sdk("parse-log", "uart.log", "--json", cwd=tmp_path))
    assert (record["status"], record["complete"]) == ("pass", True)
    assert record["model"]["sha256"] == pte.read(CONV).sha256
    assert {row["name"]: row["used_bytes"] for row in record["memory"]["pools"]} | {"input_image": 0} == {
        "planned": _sizes(CONV).planned,
        "method_pool": _sizes(CONV).method_pool,
        "temp_pool": _sizes(CONV).temp_pool,
        "input_image": 0,
    }
    (tmp_path / "changed.log").write_bytes(log.replace(b'"delegate_calls":1', b'"delegate_calls":2'))
    assert sdk("parse-log", "changed.log", cwd=tmp_path).code == 7


def test_programs_that_it_cannot_run_are_refused(tmp_path: Path) -> None:
    branches = sdk("export", GOLDEN_PTE / "choice.pte", "--app", "zephyr", "-o", "out", cwd=tmp_path)
    assert_clear(branches, 3, "branches")
    assert not (tmp_path / "out").exists()


def test_a_file_name_cannot_become_code(tmp_path: Path) -> None:
    name = 'a " int x; $(id) %.pte'
    shutil.copy(SOFTMAX, tmp_path / name)
    for system in ("zephyr", "cmsis"):
        assert sdk("export", name, "--app", system, "-o", "out", "-q", cwd=tmp_path).code == 0
    texts = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.parent.name != "out"]
    assert len(texts) > 40
    assert not [path for path in texts if b"int x;" in path.read_bytes() and path.suffix != ".bin"]


# Zephyr: device tree, configuration, CMake


@pytest.fixture(scope="module")
def zephyr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _exported(CONV, "zephyr", tmp_path_factory.mktemp("zephyr") / "out")


def _tree(folder: Path, overlay: str) -> edtlib.EDT:
    """The device tree of the stub board with `overlay`, compiled by dtc and checked against the stub bindings."""
    source = folder / "whole.dts"
    source.write_text(
        (STUBS / "zephyr" / "board.dts").read_text(encoding="utf-8") + overlay, encoding="utf-8"
    )
    argv = ["dtc", "-I", "dts", "-O", "dtb", "-o", str(folder / "whole.dtb"), str(source)]
    subprocess.run(argv, check=True, capture_output=True)
    return edtlib.EDT(str(source), [str(STUBS / "zephyr" / "bindings")])


def test_the_overlay_is_a_device_tree(zephyr: Path, tmp_path: Path) -> None:
    overlay = (zephyr / "boards" / "mps3_corstone300_fvp.overlay").read_text(encoding="utf-8")
    tree = _tree(tmp_path, overlay)
    npu, bulk = tree.label2node["ethosu0"], tree.label2node["ethosu_bulk"]
    assert (npu.regs[0].addr, npu.interrupts[0].data["irq"]) == (0x4810_2000, 56)
    assert npu.props["secure-enable"].val is True
    assert (bulk.regs[0].addr, bulk.regs[0].size) == (0x7000_0000, 0x1000_0000)
    assert bulk.props["zephyr,memory-region"].val == "ETHOSU_BULK"
    chosen = tree.chosen_node("zephyr,sram")
    assert chosen is not None
    assert chosen.labels == ["isram"]
    for planted, error in (
        (overlay.replace("&isram", "&sram9"), subprocess.CalledProcessError),
        (overlay.replace("interrupts = <56 3>;", ""), edtlib.EDTError),
        (overlay.replace("secure-enable;", "secure-enable = <1>;"), edtlib.EDTError),
        (overlay.replace("privilege-enable", "privileged"), edtlib.EDTError),
    ):
        assert planted != overlay
        with pytest.raises(error):
            _tree(tmp_path, planted)


def test_the_npu_of_a_corstone_320_is_the_board_s_own_node(tmp_path: Path) -> None:
    folder = _exported(SEGMENT, "zephyr", tmp_path / "out")
    overlay = (folder / "boards" / "mps4_corstone320_fvp.overlay").read_text(encoding="utf-8")
    # As in Zephyr's mps4_corstone320_fvp.dts.
    own = '/ { ethosu { ethosu0: ethosu@50004000 { compatible = "arm,ethos-u"; }; }; };\n'
    npu = _tree(tmp_path, own + overlay).label2node["ethosu0"]
    assert (npu.regs[0].addr, npu.interrupts[0].data["irq"]) == (0x5000_4000, 16)
    assert "CONFIG_ETHOS_U85_" in (folder / "prj.conf").read_text(encoding="utf-8")


def _refused(folder: Path, settings: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, str]]:
    """The settings of a prj.conf that Kconfig does not keep as they were assigned, which Zephyr refuses."""
    monkeypatch.setenv("srctree", str(folder))
    (folder / "Kconfig.zephyr").write_bytes((STUBS / "zephyr" / "Kconfig.zephyr").read_bytes())
    (folder / "tried.conf").write_text(settings, encoding="utf-8")
    tree = kconfiglib.Kconfig("Kconfig", warn=True, warn_to_stderr=False)
    tree.load_config(str(folder / "tried.conf"))
    assigned = dict(line.removeprefix("CONFIG_").split("=") for line in settings.splitlines() if "=" in line)
    unknown = {name: (value, "undefined") for name, value in assigned.items() if name not in tree.syms}
    found = {
        name: (value, tree.syms[name].str_value) for name, value in assigned.items() if name in tree.syms
    }
    return unknown | {name: row for name, row in found.items() if row[0] != row[1]}


def test_the_configuration_is_one(zephyr: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = (zephyr / "prj.conf").read_text(encoding="utf-8")
    assert _refused(zephyr, settings, monkeypatch) == {}
    sizes = _sizes(CONV)
    for name, size in (
        ("EXECUTORCH_METHOD_ALLOCATOR_POOL_SIZE", sizes.method_pool),
        ("EXECUTORCH_TEMP_ALLOCATOR_POOL_SIZE", sizes.temp_pool),
        ("ETHOSU_SDK_PLANNED_POOL_SIZE", sizes.planned),
    ):
        short = settings.replace(f"CONFIG_{name}={size}", f"CONFIG_{name}={size - 1}")
        assert _refused(zephyr, short, monkeypatch) == {name: (str(size - 1), str(size))}
    planted = settings + "CONFIG_ETHOS_U99_1=y\n"
    assert _refused(zephyr, planted, monkeypatch) == {"ETHOS_U99_1": ("y", "undefined")}
    assert "ETHOS_U65_256" in _refused(zephyr, settings.replace("CONFIG_ETHOS_U=y\n", ""), monkeypatch)


def _headers() -> Path:
    package = find_spec("executorch.runtime")
    assert package is not None
    (folder,) = package.submodule_search_locations or ()
    return Path(folder).parent / "include"


def _cmake(folder: Path, build: Path) -> subprocess.CompletedProcess[str]:
    """Configure and compile the application in `folder` in the stub of a Zephyr workspace."""
    argv = ["cmake", "-S", str(folder), "-B", str(build), f"-DZephyr_DIR={STUBS / 'zephyr' / 'cmake'}"]
    argv += [f"-DKCONFIG_FILE={folder / 'prj.conf'}", f"-DEXECUTORCH_HEADERS={_headers()}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        return done
    return subprocess.run(
        ["cmake", "--build", str(build), "-j2"], capture_output=True, text=True, check=False
    )


def test_zephyr_s_application_compiles_for_a_cortex_m55(zephyr: Path, tmp_path: Path) -> None:
    done = _cmake(zephyr, tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr
    names = subprocess.run(
        ["arm-none-eabi-nm", "-A", str(tmp_path / "build" / "libapp.a")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in (
        "main",
        "ethosu_inference_begin",
        "ethosu_model_begin",
        "input_image",
        "ethosu_fast_scratch",
    ):
        assert re.search(rf" [A-Z] {name}$", names, re.MULTILINE), name
    settings = (zephyr / "prj.conf").read_text(encoding="utf-8")
    short = tmp_path / "short"
    shutil.copytree(zephyr, short)
    size = _sizes(CONV).temp_pool
    (short / "prj.conf").write_text(
        settings.replace(f"TEMP_ALLOCATOR_POOL_SIZE={size}", f"TEMP_ALLOCATOR_POOL_SIZE={size - 1}")
    )
    done = _cmake(short, tmp_path / "short-build")
    assert "too small for scratch" in done.stdout + done.stderr
    (short / "prj.conf").write_text(settings.replace("CONFIG_ETHOS_U=y\n", ""), encoding="utf-8")
    assert "is CONFIG_ETHOS_U set?" in " ".join(_cmake(short, tmp_path / "no-npu").stderr.split())


def test_zephyr_s_application_registers_the_program_s_kernels_alone(tmp_path: Path) -> None:
    folder = _exported(SOFTMAX, "zephyr", tmp_path / "out")
    done = _cmake(folder, tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "build" / "selected.txt").read_text(encoding="utf-8") == "aten::_softmax.out"
    assert "ETHOS" not in (folder / "prj.conf").read_text(encoding="utf-8").replace("ETHOSU_SDK", "")


# The CMSIS solution


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _files_of(folder: Path) -> list[Path]:
    project = _yaml(folder / "application.cproject.yml")["project"]
    return [folder / row["file"] for group in project["groups"] for row in group["files"]]


def _defines(folder: Path) -> dict[str, str]:
    rows = [
        row
        for name in ("executorch", "board")
        for row in _yaml(folder / f"layers/{name}.clayer.yml")["layer"]["define"]
    ]
    return {name: str(value) for row in rows for name, value in row.items()}


def _compile(folder: Path, defines: Mapping[str, str], *last: str) -> subprocess.CompletedProcess[str]:
    """Compile what `last` names, with the options that the solution and its packs would give."""
    include = _headers()
    words = [
        "arm-none-eabi-g++",
        "-mcpu=cortex-m55",
        "-mfloat-abi=hard",
        "-std=gnu++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fno-exceptions",
        "-fno-threadsafe-statics",
        "-DC10_USING_CUSTOM_GENERATED_MACROS",
    ]
    words += [f"-I{folder}/src", f"-I{folder}"]
    words += [f"-isystem{row}" for row in (STUBS / "cmsis", include)]
    words += [f"-isystem{include}/executorch/runtime/core/portable_type/c10"]
    argv = [*words, *(f"-D{name}={value}" for name, value in defines.items()), *last]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def _sections(elf: Path) -> dict[str, int]:
    """Where each section lies."""
    argv = ["arm-none-eabi-objdump", "-h", str(elf)]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    rows = (row for row in map(str.split, listed.splitlines()) if len(row) == 7 and row[0].isdigit())
    return {row[1]: int(row[3], 16) for row in rows}


@pytest.mark.parametrize("path", [CONV, SEGMENT], ids=lambda path: path.stem)
def test_the_cmsis_solution_compiles_and_places_the_program(path: Path, tmp_path: Path) -> None:
    folder, elf = _exported(path, "cmsis", tmp_path / "out"), tmp_path / "application.elf"
    defines = _defines(folder)
    # What packs have stays undefined.
    linked = ["-nostdlib", "-Wl,--unresolved-symbols=ignore-all", f"-Wl,-T,{folder}/application.ld"]
    linked += ["-Wl,--no-warn-rwx-segments", *map(str, _files_of(folder)), f"{STUBS}/cmsis/startup.cpp"]
    done = _compile(folder, defines, *linked, "-o", str(elf))
    assert done.returncode == 0, done.stderr
    found = _sections(elf)
    assert found[".ethosu_program"] == 0x7000_0000
    assert 0x3100_0000 <= found[".bss"] < 0x3120_0000
    scratch = 0x7000_0000 if path == CONV else 0x3100_0000  # Dedicated_Sram has it in DRAM
    symbols = subprocess.run(["arm-none-eabi-nm", "-C", str(elf)], capture_output=True, text=True, check=True)
    pool = re.search(r"^(\w+) . ethosu_sdk.*::temporary_pool$", symbols.stdout, re.MULTILINE)
    assert pool is not None
    assert 0 <= int(pool[1], 16) - scratch < 0x20_0000
    binary = tmp_path / "program.bin"
    argv = ["arm-none-eabi-objcopy", "-O", "binary", "-j", ".ethosu_program", str(elf), str(binary)]
    subprocess.run(argv, check=True)
    model = path.read_bytes()
    assert binary.read_bytes().startswith(model)
    assert b"EUI1" in binary.read_bytes()[len(model) :]
    program = ("-fsyntax-only", f"{folder}/src/exported/program.cpp")
    assert _compile(folder, defines, *program).returncode == 0
    for name in ("PLANNED", "METHOD", "TEMP"):
        key = f"ETHOSU_SDK_{name}_POOL_SIZE"
        short = _compile(folder, {**defines, key: str(int(defines[key]) - 1)}, *program)
        assert "too small for" in short.stderr


def test_the_solution_s_files_name_each_other(tmp_path: Path) -> None:
    folder = _exported(SOFTMAX, "cmsis", tmp_path / "out")
    solution = _yaml(folder / "application.csolution.yml")["solution"]
    assert [row["project"] for row in solution["projects"]] == ["application.cproject.yml"]
    project = _yaml(folder / "application.cproject.yml")["project"]
    assert all((folder / row["layer"]).is_file() for row in project["layers"])
    assert all(path.is_file() for path in _files_of(folder))
    layer = _yaml(folder / "layers" / "executorch.clayer.yml")["layer"]
    components = [row["component"] for row in layer["components"]]
    assert "Machine Learning:ExecuTorch Operators:Portable softmax" in components
    assert "Machine Learning:ExecuTorch:Backend EthosU" not in components
    version = json.loads((tmp_path / "out" / "softmax.export.json").read_text(encoding="utf-8"))[
        "application"
    ]["executorch"]
    assert {"pack": f"PyTorch::ExecuTorch@{version}"} in solution["packs"]
