"""Keys of tasks: digests of everything that shapes their results and is known beforehand."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk import resources, tools
from ethosu_sdk.aot import sharing, zoo
from ethosu_sdk.aot.model.spec import ModelSpec, parse_model_spec
from ethosu_sdk.files import hashing
from ethosu_sdk.records import Record
from ethosu_sdk.steps.shared import compilers
from ethosu_sdk.sweep.cells import Cell
from ethosu_sdk.sweep.configuration import NONE, QEMU
from ethosu_sdk.sweep.configuration.systems import DEFAULT
from ethosu_sdk.targets import Target


def _digest(basis: Mapping[str, Any]) -> str:
    return hashing.sha256_bytes(json.dumps(basis, sort_keys=True).encode())


@functools.cache
def _simulators(simulator: str) -> Record:
    """What a simulator has beside the SDK's own sources."""
    basis: Record = {}
    if simulator == QEMU:
        basis["firmware"] = compilers.tree(resources.directory("firmware"))
        for name in ("qemu-system-arm", "arm-none-eabi-g++"):
            basis[name] = tools.probe(name).version if name in tools.table() else ""
    return basis


class Keys:
    """The keys of one sweep's tasks; files are named from `folder`. `pricing` is what a cell's times depend on."""

    def __init__(
        self, folder: Path, *, trust: bool, pricing: Callable[[Cell], Sequence[object]] = lambda _: ()
    ) -> None:
        self._folder = folder
        self._pricing = pricing
        self._trust = trust
        self._files: dict[Path, str] = {}

    def spec(self, model: str) -> ModelSpec:
        """The model, with its path from anywhere."""
        return parse_model_spec(model if model.startswith("zoo:") else str(self._folder / model))

    def model_sha256(self, model: str) -> str:
        """The digest of the model's source."""
        spec = self.spec(model)
        return self._file(spec.path if spec.path is not None else zoo.source(str(spec.entry)))

    def lowering(self, cell: Cell) -> str:
        """The key of the lowering that `cell` takes part in."""
        return _digest(
            {
                "step": "lower",
                "tools": compilers.identity(),
                "model": cell.model,
                "sha256": self.model_sha256(cell.model),
                "entry": self.spec(cell.model).entry,
                "variant": sharing.variant(cell.target),
                "quantize": cell.quantize,
                "samples": None if cell.samples is None else self._file(self._folder / cell.samples),
                "trust": self._trust,
            }
        )

    def compilation(self, cell: Cell) -> str:
        """The key of its compilation, which is executed too: its check and its accuracy are of the whole SDK."""
        target = cell.target
        names = [target.name, *cell.configuration]
        names += [target.vela_config] if isinstance(target, Target) and target.vela_config else []
        return _digest(
            {
                "step": "compile",
                "sdk": compilers.tree(resources.PACKAGE_ROOT),
                "lowering": self.lowering(cell),
                "target": names,
                "vela": cell.vela,
            }
        )

    def cell(self, cell: Cell) -> str:
        """The key of the cell itself."""
        inputs = cell.inputs
        files = None if inputs in (None, DEFAULT) else self._file(self._folder / str(inputs))
        pricing = list(self._pricing(cell))
        run = {} if cell.simulator == NONE else _simulators(cell.simulator)
        return _digest(
            {
                "step": "cell",
                "compilation": self.compilation(cell),
                "run": [cell.simulator, cell.board, files, run, *(pricing if any(pricing) else ())],
            }
        )

    def unchanged(self, reads: Mapping[str, str]) -> bool:
        """Whether files that were read are as they were then."""
        return all(self.digest_now(name) == digest for name, digest in reads.items())

    def digest_now(self, name: str) -> str:
        """The digest of a file; empty when there is none."""
        path = self._folder / name
        return self._file(path) if path.is_file() else ""

    def _file(self, path: Path) -> str:
        if path not in self._files:
            self._files[path] = hashing.sha256_file(path)
        return self._files[path]
