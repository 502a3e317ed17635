"""`export`: what it writes is read by CMake and YAML, and its sizes are those that suffice, not a byte more."""

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.cli import Outcome, assert_clear, sdk
from tests.places import GOLDEN_PTE, ROOT
from tests.records import printed, run_by_executorch

CONV = GOLDEN_PTE / "conv_u65_int8.pte"  # Dedicated_Sram: scratch and fast scratch
SOFTMAX = GOLDEN_PTE / "softmax.pte"
# The expression in firmware/app/pools.cpp that says how large a pool is, by the name of the size.
POOLS = {
    "scratch": "scratch, config::scratch_bytes}",
    "fast_scratch": "fast_scratch, config::fast_scratch_bytes}",
    "method_pool": "{method_pool + pool_at, method.pool_bytes}",
}

Record = dict[str, Any]


def _export(program: Path, folder: Path, *options: str | Path) -> Record:
    record = printed(sdk("export", program, "-o", folder, "--json", *options, cwd=folder.parent))
    assert sdk("validate", folder, cwd=folder.parent).code == 0
    assert isinstance(record, dict)
    return record


def _sizes(record: Record) -> dict[str, tuple[int, str]]:
    return {row["name"]: (row["bytes"], row["known"]) for row in record["sizes"]}


@pytest.mark.toolchain
def test_cmake_reads_the_definitions(tmp_path: Path) -> None:
    record = _export(SOFTMAX, tmp_path / "out")
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(p NONE)\n")
    argv = ["cmake", "-C", f"out/{record['files']['cmake']}", "-B", "build"]
    subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True)
    cache = (tmp_path / "build" / "CMakeCache.txt").read_text(encoding="utf-8")
    assert "EXECUTORCH_SELECT_OPS_LIST:STRING=aten::_softmax.out\n" in cache
    assert "POOL_SIZE" not in cache  # bounds alone are known


def test_definitions_are_the_records(tmp_path: Path) -> None:
    record = _export(CONV, tmp_path / "out")
    sizes = _sizes(record)
    assert [sizes[name][1] for name in ("scratch", "fast_scratch", "planned")] == ["exact"] * 3
    layer = yaml.safe_load((tmp_path / "out" / record["files"]["clayer"]).read_text(encoding="utf-8"))
    assert layer["layer"]["define"] == [
        {"ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE": sizes["scratch"][0]},
        {"ET_ARM_BAREMETAL_FAST_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE": sizes["fast_scratch"][0]},
    ]
    fragment = (tmp_path / "out" / record["files"]["kconfig"]).read_text(encoding="utf-8").splitlines()
    defined = dict(line.split("=", 1) for line in fragment if not line.startswith("#"))
    assert defined == {
        "CONFIG_EXECUTORCH": "y",
        "CONFIG_ETHOS_U": "y",
        "CONFIG_ETHOS_U65_256": "y",
        "CONFIG_EXECUTORCH_TEMP_ALLOCATOR_POOL_SIZE": str(sizes["scratch"][0]),
    }


def test_what_executorch_used_in_a_run_is_defined(tmp_path: Path) -> None:
    run = run_by_executorch()
    program = _export(SOFTMAX, tmp_path / "plain")["model"]
    run["model"]["sha256"] = program["sha256"]
    for row in run["provenance"]["inputs"]:
        if row["role"] == "model":
            row["sha256"] = program["sha256"]
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    record = _export(SOFTMAX, tmp_path / "out", "--run", tmp_path / "run.json")
    used = {row["name"]: row["used_bytes"] for row in run["memory"]["pools"]}
    assert _sizes(record)["executorch_method"] == (used["method_pool"], "measured")
    text = (tmp_path / "out" / record["files"]["cmake"]).read_text(encoding="utf-8")
    assert f'METHOD_ALLOCATOR_POOL_SIZE "{used["method_pool"]}" CACHE' in text
    assert f'SCRATCH_TEMP_ALLOCATOR_POOL_SIZE "{used["temp_pool"]}" CACHE' in text
    other = sdk("export", CONV, "--run", tmp_path / "run.json", "-o", tmp_path / "x", cwd=tmp_path)
    assert (other.code, "a run of another program" in other.err) == (3, True)
    assert not (tmp_path / "x").exists()


def test_names_cannot_become_code(tmp_path: Path) -> None:
    data = SOFTMAX.read_bytes()
    assert data.count(b"aten::_softmax") == 1
    forged = tmp_path / "forged.pte"
    forged.write_bytes(data.replace(b"aten::_softmax", b'aten::")\nexit('))
    assert_clear(sdk("export", forged, "-o", tmp_path / "out", cwd=tmp_path), 3, "not an operator's name")
    assert not (tmp_path / "out").exists()


def _shown(record: Record, folder: Path) -> list[str]:
    """The files for other builds."""
    return [
        (folder / record["files"][name]).read_text(encoding="utf-8")
        for name in ("cmake", "kconfig", "clayer")
    ]


def test_every_operator_has_its_library(tmp_path: Path) -> None:
    record = _export(SOFTMAX, tmp_path / "out")
    (library,) = record["libraries"]
    assert (library["name"], library["links"]) == ("portable_ops_lib", ["portable_kernels"])
    assert library["kernels"] == record["kernels"]
    assert all(
        "# portable_ops_lib, with portable_kernels: aten::_softmax.out" in text
        for text in _shown(record, tmp_path / "out")
    )
    # Negative control: an operator of the user's own is in none of them.
    forged = tmp_path / "forged.pte"
    forged.write_bytes(SOFTMAX.read_bytes().replace(b"aten::_softmax", b"mine::_softmax"))
    own = _export(forged, tmp_path / "own")
    assert own["libraries"] == []
    assert all("# in no library of ExecuTorch" in text for text in _shown(own, tmp_path / "own"))


@pytest.mark.torch
@pytest.mark.toolchain
def test_operators_of_the_cortex_m_backend_name_its_library(tmp_path: Path) -> None:
    """By the list of the backend's operators in ExecuTorch's wheel."""
    options = ("--target", "cortex-m55", "--no-check", "-o", "net", "-q")
    assert sdk("compile", "zoo:deep_autoencoder", *options, cwd=tmp_path).code == 0
    record = _export(tmp_path / "net" / "deep_autoencoder.pte", tmp_path / "out")
    (library,) = record["libraries"]
    assert (library["name"], library["links"]) == ("cortex_m_ops_lib", ["cortex_m_kernels", "cmsis-nn"])
    package = find_spec("executorch.backends.cortex_m")
    assert package is not None
    (folder,) = package.submodule_search_locations or ()
    known = yaml.safe_load((Path(folder) / "ops" / "operators.yaml").read_text(encoding="utf-8"))
    assert set(library["kernels"]) <= {row["func"].partition("(")[0] for row in known}
    assert library["kernels"] == record["kernels"]
    assert all(
        "cortex_m_ops_lib, with cortex_m_kernels, cmsis-nn" in text
        for text in _shown(record, tmp_path / "out")
    )
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(p NONE)\n")
    argv = ["cmake", "-C", f"out/{record['files']['cmake']}", "-B", "build"]
    subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True)
    cache = (tmp_path / "build" / "CMakeCache.txt").read_text(encoding="utf-8")
    assert "EXECUTORCH_BUILD_CORTEX_M:STRING=ON\n" in cache
    assert "EXECUTORCH_BUILD_KERNELS_QUANTIZED" not in cache


# The sizes of the SDK's own firmware, in a copy of its tree with pools of other sizes


def _run(folder: Path, sizes: dict[str, int]) -> Outcome:
    firmware = folder / "firmware"
    text = (ROOT / "firmware" / "app" / "pools.cpp").read_text(encoding="utf-8")
    for name, size in sizes.items():
        expression = POOLS[name]
        assert text.count(expression) == 1
        text = text.replace(expression, f"{expression.partition(', ')[0]}, {size}}}")
    (firmware / "app" / "pools.cpp").write_text(text, encoding="utf-8")
    environment = {"ETHOSU_SDK_FIRMWARE": str(firmware)}
    return sdk("run", CONV, "-o", folder / "run", "-q", cwd=folder, env=environment)


@pytest.mark.qemu
@pytest.mark.toolchain
def test_pools_of_exactly_these_sizes_suffice_and_a_byte_less_does_not(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "firmware", tmp_path / "firmware")
    first = _run(tmp_path, {})
    assert first.code == 0, first.err
    found = _sizes(_export(CONV, tmp_path / "out", "--run", tmp_path / "run"))
    sizes = {name: found[name][0] for name in POOLS}
    assert found["method_pool"][1] == "measured"
    assert min(sizes.values()) > 0
    exact = _run(tmp_path, sizes)
    assert exact.code == 0, exact.err
    del sizes["fast_scratch"]  # a payload does not say it: no firmware can check
    for name, size in sizes.items():
        short = _run(tmp_path, {name: size - 1})
        assert short.code == 6, f"{name} of {size - 1} bytes: {short.err}"
