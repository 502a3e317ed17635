"""Processes without streams, folders that are gone, caches that cannot be written, names that tools take apart."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ethosu_sdk.base import cache, filesystem
from ethosu_sdk.base.errors import BuildError, InputError
from ethosu_sdk.firmware_build import cmake
from ethosu_sdk.firmware_build.executable import work_directory
from tests.integration.cli import COMMAND, assert_clear, sdk
from tests.places import GOLDEN_PTE

PTE = GOLDEN_PTE / "add_u55.pte"


@pytest.mark.qemu
@pytest.mark.toolchain
def test_functions_work_without_standard_streams(tmp_path: Path) -> None:
    """As in a daemon, or where there are windows and no terminal. Random inputs make a warning."""
    script = (
        "import sys, pathlib\n"
        "sys.stdout = sys.stderr = None\n"
        "import ethosu_sdk\n"
        "done = ethosu_sdk.run(sys.argv[1], out=pathlib.Path('out'))\n"
        "pathlib.Path('said').write_text(done.record['status'])\n"
    )
    subprocess.run([sys.executable, "-c", script, str(PTE)], cwd=tmp_path, check=True, timeout=400)
    assert (tmp_path / "said").read_text() == "pass"


def in_a_deleted_folder(tmp_path: Path, *words: object) -> subprocess.CompletedProcess[str]:
    (tmp_path / "gone").mkdir()
    command = shlex.join(map(str, (COMMAND, *words)))
    script = f"cd gone && rmdir ../gone && exec {command}"
    return subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)


def test_a_deleted_working_folder_is_named(tmp_path: Path) -> None:
    done = in_a_deleted_folder(tmp_path, "report", "../x")
    assert (done.returncode, "the working folder no longer exists" in done.stderr) == (3, True), done.stderr
    done = in_a_deleted_folder(tmp_path, "run", PTE)
    assert (done.returncode, "the working folder no longer exists" in done.stderr) == (5, True), done.stderr


@pytest.mark.qemu
@pytest.mark.toolchain
def test_tools_are_not_called_broken_in_a_deleted_folder(tmp_path: Path) -> None:
    done = in_a_deleted_folder(tmp_path, "build", PTE, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("character", list(';$"\\#%|<>,\n'))
def test_cmake_is_not_asked_to_build_where_it_cannot(
    character: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / f"a{character}b"
    with pytest.raises(BuildError, match="its path contains"):
        cmake.build_tree(
            cmake.TreeConfiguration({}, "corstone-300", cmake.Toolchain(())), {}, place, tmp_path / "log"
        )
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(place))
    assert work_directory({"x": 1}) is None  # the build is made in the output folder then
    assert list(tmp_path.iterdir()) == []


def test_other_characters_are_fit() -> None:
    assert cmake.unfit_characters(Path("/tmp/c (a)'b:*?[x]{y}!~^=@+\u00e9&`z")) == ""


def test_a_name_that_no_record_can_hold_is_refused_before_the_build(tmp_path: Path) -> None:
    (tmp_path / "a\\b.pte").write_bytes(PTE.read_bytes())
    assert_clear(sdk("run", "a\\b.pte", cwd=tmp_path), 3, "cannot be recorded")
    assert not (tmp_path / "build").exists()


def test_a_cache_that_cannot_be_written_is_replaced_for_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the cache's place: root, too, can make no folder in it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    with pytest.raises(BuildError, match="cannot create"):
        cache.directory("host-runner")
    own = cache.directory_or_own("host-runner")
    filesystem.write_bytes(own / "x", b"x")
    assert cache.directory_or_own("host-runner") == own
    assert any("are not cached" in note for note in cache.take_notes())


FILES = [
    ("validate", "{}"),
    ("summary", "{}"),
    ("convert", "{}", "--to", "junit", "-o", "made"),
    ("compare", "{}", "{}"),
    ("compare", "a", "b", "--policy", "{}"),
    ("verify", "{}"),
    ("run", "{}"),
    ("build", "{}"),
    ("inspect", "{}"),
    ("export", "{}"),
    ("export", PTE, "--run", "{}"),
    ("run", PTE, "--inputs", "{}"),
    ("run", PTE, "--expect", "{}"),
    ("run", PTE, "--memory-timing", "{}"),
    *2 * (("run", PTE, "--data", "{}"),),
    *2 * (("run", GOLDEN_PTE / "counter.pte", "--simulator", "host", "--state", "{}"),),
    *2 * (("generate", PTE, "--prompt", "w1", "--tokenizer", "{}"),),
    ("compile", "{}"),
    ("compile", "zoo:add", "--inputs", "{}"),
    ("compile", "zoo:add", "--calibration", "{}"),
    ("compile", "zoo:add", "--evaluate", "{}"),
    ("compile", "zoo:add", "--vela-config", "{}"),
    ("debug", "{}"),
    ("parse-log", "{}"),
    ("fvp", "install", "corstone-300", "--accept-eula", "--archive", "{}"),
]


@pytest.mark.parametrize(
    "number",
    range(len(FILES)),
    ids=lambda number: " ".join(getattr(word, "name", word) for word in FILES[number]),
)
def test_no_command_waits_for_a_pipe_or_reads_a_device(number: int, tmp_path: Path) -> None:
    words = FILES[number]
    ending = {
        "run": ".pte",
        "build": ".pte",
        "inspect": ".pte",
        "export": ".pte",
        "debug": ".pte",
        "compile": ".pt2",
    }
    name = f"given{ending.get(words[0], '') if words[1] == '{}' else '.toml' if '--memory-timing' in words else ''}"
    script = f"mkfifo {name}" if number % 2 else f"ln -s /dev/zero {name}"
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True)
    outcome = sdk(*(name if word == "{}" else word for word in words), cwd=tmp_path, timeout_s=120)
    assert outcome.code in (2, 3), outcome.err
    assert_clear(outcome, outcome.code)


def test_manifests_are_no_pipes_either(tmp_path: Path) -> None:
    subprocess.run(["mkfifo", tmp_path / "manifest.json"], check=True)
    from ethosu_sdk.records import bundle

    with pytest.raises(InputError, match="a named pipe"):
        bundle.read_manifest(tmp_path)
