"""What is done to files and folders around CMake and Ninja, which stand-ins replace here."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ethosu_sdk import proc, tools
from ethosu_sdk.errors import BuildError, ToolError
from ethosu_sdk.firmware_build import cmake
from ethosu_sdk.firmware_build.cmake import Configuration, Toolchain

SOURCES = {"CMakeLists.txt": b"project", "app/main.cpp": b"main"}
FILES = {"model_config.hpp": b"one", "model.pte": b"model", "operators.txt": b"operators/pooling.cpp\n"}


@pytest.fixture
def configuration() -> Configuration:
    names = ("arm-none-eabi-g++", "cmake", "ninja", "flatc")
    found = tuple(
        tools.ToolStatus(tools.table()[name], "found", "1.0", Path(f"/bin/{name}")) for name in names
    )
    return Configuration(SOURCES, "corstone-300", Toolchain(found))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    seen: list[list[str]] = []

    def run(argv: Sequence[str], **_: object) -> None:
        seen.append(list(argv))

    monkeypatch.setattr(proc, "run", run)
    return seen


def test_cmake_is_configured_once_and_told_where_everything_is(
    configuration: Configuration, calls: list[list[str]], tmp_path: Path
) -> None:
    work = tmp_path / "with a space"
    objects = work / "objects"
    elf, linker_map = cmake.build(configuration, FILES, work, tmp_path / "log")
    assert (elf, linker_map) == (objects / "executor_runner.elf", objects / "executor_runner.map")
    configure, compile_ = calls
    assert configure[:7] == [
        *("/bin/cmake", "-S", str(work / "source"), "-B", str(objects), "--preset", "corstone-300")
    ]
    assert f"-DETHOSU_GENERATED_DIR={objects / 'generated'}" in configure
    assert compile_[:3] == ["/bin/cmake", "--build", str(objects)]
    assert {path.name: path.read_bytes() for path in (objects / "generated").iterdir()} == FILES
    assert (work / "source" / "app" / "main.cpp").read_bytes() == b"main"
    cmake.build(configuration, FILES, work, tmp_path / "log")
    assert calls[2] == compile_
    assert len(calls) == 3


def test_a_tree_for_other_tools_is_made_anew(
    configuration: Configuration, calls: list[list[str]], tmp_path: Path
) -> None:
    older = tuple(replace(row, version="0.9") for row in configuration.toolchain.programs)
    others = (
        replace(configuration, preset="other"),
        replace(configuration, toolchain=Toolchain(older)),
    )
    for other in others:
        work = tmp_path / "build"
        cmake.build(configuration, FILES, work, tmp_path / "log")
        (work / "old.obj").touch()
        calls.clear()
        cmake.build(other, FILES, work, tmp_path / "log")
        assert not (work / "old.obj").exists()
        assert "--preset" in calls[0]


def test_changed_sources_are_new_to_ninja_and_removed_ones_are_gone(
    configuration: Configuration, calls: list[list[str]], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    cmake.build(configuration, FILES, tmp_path, tmp_path / "log")
    inode = (source / "CMakeLists.txt").stat().st_ino
    changed = replace(configuration, sources={"CMakeLists.txt": b"project", "npu/x.cpp": b"x"})
    cmake.build(changed, FILES, tmp_path, tmp_path / "log")
    assert (source / "CMakeLists.txt").stat().st_ino == inode
    assert {path.name for path in source.rglob("*.cpp")} == {"x.cpp"}
    assert len(calls) == 3  # configured once


def test_a_tree_keeps_the_operators_of_all_its_models(
    configuration: Configuration, calls: list[list[str]], tmp_path: Path
) -> None:
    cmake.build(configuration, FILES, tmp_path, tmp_path / "log")
    noted = tmp_path / "objects" / "generated" / "operators.txt"
    inode = noted.stat().st_ino
    cmake.build(configuration, {**FILES, "operators.txt": b""}, tmp_path, tmp_path / "log")
    assert noted.stat().st_ino == inode  # CMake has nothing to do
    cmake.build(
        configuration, {**FILES, "operators.txt": b"operators/fill.cpp\n"}, tmp_path, tmp_path / "log"
    )
    assert noted.read_text() == "operators/fill.cpp\noperators/pooling.cpp\n"
    assert len(calls) == 4  # configured once


def test_a_tree_that_was_never_finished_is_made_anew(
    configuration: Configuration, calls: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argv: Sequence[str], **_: object) -> None:
        raise BuildError("cmake failed")

    work = tmp_path / "build"
    with monkeypatch.context() as patch:
        patch.setattr(proc, "run", fail)
        with pytest.raises(BuildError):
            cmake.build(configuration, FILES, work, tmp_path / "log")
    (work / "half.obj").touch()
    cmake.build(configuration, FILES, work, tmp_path / "log")
    assert not (work / "half.obj").exists()
    assert "--preset" in calls[0]


def test_missing_flatbuffers_headers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cmake, "INCLUDE_ROOTS", ("/nowhere",))
    with pytest.raises(ToolError, match="FlatBuffers") as caught:
        cmake.find_toolchain()
    assert "libflatbuffers-dev" in caught.value.hint
