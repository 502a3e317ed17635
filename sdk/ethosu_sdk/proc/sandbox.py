"""Runs a foreign program in namespaces of its own: without network, and with access only to the system's files.

``python -m ethosu_sdk.proc.sandbox FOLDER PROGRAM WORD…`` runs PROGRAM where FOLDER is ``/tmp`` (:data:`INSIDE`) and
the one place that can be written; the system's programs and libraries are there to be read, and nothing else is: no
home, no sockets of services, no other processes. What it leaves running ends with it. The program has no capability,
and cannot gain one.

It needs user namespaces (user_namespaces(7)), which containers and some systems forbid, and mount_setattr(2) of
Linux 5.12. No tool is needed: the calls are those of glibc. bubblewrap does the same, but is in no Python package.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

INSIDE = Path("/tmp")
NO_SANDBOX = 125  # the exit status when the namespaces cannot be made
_NO_PROGRAM = 126

# What is shown of the host: programs, libraries, and the files by which those are found and users are named.
_VISIBLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf"),
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
)
_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
}
_USER = 1000  # who root is inside: `tar` run by root changes the owner of files, which is not possible here

# linux/sched.h, linux/mount.h, linux/prctl.h, linux/fcntl.h
_NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000  # NS, IPC, USER, PID, NET
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_SYS_MOUNT_SETATTR = 442  # on every architecture
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPABILITIES = 64  # more than there are

_LIBC = ctypes.CDLL(None, use_errno=True)


def words(folder: Path, argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv`, whose paths are those inside, with `folder` as :data:`INSIDE`."""
    return [sys.executable, "-P", "-m", __name__, str(folder), *argv]


def _call(name: str, function: Callable[..., int], *arguments: object) -> None:
    """Call a function of the C library; OSError that names it when it fails."""
    encoded = [item.encode() if isinstance(item, str) else item for item in arguments]
    if function(*encoded) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    _call(f"mount {target}", _LIBC.mount, source, target, kind, ctypes.c_ulong(flags), data)


def _restrict(path: str, attributes: int, *, recursive: bool = True) -> None:
    """Set `attributes` on the mount at `path` and those below it."""
    wanted = struct.pack("<4Q", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    _call(
        f"mount_setattr {path}",
        _LIBC.syscall,
        *map(ctypes.c_long, (_SYS_MOUNT_SETATTR, _AT_FDCWD)),
        path,
        ctypes.c_ulong(flags),
        wanted,
        ctypes.c_size_t(len(wanted)),
    )


def _enter_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    _call("unshare", _LIBC.unshare, ctypes.c_int(_NEW_NAMESPACES))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user or _USER} {user} 1"),
        ("gid_map", f"{group or _USER} {group} 1"),
    ):
        Path("/proc/self", name).write_text(text, encoding="ascii")


def _show(source: str, root: str) -> None:
    """Let the host's `source` be seen below `root`, to be read only."""
    target = root + source
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    if os.path.isdir(source):
        os.mkdir(target)
    elif os.path.exists(source):
        Path(target).touch()
    else:
        return
    _mount(source, target, None, _MS_BIND | _MS_REC)
    devices = 0 if source.startswith("/dev/") else _ATTR_NODEV
    _restrict(target, _ATTR_RDONLY | _ATTR_NOSUID | devices)


def _build_root(folder: str) -> None:
    """Make the file system that the program sees, and go there."""
    own = os.open(folder, os.O_PATH | os.O_DIRECTORY)  # it may lie where the new root will hide it
    root = str(INSIDE)
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    for source in _VISIBLE:
        _show(source, root)
    for name, target in _LINKS.items():
        os.symlink(target, root + name)
    for name in ("/proc", str(INSIDE)):
        os.mkdir(root + name)
    _mount("proc", f"{root}/proc", "proc", _MS_NOSUID | _MS_NODEV)
    _mount(f"/proc/self/fd/{own}", f"{root}{INSIDE}", None, _MS_BIND | _MS_REC)
    _restrict(f"{root}{INSIDE}", _ATTR_NOSUID | _ATTR_NODEV)
    os.close(own)
    os.chdir(root)
    number = _SYS_PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(0, f"not known for {platform.machine()}", "pivot_root")
    _call("pivot_root", _LIBC.syscall, ctypes.c_long(number), ".", ".")
    _call("umount", _LIBC.umount2, ".", ctypes.c_int(_MNT_DETACH))
    _restrict("/", _ATTR_RDONLY, recursive=False)


def _give_up_rights() -> None:
    """No capability in this namespace, whoever the program becomes."""
    _call("prctl", _LIBC.prctl, *map(ctypes.c_ulong, (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
    for number in range(_CAPABILITIES):
        with contextlib.suppress(OSError):  # the kernel has fewer
            _call("prctl", _LIBC.prctl, *map(ctypes.c_ulong, (_PR_CAPBSET_DROP, number, 0, 0, 0)))


def _status_of(pid: int) -> int:
    """Wait for `pid`, and for whoever else ends meanwhile; its exit status as a shell reports it."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)


def _in_child(work: Callable[[], int]) -> int:
    """Do `work` in a forked child; its exit status. The child dies with its parent."""
    pid = os.fork()
    if pid:
        return _status_of(pid)
    status = NO_SANDBOX
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        status = work()
    except OSError as error:
        os.write(2, f"{error.filename}: {error.strerror}\n".encode())
    finally:
        os._exit(status)


def _program(argv: list[str]) -> int:
    _give_up_rights()
    os.chdir(os.environ.get("PWD", str(INSIDE)))
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        os.write(2, f"could not start {os.path.basename(argv[0])}: {error.strerror}\n".encode())
    return _NO_PROGRAM


def main() -> int:
    """Run the program of the command line; its exit status, or NO_SANDBOX with the reason on stderr."""
    folder, *argv = sys.argv[1:]

    def first() -> int:  # process 1 of the namespace: all others end with it
        _build_root(folder)
        return _in_child(lambda: _program(argv))

    try:
        _enter_namespaces()
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {error.strerror}\n")
        return NO_SANDBOX
    return _in_child(first)


if __name__ == "__main__":
    sys.exit(main())
