"""Builds: files around CMake and Ninja, which stand-ins replace here, build trees, keys and stamps."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ethosu_sdk.base import cache as sdk_cache, proc, tools
from ethosu_sdk.base.errors import BuildError, ToolError
from ethosu_sdk.firmware_build import cmake, executable, generated_files
from ethosu_sdk.firmware_build.cmake import Toolchain, TreeConfiguration

SOURCES = {"CMakeLists.txt": b"project", "app/main.cpp": b"main"}
FILES = {"model_config.hpp": b"one", "model.pte": b"model", "operators.txt": b"operators/pooling.cpp\n"}


@pytest.fixture
def configuration() -> TreeConfiguration:
    names = ("arm-none-eabi-g++", "cmake", "ninja", "flatc")
    found = tuple(
        tools.ToolStatus(tools.tool_table()[name], "found", "1.0", Path(f"/bin/{name}")) for name in names
    )
    return TreeConfiguration(SOURCES, "corstone-300", Toolchain(found))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    seen: list[list[str]] = []

    def run(argv: Sequence[str], **_: object) -> None:
        seen.append(list(argv))

    monkeypatch.setattr(proc, "run", run)
    return seen


def test_cmake_is_configured_once_and_told_where_everything_is(
    configuration: TreeConfiguration, calls: list[list[str]], tmp_path: Path
) -> None:
    work = tmp_path / "with a space"
    objects = work / "objects"
    elf, linker_map = cmake.build_tree(configuration, FILES, work, tmp_path / "log")
    assert (elf, linker_map) == (objects / "executor_runner.elf", objects / "executor_runner.map")
    configure, compile_ = calls
    assert configure[:7] == [
        *("/bin/cmake", "-S", str(work / "source"), "-B", str(objects), "--preset", "corstone-300")
    ]
    assert "-DETHOSU_BOARD=corstone-300" in configure
    assert f"-DETHOSU_GENERATED_DIR={objects / 'generated'}" in configure
    assert compile_[:3] == ["/bin/cmake", "--build", str(objects)]
    assert {path.name: path.read_bytes() for path in (objects / "generated").iterdir()} == FILES
    assert (work / "source" / "app" / "main.cpp").read_bytes() == b"main"
    cmake.build_tree(configuration, FILES, work, tmp_path / "log")
    assert calls[2] == compile_
    assert len(calls) == 3


def test_a_tree_for_other_tools_is_made_anew(
    configuration: TreeConfiguration, calls: list[list[str]], tmp_path: Path
) -> None:
    older = tuple(replace(row, version="0.9") for row in configuration.toolchain.programs)
    others = (
        replace(configuration, board="other"),
        replace(configuration, toolchain=Toolchain(older)),
    )
    for other in others:
        work = tmp_path / "build"
        cmake.build_tree(configuration, FILES, work, tmp_path / "log")
        (work / "old.obj").touch()
        calls.clear()
        cmake.build_tree(other, FILES, work, tmp_path / "log")
        assert not (work / "old.obj").exists()
        assert "--preset" in calls[0]


def test_changed_sources_are_new_to_ninja_and_removed_ones_are_gone(
    configuration: TreeConfiguration, calls: list[list[str]], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    cmake.build_tree(configuration, FILES, tmp_path, tmp_path / "log")
    inode = (source / "CMakeLists.txt").stat().st_ino
    changed = replace(configuration, sources={"CMakeLists.txt": b"project", "npu/x.cpp": b"x"})
    cmake.build_tree(changed, FILES, tmp_path, tmp_path / "log")
    assert (source / "CMakeLists.txt").stat().st_ino == inode
    assert {path.name for path in source.rglob("*.cpp")} == {"x.cpp"}
    assert len(calls) == 3  # configured once


def test_a_tree_keeps_the_operators_of_all_its_models(
    configuration: TreeConfiguration, calls: list[list[str]], tmp_path: Path
) -> None:
    cmake.build_tree(configuration, FILES, tmp_path, tmp_path / "log")
    noted = tmp_path / "objects" / "generated" / "operators.txt"
    inode = noted.stat().st_ino
    cmake.build_tree(configuration, {**FILES, "operators.txt": b""}, tmp_path, tmp_path / "log")
    assert noted.stat().st_ino == inode  # CMake has nothing to do
    cmake.build_tree(
        configuration, {**FILES, "operators.txt": b"operators/fill.cpp\n"}, tmp_path, tmp_path / "log"
    )
    assert noted.read_text() == "operators/fill.cpp\noperators/pooling.cpp\n"
    assert len(calls) == 4  # configured once


def test_a_tree_that_was_never_finished_is_made_anew(
    configuration: TreeConfiguration, calls: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argv: Sequence[str], **_: object) -> None:
        raise BuildError("cmake failed")

    work = tmp_path / "build"
    with monkeypatch.context() as patch:
        patch.setattr(proc, "run", fail)
        with pytest.raises(BuildError):
            cmake.build_tree(configuration, FILES, work, tmp_path / "log")
    (work / "half.obj").touch()
    cmake.build_tree(configuration, FILES, work, tmp_path / "log")
    assert not (work / "half.obj").exists()
    assert "--preset" in calls[0]


def test_missing_flatbuffers_headers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cmake, "INCLUDE_ROOTS", ("/nowhere",))
    with pytest.raises(ToolError, match="FlatBuffers") as caught:
        cmake.find_toolchain()
    assert "libflatbuffers-dev" in caught.value.hint


# --- A build tree is used again only if it is as it was left.


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "build"
    (folder / "objects" / "app").mkdir(parents=True)
    (folder / "objects" / "app" / "main.obj").write_bytes(b"object")
    (folder / "objects" / ".ninja_log").write_text("then")
    cmake.close_tree(folder)
    sdk_cache.take_notes()
    return folder


def test_a_tree_that_nobody_touched_is_kept_and_open_until_it_is_closed(tree: Path) -> None:
    (tree / "objects" / ".ninja_log").write_text("now")
    cmake.open_tree(tree)
    assert (tree / "objects" / "app" / "main.obj").is_file()
    cmake.open_tree(tree)  # nobody closed it: it may be half done
    assert not tree.exists()
    assert sdk_cache.take_notes() == []


@pytest.mark.parametrize("damage", ["changed", "gone", "new", "link"])
def test_a_tree_that_was_altered_is_made_anew_with_a_note(damage: str, tree: Path) -> None:
    objects = tree / "objects" / "app"
    if damage in ("gone", "link"):
        (objects / "main.obj").unlink()
    if damage == "link":
        (objects / "main.obj").symlink_to("elsewhere.obj")
    if damage in ("changed", "new"):
        (objects / {"changed": "main.obj", "new": "other.obj"}[damage]).write_bytes(b"other")
    cmake.open_tree(tree)
    assert not tree.exists()
    (note,) = sdk_cache.take_notes()
    assert "was changed since the last build" in note
    assert "other.obj" in note if damage == "new" else "main.obj" in note


def test_trees_and_caches_that_cannot_be_used(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "objects.json").write_text("[]")
    cmake.open_tree(tree)
    assert not tree.exists()
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("ETHOSU_SDK_CACHE", str(blocked))
    assert executable.work_directory({"source": "/a"}) is None


# --- Build keys and stamps.


@pytest.fixture
def firmware(tmp_path: Path) -> Path:
    root = tmp_path / "firmware"
    (root / "app").mkdir(parents=True)
    (root / "app" / "main.cpp").write_text("one")
    return root


def test_sources_are_all_files_but_tests(firmware: Path) -> None:
    (firmware / "app" / "tests").mkdir()
    (firmware / "app" / "tests" / "x.cpp").write_text("x")
    (firmware / "README.md").write_text("x")
    assert executable.firmware_sources(firmware).keys() == {"app/main.cpp", *generated_files.shared_sources()}
    assert executable.firmware_sources(firmware)["app/main.cpp"] == b"one"


def test_keys_and_hashes_follow_every_part(firmware: Path) -> None:
    seen = [executable.content_hashes(executable.firmware_sources(firmware))]
    (firmware / "app" / "main.cpp").write_text("two")
    seen.append(executable.content_hashes(executable.firmware_sources(firmware)))
    (firmware / "app" / "main.cpp").rename(firmware / "app" / "other.cpp")
    seen.append(executable.content_hashes(executable.firmware_sources(firmware)))
    assert len({executable.build_key(row) for row in seen}) == 3
    keys = {executable.build_key(parts) for parts in ({"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1})}
    assert len(keys) == 4
    assert executable.build_key({"a": 1, "b": 2}) == executable.build_key({"b": 2, "a": 1})


def test_a_stamp_holds_only_for_its_key_and_its_products(tmp_path: Path) -> None:
    stamp, product = tmp_path / "current.json", tmp_path / "a.elf"
    product.write_bytes(b"elf")
    assert not executable.is_current(stamp, "key", {"a.elf": product})
    executable.remember(stamp, "key", {"a.elf": product})
    assert executable.is_current(stamp, "key", {"a.elf": product})
    assert not executable.is_current(stamp, "other", {"a.elf": product})
    product.write_bytes(b"elf!")
    assert not executable.is_current(stamp, "key", {"a.elf": product})
    product.unlink()
    assert not executable.is_current(stamp, "key", {"a.elf": product})
    stamp = tmp_path / "current.json"
    stamp.write_text("{")
    assert not executable.is_current(stamp, "key", {})


def test_the_work_folder_is_one_for_each_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETHOSU_SDK_CACHE", str(tmp_path / "cache"))
    one = executable.work_directory({"source": "/a"})
    assert one is not None
    assert one == executable.work_directory({"source": "/a"})
    assert one != executable.work_directory({"source": "/b"})
    assert one.parent == tmp_path / "cache" / "firmware"
    monkeypatch.delenv("ETHOSU_SDK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = executable.work_directory({})
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "ethosu-sdk" / "firmware")
