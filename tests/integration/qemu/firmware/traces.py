"""What a run leaves behind: QEMU processes, threads, open files."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE_S = 10.0


def qemu_processes(elf: Path) -> list[int]:
    """The process ids of every living QEMU that runs `elf`, or an ELF of that folder."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"qemu" in words[0] and any(os.fsencode(elf) in word for word in words):
            found.append(int(folder.name))
    return found


def wait_for_qemu(elf: Path) -> int:
    """The process id of the QEMU that is about to run `elf`."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if found := qemu_processes(elf):
            return found[0]
        time.sleep(0.005)
    raise AssertionError("QEMU was not started")


def wait_until_gone(elf: Path) -> bool:
    """Whether no QEMU runs `elf` any more, after some patience."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if not qemu_processes(elf):
            return True
        time.sleep(0.02)
    return False


def wait_for_text(path: Path, text: bytes) -> None:
    """Return once the file `path` holds `text`."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if path.exists() and text in path.read_bytes():
            return
        time.sleep(0.005)
    raise AssertionError(f"{text!r} did not appear in {path}")


@contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Do `action` in a thread while the block runs."""
    thread = threading.Thread(target=action)
    thread.start()
    yield
    thread.join()


def open_resources() -> tuple[int, set[str]]:
    """The number of threads of this process, and what its descriptors are open on."""
    targets = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            targets.add(str(entry.readlink()))
        except OSError:
            continue  # the descriptor of this very listing
    return threading.active_count(), {target for target in targets if "/proc/" not in target}
