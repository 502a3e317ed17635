"""Arm's installer, a double that misbehaves, can neither reach nor leave anything outside; addresses keep secrets.

Each case is the command in a process of its own. Where the system makes no namespaces, `--sandbox require` must fail.
"""

import contextlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from ethosu_sdk import redaction
from ethosu_sdk.proc import sandbox
from tests import processes
from tests.integration.cli import Outcome, assert_clear, sdk
from tests.integration.fvp.archives import BOARD, INSTALLER, VERSION, command, everything, good, running
from tests.records import read

SECRET = "hunter2-hunter2"


def has_sandbox() -> bool:
    words = sandbox.words(Path("/tmp"), ["/bin/true"])
    return subprocess.run(words, env={"PWD": "/tmp"}, capture_output=True, check=False).returncode == 0


def install(path: Path, *words: str, env: dict[str, str] | None = None) -> Outcome:
    done = processes.run(command(path, *words), cwd=path.parent, env=env or {})
    return Outcome(done.returncode, done.stdout, done.stderr)


def installed(path: Path) -> Path:
    return path.parent / "fvp" / BOARD / VERSION


@contextlib.contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A server on the loopback: its port, and a list of what came. It answers 404 to paths with ``missing``."""
    seen: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.requestline.encode())
            self.send_response(404 if "missing" in self.path else 200)
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


PROBE = """
{ for place in %(outside)s "$HOME/../../x" /x /usr/x /etc/x /var/x /run/x; do echo x > "$place"; done; } 2> /dev/null
[ -e %(secret)s ] && cat %(secret)s > seen
env > environment
%(python)s -c 'import urllib.request as r; r.urlopen("http://127.0.0.1:%(port)d/", timeout=2)' 2> refused
setsid sh -c 'sleep 62.25' > /dev/null 2>&1 < /dev/null &
cat /proc/[0-9]*/cmdline > processes
grep -h ^Cap /proc/self/status > capabilities
unshare --user --map-root-user --mount sh -c 'mount -o remount,bind,rw /usr && touch /usr/x' 2> /dev/null
true
"""


def probe(folder: Path, port: int) -> str:
    secret = folder / "secret"
    secret.write_text(SECRET)
    facts = {"outside": folder / "evil", "secret": secret, "port": port}
    return INSTALLER + PROBE % {**facts, "python": shutil.which("python3", path=os.defpath) or sys.executable}


def test_the_installer_reaches_nothing_outside(tmp_path: Path) -> None:
    with listening() as (port, seen):
        path = good(tmp_path / "a.tgz", probe(tmp_path, port))
        done = install(path, "--json", "--sandbox", "require", env={"MY_SECRET": SECRET})
    if not has_sandbox():
        assert_clear(done, 4, "cannot run in a sandbox", "makes no namespaces")
        return
    assert done.code == 0, done.err
    folder = installed(path)
    assert json.loads(done.out)["sandbox"] == {"used": True}
    assert not running("sleep 62.25")
    assert sorted(os.listdir(tmp_path)) == ["a.tgz", "fvp", "secret"]
    assert not any(Path(place, "x").exists() for place in ("/", "/usr", "/etc", "/var", "/run"))
    assert (seen, "Error" in (folder / "refused").read_text()) == ([], True)
    assert not (folder / "seen").exists()
    assert set((folder / "environment").read_text().split()).isdisjoint({f"MY_SECRET={SECRET}"})
    assert SECRET not in (folder / "environment").read_text() + (folder / "processes").read_text()
    assert {line.split()[1] for line in (folder / "capabilities").read_text().splitlines()} == {"0" * 16}


def test_the_probe_finds_what_is_open(tmp_path: Path) -> None:
    """The control: without a sandbox the same installer writes, connects and reads; only its process is ended."""
    with listening() as (port, seen):
        path = good(tmp_path / "a.tgz", probe(tmp_path, port).replace("/x /usr/x /etc/x /var/x /run/x", ""))
        done = install(path, "--json", "--sandbox", "off", env={"MY_SECRET": SECRET})
    assert done.code == 0, done.err
    assert json.loads(done.out)["sandbox"] == {"used": False, "reason": "--sandbox off"}
    assert "without a sandbox: --sandbox off" in done.err
    assert (len(seen), (tmp_path / "evil").exists()) == (1, True)
    assert (installed(path) / "seen").read_text() == SECRET
    assert SECRET not in (installed(path) / "environment").read_text()
    assert not running("sleep 62.25")


@pytest.mark.parametrize(("wanted", "code"), [("auto", 0), ("require", 4)])
def test_where_there_are_no_namespaces_it_says_so(wanted: str, code: int, tmp_path: Path) -> None:
    """As in most containers: a system call that is refused, here by a limit of this test's own namespace."""
    path = good(tmp_path / "a.tgz")
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    words = command(path, "--sandbox", wanted)
    if has_sandbox():
        words = ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh", *words]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == code, done.stderr
    assert "makes no namespaces (unshare: " in done.stderr
    if code:
        assert everything(tmp_path) == ["a.tgz"]
    else:
        record = read(installed(path) / "install.json")
        assert (record["sandbox"]["used"], "unshare" in record["sandbox"]["reason"]) == (False, True)


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
@pytest.mark.parametrize("wanted", ["auto", "off"])
def test_what_the_installer_leaves_is_looked_through(name: str, wanted: str, tmp_path: Path) -> None:
    script, reason = LEFT[name]
    if wanted == "off" and name not in ("link out", "device"):
        return  # the look is the same, and so is what it finds
    path = good(tmp_path / "a.tgz", f"{INSTALLER}{script}\n")
    assert_clear(install(path, "--sandbox", wanted), 3, "a file from Arm's installer is refused", reason)
    assert everything(tmp_path) == ["a.tgz"]


def test_links_that_stay_are_kept(tmp_path: Path) -> None:
    path = good(tmp_path / "a.tgz", f"{INSTALLER}mkdir d; ln -s ../models d/m; ln license_terms/eula.txt h\n")
    assert install(path).code == 0
    assert os.readlink(installed(path) / "d" / "m") == "../models"


def test_an_address_is_no_archive_and_keeps_its_secrets(tmp_path: Path) -> None:
    """Nothing is downloaded: not from a server that would answer, one that would not, and one that is not there."""
    with listening() as (port, seen), socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()[1]
        closed.close()
        for address in (
            f"http://user:{SECRET}@127.0.0.1:{port}/a.tgz",
            f"http://127.0.0.1:{port}/missing.tgz?X-Amz-Signature={SECRET}&X-Amz-Date=1",
            f"http://127.0.0.1:{nobody}/a.tgz?token={SECRET}#access_token={SECRET}",
        ):
            for words in ((BOARD, "--accept-eula", "--archive", address), (BOARD, "--mirror", address)):
                done = sdk("fvp", "install", *words, "--json", cwd=tmp_path)
                assert done.code in (2, 3), done.err
                assert f"127.0.0.1:{urllib.parse.urlsplit(address).port}" in done.err
                assert SECRET not in done.out + done.err
                assert redaction.HIDDEN in done.err
        usage = sdk("fvp", "install", BOARD, address, cwd=tmp_path)
        assert (usage.code, SECRET in usage.err, redaction.HIDDEN in usage.err) == (2, False, True), usage.err
    assert seen == []


def test_a_name_with_a_signature_is_not_recorded(tmp_path: Path) -> None:
    """As `wget` names what it downloads."""
    path = good(tmp_path / f"a.tgz?X-Amz-Signature={SECRET}")
    done = install(path, "--json")
    assert (done.code, SECRET in done.out + done.err) == (0, False), done.err
    assert SECRET not in (installed(path) / "install.json").read_text()
    assert json.loads(done.out)["archive"]["file"] == f"a.tgz?X-Amz-Signature={redaction.HIDDEN}"
