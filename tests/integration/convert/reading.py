"""A conversion as a test makes one."""

import json
from pathlib import Path
from typing import Any

from ethosu_sdk.base import filesystem
from tests.integration.cli import sdk
from tests.places import ROOT
from tests.records import printed

EXAMPLES = ROOT / "schemas" / "examples" / "valid"

Record = dict[str, Any]


def convert(source: Path | Record, to: str, folder: Path) -> bytes:
    """What `convert` makes of `source`, a file or a record; the command's own record must be of that file."""
    if isinstance(source, dict):
        record, source = source, folder / "source.json"
        source.write_text(json.dumps(record), encoding="utf-8")
    told = printed(sdk("convert", source, "--to", to, "-o", folder / "converted", "--json", cwd=folder))
    content = (folder / "converted").read_bytes()
    assert told["file"]["sha256"] == filesystem.sha256_bytes(content)
    assert told["format"] == to
    return content


def refused(folder: Path, *arguments: str | Path) -> str:
    """The one error of a conversion that is refused; nothing is left behind."""
    done = sdk("convert", *arguments, "-o", folder / "converted", cwd=folder)
    assert (done.code, done.out) == (3, "")
    assert "Traceback" not in done.err
    assert not (folder / "converted").exists()
    return done.err
