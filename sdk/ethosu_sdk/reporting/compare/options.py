"""The options of `compare`. The module is imported for every `--help`: it must stay light."""

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.compile.program_options import Option, option

LOOSE = Option("Accept a record that differs from its manifest; the output says so.")


@dataclass(frozen=True)
class CompareOptions:
    """`policy` is a file, None the SDK's own; `allow` adds dimensions that may differ to those that it allows.
    `loose` takes records that are not as their manifests list them. `rows` limits the operators on the terminal."""

    policy: Path | None = option(
        None,
        Option(
            "Rules for what may become worse, and by how much.",
            metavar="FILE.toml",
            shown_default="the SDK's own",
        ),
    )
    allow: tuple[str, ...] = option(
        (),
        Option(
            "Compare runs even if they differ in this: model, versions, memory_mode …; can be "
            "given several times.",
            metavar="NAME",
        ),
    )
    loose: bool = option(False, LOOSE)
    rows: int | None = option(
        None, Option("Show N of the operators that differ.", metavar="N", minimum=1, shown_default="20")
    )
