"""Doubles of LLVM's tools that are broken."""

from pathlib import Path


def stand_in(path: Path, real: Path, script: str) -> None:
    """Make at `path` a program that tells its version as `real` does, and else does what `script` says.

    In it, `answer` prints what the real one answers.
    """
    path.write_text(
        "#!/bin/sh\n"
        f'case "$*" in --version) exec {real} "$@";; esac\n'
        f'arguments="$*"\nanswer() {{ {real} $arguments; }}\n{script}\n'
    )
    path.chmod(0o755)
