"""Whatever a command leaves in a folder of results, the folder's manifest lists it."""

from pathlib import Path

import pytest

from ethosu_sdk.records import bundle
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import read

ADD = GOLDEN_PTE / "add_u55.pte"
# In this order, all for one folder; the writer that the manifest names, and the files that came.
STEPS: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (("run", str(ADD), "-o", "run"), "run", ("run.json", "outputs.npz", "uart.log", "build.json")),
    (("profile", str(ADD), "--split", "-o", "run"), "profile", ("profile.json",)),
    (
        ("debug", str(ADD), "-o", "run", "--dump", "run/layers.npz"),
        "debug",
        ("debug.json", "debug.csv", "layers.npz"),
    ),
    (("debug", str(ADD), "-o", "run"), "debug", ("debug.json", "layers.npz")),
    (("report", "run"), "report", ("report.html",)),
    (("report", "run", "-o", "run/pages/other.html"), "report", ("report.html", "pages/other.html")),
    (("export", str(ADD), "-o", "run", "--run", "run"), "export", ("add_u55.export.json", "add_u55.cmake")),
    (("convert", "run", "--to", "junit", "-o", "run/junit.xml"), "convert", ("junit.xml",)),
    (
        ("convert", "run", "--to", "sarif", "-o", "run/pages/a.sarif"),
        "convert",
        ("junit.xml", "pages/a.sarif"),
    ),
    (("compare", "run", "run", "-o", "run"), "compare", ("compare.json",)),
    (("compare", "run", "run", "-o", "run/compared"), "compare", ("compare.json",)),
    (("run", str(ADD), "-o", "run", "--simulator", "host"), "run", ("run.json", "outputs.npz")),
)

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]
CALL = '[[call]]\nmethod = "forward"\n'


def test_a_run_replaces_a_script_and_a_script_a_run(tmp_path: Path) -> None:
    """And nothing that the user has put beside them."""
    words = ("run", ADD, "--simulator", "host", "-o", "out", "-q")
    (tmp_path / "two.toml").write_text(2 * CALL)
    (tmp_path / "one.toml").write_text(CALL)
    single = {"run.json", "outputs.npz"}
    calls = [{f"calls/{number}-forward/{name}" for name in single} for number in range(2)]
    for more, files in (
        (("--script", "two.toml"), {"script.json"} | calls[0] | calls[1]),
        ((), single),
        (("--script", "two.toml"), {"script.json"} | calls[0] | calls[1]),
        (("--script", "one.toml"), {"script.json"} | calls[0]),
    ):
        sdk_ok(*words, *more, cwd=tmp_path)
        sdk_ok("validate", "out", cwd=tmp_path)
        found = (path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.name[0] != ".")
        assert {str(path.relative_to(tmp_path / "out")) for path in found} == files | {"manifest.json"}
    (tmp_path / "out" / "calls" / "0-forward" / "notes.txt").write_text("the user's own")
    sdk_ok(*words, cwd=tmp_path)
    assert_clear(sdk("validate", "out", cwd=tmp_path), 3, "calls/0-forward/notes.txt is extra")


def test_after_every_command_its_folder_is_as_the_manifest_says(folder: Path, tmp_path: Path) -> None:
    for words, writer, files in STEPS:
        done = sdk(*words, "-q", cwd=tmp_path)
        assert done.code == 0, (words, done.err)
        checked = sdk("validate", folder, cwd=tmp_path)
        assert checked.code == 0, (words, checked.err)
        manifest = read(folder / bundle.MANIFEST_NAME)
        listed = {row["path"]: row["writer"] for row in manifest["files"]}
        if "run/compared" not in words:
            assert manifest["writer"] == writer
            assert set(files) <= set(listed)
    assert listed["layers.npz"] == "debug --dump"


def test_a_file_of_another_command_is_not_written_over(folder: Path, tmp_path: Path) -> None:
    for name, said in (
        ("outputs.npz", "is a file that `run` wrote there"),
        ("manifest.json", "is a manifest"),
    ):
        before = (folder / name).read_bytes()
        assert_clear(sdk("convert", folder, "--to", "junit", "-o", f"run/{name}", cwd=tmp_path), 2, said)
        assert (folder / name).read_bytes() == before
    assert sdk("validate", folder, cwd=tmp_path).code == 0


def test_the_manifest_of_another_program_is_left_alone(folder: Path, tmp_path: Path) -> None:
    """Web pages and browser extensions have a manifest.json, too."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "manifest.json").write_text('{"name": "site", "version": 3}', encoding="utf-8")
    done = sdk("export", ADD, "-o", site, "-q", cwd=tmp_path)
    assert (done.code, "is not the manifest of a folder of results" in done.err) == (3, True), done.err
    sdk_ok("convert", folder, "--to", "junit", "-o", site / "junit.xml", cwd=tmp_path)
    assert sorted(path.name for path in site.iterdir() if not path.name.startswith(".")) == [
        "junit.xml",
        "manifest.json",
    ]
    assert read(site / "manifest.json") == {"name": "site", "version": 3}
