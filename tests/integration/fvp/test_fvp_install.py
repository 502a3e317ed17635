"""`fvp install`: consent, digests, hostile archives, Arm's installer (a double), and nothing left when it fails.

Arm's archives cannot be here. Those of these tests hold a double of the installer: a script that demands the
arguments of Arm's and makes programs of the FVPs' names, which are doubles, too.
"""

import contextlib
import gzip
import hashlib
import http.server
import os
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ethosu_sdk.base import resources
from ethosu_sdk.base.errors import InputError, ToolError, UsageError
from ethosu_sdk.base.resources import FvpArchive
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.installation import install_fvp as fvp_install, unpacking as fvp_install_archive
from ethosu_sdk.simulate import fvp_models, fvp_simulator
from tests import processes
from tests.integration.cli import assert_clear, sdk
from tests.integration.fvp.archives import (
    BOARD,
    INSTALLER,
    VERSION,
    Member,
    archive,
    command,
    everything,
    good,
    member,
    options,
    running,
)
from tests.records import read, valid


def install(path: Path, prefix: Path, **changes: object) -> None:
    fvp_install.install_fvp(options(path, prefix, **changes), Reporter(quiet=True))


def installed(path: Path) -> Path:
    """Where the archive at `path` is installed, with the folder "fvp" beside it as the prefix."""
    return path.parent / "fvp" / BOARD / VERSION


def test_an_installation_is_found_and_its_record_says_who_accepted_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = good(tmp_path / "a.tgz")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("LOGNAME", "mustermann")
    fvp_install.install_fvp(options(path, None), Reporter(quiet=True))
    folder = tmp_path / "data" / "ethosu-sdk" / "fvp" / BOARD / VERSION
    record = valid(folder / "install.json")
    assert record["eula"]["accepted_by"] == "mustermann"
    assert record["archive"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    texts = {row["file"]: row["sha256"] for row in record["eula"]["texts"]}
    assert texts["eula/license.txt"] == hashlib.sha256(b"terms").hexdigest()
    assert "license_terms/eula.txt" in texts
    assert [entry.name for entry in folder.parent.iterdir()] == [VERSION]  # no temporary folder beside it
    found = fvp_simulator.installed_fvp(fvp_models.models_by_program()["FVP_Corstone_SSE-300_Ethos-U65"])
    assert (found.version, folder in found.program.parents) == ("11.27.42", True)


def test_the_same_archive_again_changes_nothing_and_another_is_refused(tmp_path: Path) -> None:
    prefix = tmp_path / "fvp"
    path = good(tmp_path / "a.tgz")
    install(path, prefix)
    record = prefix / BOARD / VERSION / "install.json"
    before = (everything(prefix), record.read_bytes())
    install(path, prefix)
    assert (everything(prefix), record.read_bytes()) == before
    other = good(tmp_path / "b.tgz", INSTALLER + "# another\n")
    with pytest.raises(UsageError, match="already exists and differs"):
        install(other, prefix)
    (prefix / BOARD / VERSION / "models" / "Linux64_GCC-9.3" / "FVP_Corstone_SSE-300_Ethos-U55").write_text(
        "changed"
    )
    with pytest.raises(UsageError, match="already exists and differs"):
        install(path, prefix)


def test_without_consent_nothing_is_unpacked(tmp_path: Path) -> None:
    path = good(tmp_path / "a.tgz")
    with pytest.raises(UsageError, match="End User Licence Agreement") as raised:
        install(path, tmp_path / "fvp", accept_eula=False)
    assert f"fvp install {BOARD} --accept-eula --archive {path}" in raised.value.hint
    assert everything(tmp_path) == ["a.tgz"]


def test_a_mirror_is_searched_for_the_archives_of_this_machine(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    path = good(mirror / "FVP.tgz")
    chosen = options(path, tmp_path / "fvp", archive=None, mirror=mirror)
    fvp_install.install_fvp(chosen, Reporter(quiet=True))
    assert (tmp_path / "fvp" / BOARD / VERSION / "install.json").is_file()
    path.unlink()
    with pytest.raises(InputError, match=r"has none of FVP\.tgz") as raised:
        fvp_install.install_fvp(chosen, Reporter(quiet=True))
    assert "https://developer.arm.com/" in raised.value.hint


def holding(*members: Member) -> Callable[[Path], Path]:
    """Makes an archive with the installer and `members`."""
    return lambda path: archive(path, [member("FVP_Corstone_SSE-300.sh", INSTALLER.encode()), *members])


def symlink(name: str, target: str) -> Member:
    return member(name, kind=tarfile.SYMTYPE, link=target)


def hard_link(name: str, target: str) -> Member:
    return member(name, kind=tarfile.LNKTYPE, link=target)


def set_user_id(made: Member) -> Member:
    made[0].mode = 0o4755
    return made


def truncated(path: Path) -> Path:
    whole = good(path, INSTALLER + "# " + os.urandom(5000).hex()).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


def bomb(path: Path) -> Path:
    """64 MiB of zeros in 64 KiB."""
    info = tarfile.TarInfo("zeros")
    info.size = 64 << 20
    with gzip.open(path, "wb") as stream:
        stream.write(info.tobuf())
        stream.write(b"\0" * info.size + b"\0" * 1024)
    return path


def header_bomb(path: Path) -> Path:
    """An extended header, which tarfile takes into memory in one piece, of 64 MiB."""
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 64 << 20
    with gzip.open(path, "wb") as stream:
        stream.write(info.tobuf(tarfile.USTAR_FORMAT))
        stream.write(b"\0" * info.size)
    return path


def changed_byte(path: Path) -> Path:
    data = bytearray(good(path, INSTALLER + "# " + os.urandom(5000).hex()).read_bytes())
    data[-5] ^= 1  # of gzip's sum over everything
    path.write_bytes(data)
    return path


HOSTILE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "absolute path": (holding(member("/tmp/evil", b"x")), "leads out"),
    "climbing path": (holding(member("../evil", b"x")), "leads out"),
    "climbing path in the middle": (holding(member("a/../../evil", b"x")), "leads out"),
    "link out": (holding(symlink("l", "../../evil")), "link out"),
    "absolute link": (holding(symlink("l", "/etc/passwd")), "link out"),
    "path through a link": (holding(symlink("d", "."), member("d/evil", b"x")), "through a link"),
    "link that climbs through a link": (holding(symlink("d", "."), symlink("e", "d/../evil")), "link out"),
    "hard link out": (holding(hard_link("h", "../evil")), "link out"),
    "hard link to nothing": (holding(hard_link("h", "no")), "link out"),
    "character device": (holding(member("dev", kind=tarfile.CHRTYPE)), "device"),
    "block device": (holding(member("dev", kind=tarfile.BLKTYPE)), "device"),
    "set-user-ID bit": (holding(set_user_id(member("su", b"x"))), "another user"),
    "pipe": (holding(member("fifo", kind=tarfile.FIFOTYPE)), "pipe"),
    "one name twice": (holding(member("a", b"x"), member("./a", b"y")), "twice"),
    "link, then a folder of its name": (
        holding(symlink("d", "."), member("d", kind=tarfile.DIRTYPE)),
        "twice",
    ),
    "too many members": (holding(*(member(f"{i}", b"") for i in range(40))), "members"),
    "bomb": (bomb, "bytes in one"),
    "header bomb": (header_bomb, "unreasonably large header"),
    "truncated": (truncated, "damaged or cut"),
    "changed byte": (changed_byte, "damaged or cut"),
    "not gzip": (lambda path: (path.write_bytes(b"no archive" * 99), path)[1], "damaged or cut"),
    "no installer": (lambda path: archive(path, [member("readme", b"x")]), "no installer"),
}
SMALL = fvp_install_archive.Limits(
    members=20, member_bytes=1 << 20, total_bytes=2 << 20, header_bytes=1 << 18
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    make, reason = HOSTILE[name]
    outside = tmp_path / "evil"
    folder = tmp_path / "in"
    folder.mkdir()
    path = make(folder / "a.tgz")
    with pytest.raises(InputError, match=reason):
        install(path, folder / "prefix" / "deep", limits=SMALL)
    assert everything(folder) == ["a.tgz"]
    assert not outside.exists()
    assert not Path("/tmp/evil").exists()


def test_the_good_archive_is_within_the_small_limits(tmp_path: Path) -> None:
    """The control for the hostile ones: it is not the limits that refuse them all."""
    links = (member("docs/a", b"a"), symlink("docs/l", "../docs/a"), hard_link("h", "docs/a"))
    path = holding(*links)(tmp_path / "a.tgz")
    install(path, tmp_path / "fvp", limits=SMALL)
    assert (tmp_path / "fvp" / BOARD / VERSION / "install.json").is_file()


@pytest.mark.parametrize(
    ("installer", "error", "reason"),
    [
        ("#!/bin/sh\necho 'disk full'; exit 3\n", ToolError, "disk full"),
        ("#!/bin/sh\nexit 0\n", ToolError, "is missing"),
        ("no program\0\n", ToolError, "could not start"),
    ],
)
def test_an_installer_that_fails_leaves_nothing(
    installer: str, error: type[Exception], reason: str, tmp_path: Path
) -> None:
    path = good(tmp_path / "a.tgz", installer)
    with pytest.raises(error, match=reason):
        install(path, tmp_path / "fvp")
    assert everything(tmp_path) == ["a.tgz"]


def test_another_digest_or_machine_is_refused(tmp_path: Path) -> None:
    path = good(tmp_path / "a.tgz")
    (row,) = options(path, tmp_path).archives
    known = hashlib.sha256(path.read_bytes()).hexdigest()
    other = FvpArchive(**{**vars(row), "machine": "mips"})
    for archives, reason in (
        ([FvpArchive(**{**vars(row), "md5": "0" * 32})], "not an archive that the lock lists"),
        ([FvpArchive(**{**vars(row), "sha256": "0" * 64})], "not an archive that the lock lists"),
        ([FvpArchive(**{**vars(row), "md5": "0" * 32}), other], "for mips"),
    ):
        with pytest.raises(InputError, match=reason):
            install(path, tmp_path / "fvp", archives=archives)
    assert everything(tmp_path) == ["a.tgz"]
    install(path, tmp_path / "fvp", archives=[FvpArchive(**{**vars(row), "md5": "", "sha256": known})])
    record = read(tmp_path / "fvp" / BOARD / VERSION / "install.json")
    assert record["archive"]["sha256_locked"] is True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_installation_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    """The command itself, in a process of its own, with a lock that lists the test's archive."""
    asleep = f"sleep 61.{int(number):02}"  # one of each signal's own: both may run at once
    path = good(tmp_path / "a.tgz", f"#!/bin/sh\n{asleep}\n")
    with subprocess.Popen(command(path), cwd=tmp_path, stderr=subprocess.PIPE) as child:
        deadline = time.monotonic() + 120
        while not running(asleep):
            assert time.monotonic() < deadline
            assert child.poll() is None, child.communicate()
            time.sleep(0.02)
        child.send_signal(number)
        _, said = child.communicate(timeout=30)
    assert (child.returncode, b"Traceback" in said) == (130, False), said
    assert everything(tmp_path) == ["a.tgz"]
    deadline = time.monotonic() + 10  # a killed process is there until its new parent has noticed
    while running(asleep):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_command_line_says_what_to_do(tmp_path: Path) -> None:
    path = good(tmp_path / "a.tgz")
    for arguments, code, words in (
        ((BOARD,), 2, ("End User Licence Agreement", "--accept-eula --archive")),
        (("corstone-301", "--accept-eula"), 2, ("corstone-300",)),
        ((BOARD, "--accept-eula"), 2, ("--archive FILE", "https://developer.arm.com/")),
        ((BOARD, "--accept-eula", "--archive", "a.tgz", "--mirror", "."), 2, ("--mirror",)),
        ((BOARD, "--accept-eula", "--archive", "missing.tgz"), 3, ("missing.tgz",)),
        ((BOARD, "--accept-eula", "--archive", path.name), 3, ("not an archive that the lock lists",)),
    ):
        assert_clear(sdk("fvp", "install", *arguments, "--prefix", "fvp", cwd=tmp_path), code, *words)
        assert everything(tmp_path) == ["a.tgz"]


def test_the_lock_lists_archives_for_both_boards() -> None:
    rows = resources.fvp_archives()
    assert {row.name for row in rows} == {"corstone-300", "corstone-320"}
    for row in rows:
        assert row.url.endswith(row.file)
        assert (len(row.md5) in (0, 32), len(row.sha256) in (0, 64), bool(row.md5 or row.sha256)) == (
            True,
        ) * 3
    locked = {(row.name, row.version, row.machine) for row in rows if row.sha256}
    assert {(name, version) for name, version, _ in locked} == {
        ("corstone-300", "11.24_13"),
        ("corstone-320", "11.27_25"),
    }
    assert {machine for _, _, machine in locked} == {"x86_64", "aarch64"}


def test_the_installer_sees_little_and_leaves_nothing_running(tmp_path: Path) -> None:
    path = good(
        tmp_path / "a.tgz",
        f"{INSTALLER}env > environment\nsetsid sh -c 'sleep 62.25' > /dev/null 2>&1 < /dev/null &\n",
    )
    done = processes.run(command(path, "--json"), cwd=tmp_path, env={"MY_SECRET": "hunter2"})
    assert done.returncode == 0, done.stderr
    environment = (installed(path) / "environment").read_text()
    assert {"HOME", "TMPDIR", "PATH"} <= {line.partition("=")[0] for line in environment.splitlines()}
    assert "hunter2" not in environment
    assert not running("sleep 62.25")


LEFT = {
    "link out": ("ln -s ../../../evil l", "is a link out of its folder"),
    "absolute link": ("ln -s /etc/passwd l", "is a link out of its folder"),
    "link out through a link": ("mkdir d; ln -s d e; ln -s e/../../../x l", "is a link out of its folder"),
    "folder of the licences": ("ln -s /tmp eula", "is a link out of its folder"),
    "hard link": ("ln ../archive/license.txt h", "is a hard link to a file outside"),
    "set-user-ID": ("chmod u+s license_terms/eula.txt", "would run as another user"),
    "pipe": ("mkfifo p", "is a pipe"),
    "device": ("mknod n c 1 3 2> /dev/null || mkfifo n", "is a"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_the_installer_leaves_is_looked_through(name: str, tmp_path: Path) -> None:
    script, reason = LEFT[name]
    path = good(tmp_path / "a.tgz", f"{INSTALLER}{script}\n")
    with pytest.raises(InputError, match="a file from Arm's installer is refused") as raised:
        install(path, tmp_path / "fvp")
    assert reason in str(raised.value)
    assert everything(tmp_path) == ["a.tgz"]


def test_links_that_stay_are_kept(tmp_path: Path) -> None:
    path = good(tmp_path / "a.tgz", f"{INSTALLER}mkdir d; ln -s ../models d/m; ln license_terms/eula.txt h\n")
    install(path, tmp_path / "fvp")
    assert os.readlink(installed(path) / "d" / "m") == "../models"


@contextlib.contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A server on the loopback: its port, and a list of what came."""
    seen: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.requestline.encode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port, seen
        finally:
            server.shutdown()
            thread.join()


def test_an_address_is_no_archive(tmp_path: Path) -> None:
    """Nothing is downloaded, not even from a server that would answer."""
    with listening() as (port, seen):
        address = f"http://127.0.0.1:{port}/a.tgz"
        for words in (("--archive", address), ("--mirror", address)):
            done = sdk("fvp", "install", BOARD, "--accept-eula", *words, "--json", cwd=tmp_path)
            assert done.code in (2, 3), done.err
            assert f"127.0.0.1:{port}" in done.err
    assert seen == []
