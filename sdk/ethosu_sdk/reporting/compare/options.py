"""The options of `compare`. The module is imported for every `--help`: it must stay light."""

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.compile.program_options import Option, option

LOOSE = Option("Accept a record that differs from its manifest; the output says so.")


@dataclass(frozen=True)
class CompareOptions:
    """`policy` is a file, None the SDK's own. With it, or with `check`, a figure that is worse than it tolerates is a
    failure, and runs are compared only if they differ in nothing but what it or `allow` names. `loose` takes records
    that are not as their manifests list them."""

    check: bool = option(
        False, Option("Fail, with exit code 7, if a figure is worse than the policy tolerates.")
    )
    policy: Path | None = option(
        None,
        Option(
            "Rules for what may become worse, and by how much; implies --check.",
            metavar="FILE.toml",
            shown_default="the SDK's own",
        ),
    )
    allow: tuple[str, ...] = option(
        (),
        Option(
            "Check runs even if they differ in this: versions, memory_mode …; can be given several times.",
            metavar="NAME",
        ),
    )
    across: bool = option(
        False, Option("Show measured figures beside modelled ones. They are not judged; not with --check.")
    )
    loose: bool = option(False, LOOSE)

    @property
    def checks(self) -> bool:
        return self.check or self.policy is not None
