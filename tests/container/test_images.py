"""What the images are: their size, their locks, their rights."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.container.conftest import SLOWNESS, STAND_IN_LOCK, Image
from tests.places import ROOT

pytestmark = pytest.mark.container

CHECK_LOCK = (ROOT / "container" / "check-lock").read_text(encoding="utf-8")
BUILD_FOLDER = "/work"
QEMU_SOURCE = "/usr/share/ethosu-sdk/qemu-corstone"


@pytest.mark.parametrize(("target", "limit_bytes"), [("slim", 0.8e9), ("full", 2.0e9)])
def test_the_image_is_no_larger_than_promised(
    target: str, limit_bytes: float, request: pytest.FixtureRequest
) -> None:
    image: Image = request.getfixturevalue(target)
    if target == "full" and STAND_IN_LOCK is not None:
        pytest.skip("another build of torch stands in, and it is larger")
    assert int(image.inspect("{{.Size}}")) <= limit_bytes


def test_the_image_starts_the_command_as_an_ordinary_user(image: Image) -> None:
    assert image.inspect("{{.Config.User}}") == "1000:1000"
    assert json.loads(image.inspect("{{json .Config.Entrypoint}}")) == ["ethosu-sdk"]


def test_every_library_of_executorch_finds_what_it_is_linked_with(full: Image) -> None:
    """`compile` does without one that cannot be loaded, until a program has float inputs."""
    code = (
        "import ctypes, pathlib, sysconfig, torch\n"
        "folder = pathlib.Path(sysconfig.get_path('purelib'), 'executorch')\n"
        "found = sorted(folder.rglob('*_aot_lib.so'))\n"
        "print(*[path.name for path in found if ctypes.CDLL(str(path))])\n"
    )
    outcome = full.script("python3", code)
    assert outcome.code == 0, outcome.err
    assert "libquantized_ops_aot_lib.so" in outcome.out.split()


def test_nothing_of_the_builder_stays(image: Image) -> None:
    outcome = image.script("sh", "ls /opt /etc/pip.conf /tmp /opt/venv/bin/pip; command -v pip g++ gcc git")
    assert outcome.out.split() == ["/opt:", "prebuilt", "venv", "/tmp:"] or outcome.out.split()[:1] == [
        "/opt:"
    ]
    assert not re.search(r"builder|pip|g\+\+|/gcc|git", outcome.out)


@pytest.mark.parametrize(
    ("lock", "arguments"),
    [("requirements", ["python"]), ("toolchain.lock.json", ["debian"])],
    ids=["python", "debian"],
)
def test_what_is_installed_is_what_is_locked(
    image: Image, lock: str, arguments: list[str], work: Path
) -> None:
    target = image.name.rpartition(":")[2]
    name = f"requirements-{target}.lock" if lock == "requirements" else lock
    purpose = ["image"] if lock != "requirements" else []
    path = ROOT / name
    if target == "full" and STAND_IN_LOCK is not None and not purpose:
        path = Path(STAND_IN_LOCK)
    text = path.read_text(encoding="utf-8")

    def check(content: str) -> tuple[int, str]:
        (work / name).write_text(content, encoding="utf-8")
        outcome = image.run(
            *("-", *arguments, f"{BUILD_FOLDER}/{name}", *purpose),
            work=work,
            options=("--entrypoint", "python3"),
            stdin=CHECK_LOCK,
        )
        return outcome.code, outcome.err

    assert check(text) == (0, "")
    # Negative control: another version of one package is noticed.
    changed = (
        text.replace("numpy==", "numpy==9.") if not purpose else text.replace('"3.25.1-1"', '"3.25.1-2"')
    )
    code, said = check(changed)
    assert code == 1
    assert "locked" in said


def test_c_and_cpp_link_for_cortex_m55(image: Image) -> None:
    proof = (ROOT / "container" / "prove-toolchain").read_text(encoding="utf-8")
    outcome = image.script("sh", proof)
    assert (outcome.code, outcome.err) == (0, "")


def test_a_container_is_locked_down(slim: Image) -> None:
    """The tests here are worth something only if the rights are really gone."""
    probe = (
        "touch /x 2>&1; cat /proc/net/dev | tail -n +3 | cut -d: -f1; grep CapEff /proc/self/status; id -u"
    )
    outcome = slim.script("sh", probe)
    assert "Read-only file system" in outcome.out
    assert outcome.out.split()[-4:] == ["lo", "CapEff:", "0000000000000000", "12345"]


def test_the_image_names_the_processor_of_its_programs(image: Image) -> None:
    assert image.inspect("{{.Architecture}}") == image.script("sh", "dpkg --print-architecture").out.strip()


def test_the_qemu_of_our_own_build_is_the_hosts(image: Image, own_qemu: Path) -> None:
    """Built in another place, by the same locked packages: the same bytes."""
    if SLOWNESS > 1:
        pytest.skip("the host's is for another processor")
    digest = image.script("sh", "sha256sum /usr/local/bin/qemu-corstone").out.split()[0]
    assert digest == hashlib.sha256(own_qemu.read_bytes()).hexdigest()


def test_the_qemu_of_our_own_build_comes_with_its_source(image: Image) -> None:
    """Licence, files and the digests of Debian's part, as the repository has them; the note and the bill of materials
    name the very program."""
    listing = f"cd {QEMU_SOURCE} && find . -type f ! -name SOURCE.txt -exec sha256sum {{}} +"
    shown = {name: digest for digest, name in map(str.split, image.script("sh", listing).out.splitlines())}
    files = [path for path in (ROOT / "qemu").rglob("*") if path.is_file()]
    scripts = [ROOT / "scripts" / name for name in ("build-qemu", "build-qemu-plugin")]
    wanted = [*files, *scripts, ROOT / "toolchain.lock.json"]
    assert shown == {
        f"./{path.relative_to(ROOT)}": hashlib.sha256(path.read_bytes()).hexdigest() for path in wanted
    }
    (row,) = json.loads((ROOT / "toolchain.lock.json").read_text(encoding="utf-8"))["source"]
    note = image.script("sh", f"cat {QEMU_SOURCE}/SOURCE.txt").out
    for name, digest in row["files"].items():
        assert f"{digest}  {name}" in note
    digest = image.script("sh", "sha256sum /usr/local/bin/qemu-corstone").out.split()[0]
    assert f"SHA-256 of the program: {digest}" in note
    bill = json.loads(image.script("sh", "cat /usr/share/ethosu-sdk/sbom.cdx.json").out)
    (component,) = [row for row in bill["components"] if row["name"] == "qemu-corstone"]
    assert component["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert component["licenses"] == [{"license": {"id": "GPL-2.0-only"}}]
