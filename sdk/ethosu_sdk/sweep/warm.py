"""The process in which steps find everything imported: ``python -m ethosu_sdk.sweep.warm FD PID``."""

from __future__ import annotations

import sys

# What steps import is imported for those that follow; a model's own packages are not.
_PACKAGES = ("ethosu_sdk", "ethosu", "executorch", "numpy", "torch", "torchao", "tosa", "serializer")


def main() -> None:
    """Import, and serve on the socket of the command line."""
    from ethosu_sdk.proc import forks

    descriptor = forks.begin()

    from ethosu_sdk.aot.pipeline import stages

    stages.import_tools()

    from ethosu_sdk import provenance, schema
    from ethosu_sdk.records import kinds
    from ethosu_sdk.sweep import steps

    provenance.git_revision()
    for kind in (kinds.COMPILE, kinds.RUN, kinds.MANIFEST):
        schema.refusal({"schema": kind.schema})
    forks.serve(descriptor, steps.perform, (*_PACKAGES, *sys.stdlib_module_names))


if __name__ == "__main__":
    main()
