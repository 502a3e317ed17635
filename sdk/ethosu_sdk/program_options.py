"""What a user can ask of a compiled program: the options of `compile` that its process, which imports torch, acts on.

Their defaults stand here and nowhere else. The module is imported for every `--help`: it must stay light.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

QUANTIZE_CHOICES = ("int8", "int16", "none")
QUANTIZE_PER_CHOICES = ("channel", "tensor")
IO_CHOICES = ("float", "int8")


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """The options that shape a program, as given.

    `quantize` is one of QUANTIZE_CHOICES; None takes the model's own choice (the zoo's; ``none`` for a program
    that is quantised already), else ``int8``. `quantize_per` is one of QUANTIZE_PER_CHOICES: whether weights get
    a scale for each output channel or one for the whole tensor. `io`, one of IO_CHOICES, is the type of a quantised
    program's inputs and outputs. `delegate` False keeps every operator on the CPU. `inputs` is an `.npz` with the
    example inputs ``input0``…; each file of `calibration` holds ``input0``… with samples stacked on a leading axis.
    `vela_config` is a Vela configuration file to take in place of Vela's own; `vela_flags` are added to Vela's
    command line. With `trust` a ``.pt2`` is loaded although that could run code
    (:mod:`ethosu_sdk.aot.model.saved_program`). `etrecord` asks for ExecuTorch's record of the lowering beside
    the program, which stays the same.
    """

    quantize: str | None = None
    quantize_per: str = "channel"
    io: str = "float"
    delegate: bool = True
    calibration: tuple[Path, ...] = ()
    inputs: Path | None = None
    vela_config: Path | None = None
    vela_flags: tuple[str, ...] = ()
    trust: bool = False
    etrecord: bool = False

    def to_json(self) -> dict[str, Any]:
        """These options as JSON values, without those that a subclass adds; :meth:`from_json` is the way back."""
        return {
            **{row.name: getattr(self, row.name) for row in fields(ProgramOptions)},
            "calibration": [str(path) for path in self.calibration],
            "inputs": None if self.inputs is None else str(self.inputs),
            "vela_config": None if self.vela_config is None else str(self.vela_config),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ProgramOptions:
        """The options that :meth:`to_json` wrote."""
        return ProgramOptions(
            **{
                **data,
                "calibration": tuple(Path(path) for path in data["calibration"]),
                "inputs": None if data["inputs"] is None else Path(data["inputs"]),
                "vela_config": None if data["vela_config"] is None else Path(data["vela_config"]),
                "vela_flags": tuple(data["vela_flags"]),
            }
        )
