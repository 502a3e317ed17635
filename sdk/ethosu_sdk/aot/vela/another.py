"""Runs another version of Vela than ExecuTorch's own. ExecuTorch packs its result in the usual way."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from ethosu_sdk.aot.vela import capture, versions
from ethosu_sdk.aot.vela.vela_config import VelaConfig
from ethosu_sdk.errors import BuildError


def compile_graph(
    tosa: bytes, flags: Sequence[str], path: str, config: VelaConfig | None = None
) -> tuple[bytes, capture.VelaCapture]:
    """The payload of a TOSA graph by the Vela in `path`, a process of its own, and what that reports.

    `path` is as :func:`ethosu_sdk.aot.vela.versions.python_path` gives it, `config` the configuration file that the
    flags call by its `stored_name`. BuildError when that Vela refuses the
    graph or its results cannot be packed.
    """
    from executorch.backends.arm import arm_vela

    own = arm_vela.vela
    with tempfile.TemporaryDirectory(prefix="ethosu-vela-", dir=capture.spaceless_directory()) as name:
        folder = Path(name)
        arm_vela.vela = SimpleNamespace(main=lambda words: versions.run(path, words, folder))
        try:
            words = [*capture.with_config(flags, config, folder), *capture.REPORT_FLAGS]
            payload = bytes(arm_vela.vela_compile(tosa, words, intermediate_path=name).processed_bytes)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise BuildError(f"Vela's results cannot be packed: {error}") from error
        finally:
            arm_vela.vela = own
        return payload, capture.read_capture(tosa, {}, payload, folder)
