"""Archives with a double of Arm's installer, and `fvp install` of them. Arm's own archives cannot be here.

The double is a script that demands the arguments of Arm's and makes programs of the FVPs' names: doubles, too.
"""

import contextlib
import hashlib
import io
import platform
import sys
import tarfile
from pathlib import Path

from ethosu_sdk.base.resources import FvpArchive
from ethosu_sdk.installation.options import InstallOptions

BOARD, VERSION = "corstone-300", "11.27_42"
INSTALLER = """#!/bin/sh
# A double of Arm's installer.
[ "$*" = '--i-agree-to-the-contained-eula --force --destination ./ --quiet --no-interactive' ] || exit 9
mkdir -p models/Linux64_GCC-9.3 license_terms
for npu in Ethos-U55 Ethos-U65; do
  printf '#!/bin/sh\\necho "Fast Models [11.27.42 (double)]"\\n' > models/Linux64_GCC-9.3/FVP_Corstone_SSE-300_$npu
done
chmod +x models/Linux64_GCC-9.3/*
echo 'the contained agreement' > license_terms/eula.txt
"""
Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size, info.mode = kind, link, len(data), 0o755
    return info, data


def archive(path: Path, members: list[Member]) -> Path:
    with tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT) as stream:
        for info, data in members:
            stream.addfile(info, io.BytesIO(data))
    return path


def good(path: Path, installer: str = INSTALLER) -> Path:
    return archive(
        path, [member("FVP_Corstone_SSE-300.sh", installer.encode()), member("license.txt", b"terms")]
    )


def options(path: Path, prefix: Path | None, **changes: object) -> InstallOptions:
    """Consent given, and a lock that lists the archive at `path` as it is."""
    data = path.read_bytes()
    row = FvpArchive(
        name=BOARD,
        version=VERSION,
        machine=platform.machine(),
        file=path.name,
        md5=hashlib.md5(data, usedforsecurity=False).hexdigest(),
        url="https://developer.arm.com/",
    )
    fields: dict[str, object] = {"archive": path, "prefix": prefix, "archives": [row], **changes}
    return InstallOptions(BOARD, **{"accept_eula": True, **fields})  # type: ignore[arg-type]


_COMMAND = """
import sys
from ethosu_sdk.base import interrupts
interrupts.end_at_once()
from ethosu_sdk.base import resources
row = resources.FvpArchive(**{row!r})
resources.fvp_archives = lambda: (row,)
sys.argv[1:] = ["fvp", "install", row.name, "--accept-eula", *sys.argv[1:]]
from ethosu_sdk.__main__ import main
main()
"""


def command(path: Path, *words: str) -> list[str]:
    """`ethosu-sdk fvp install` of the archive at `path`, in the folder where that lies, into its folder ``fvp``.

    It is the command itself, with a lock that lists this archive in place of Arm's.
    """
    row = vars(options(path, None).archives[0])
    return [sys.executable, "-c", _COMMAND.format(row=row), "--archive", path.name, "--prefix", "fvp", *words]


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def running(words: str) -> bool:
    """Whether a process of that command line lives: the installer's environment has no mark to find it by."""
    wanted = words.replace(" ", "\0").encode() + b"\0"
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == wanted:
                return True
    return False
